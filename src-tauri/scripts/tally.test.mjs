// Proves that the tally counts what the test programs print, and never takes a crash for a pass.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Tally } from './tally.mjs';

test('cargo test lines are added up over all programs', () => {
  const tally = new Tally();
  const lines = [
    'running 3 tests',
    'test a::plain ... ok',
    'test a::tr_05_order ... FAILED',
    'test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s',
    'test result: ok. 40 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s',
  ];
  lines.forEach((line) => tally.rustLine(line));
  assert.deepEqual([tally.passed, tally.failed, tally.failures], [42, 1, ['a::tr_05_order']]);
});

test('node test lines are added up', () => {
  const tally = new Tally();
  ['ok 1 - x', 'not ok 2 - y', '# pass 1', '# fail 1', '# cancelled 0'].forEach((line) =>
    tally.nodeLine(line),
  );
  assert.deepEqual([tally.passed, tally.failed, tally.failures], [1, 1, ['y']]);
});

test('a program that crashed is a failure', () => {
  const tally = new Tally();
  tally.rustLine('test result: ok. 1 passed; 0 failed; 0 ignored');
  tally.ended('cargo test', 101, 0);
  assert.equal(tally.failed, 1);
  tally.ended('cargo test', 101, 0);
  assert.equal(tally.failed, 1);
});

test('the sums of Playwright are added up, and whatever did not pass is a failure', () => {
  const tally = new Tally();
  for (const line of [
    '  ✓  1 tests/e2e/web/a.spec.mjs:5:1 › first (4.4s)',
    '  ✘  2 tests/e2e/web/a.spec.mjs:9:1 › second (20.0s)',
    '  1) tests/e2e/web/a.spec.mjs:9:1 › second ─────',
    '    Error: 7 passed is not what was expected',
    '  1 failed',
    '    tests/e2e/web/a.spec.mjs:9:1 › second ─────',
    '  1 did not run',
    '  21 passed (1.4m)',
  ]) {
    tally.playwrightLine(line);
  }
  assert.deepEqual(
    [tally.passed, tally.failed, tally.failures],
    [21, 2, ['tests/e2e/web/a.spec.mjs:9:1 › second']],
  );
});

test('a flat TAP stream is counted line by line', () => {
  const tally = new Tally();
  for (const line of [
    'TAP version 13',
    '1..4',
    'ok 1 - src/a.test.ts > rs_23 first # time=1.20ms',
    'not ok 2 - src/a.test.ts > second # time=3.00ms',
    'ok 3 - src/a.test.ts > third # SKIP',
    '    error: not ok',
  ]) {
    tally.tapLine(line);
  }
  assert.equal(tally.passed, 1);
  assert.equal(tally.failed, 1);
  assert.deepEqual(tally.failures, ['src/a.test.ts > second']);
});
