// Proves that tests are recognised by their attribute and their rule by its name.
import assert from 'node:assert/strict';
import { test } from 'node:test';

import { proofs, ruleOf } from './proofs.mjs';

test('a rule is read from a test name', () => {
  assert.equal(ruleOf('tr_05_order'), 'TR-05');
  assert.equal(ruleOf('sv_03_stop'), 'SV-03');
  assert.equal(ruleOf('c10_cut'), 'C10');
  assert.equal(ruleOf('cancel_is_prompt'), null);
  assert.equal(ruleOf('c1_cut'), null);
});

test('only functions with a test attribute count', () => {
  const source = [
    '#[test]',
    'fn tr_01_a() {}',
    'fn tr_02_b() {}',
    '    #[tokio::test(flavor = "multi_thread")]',
    '    // why',
    '    #[cfg(unix)]',
    '    async fn c03_c() {}',
    '#[test]',
    'fn plain() {}',
  ].join('\n');
  assert.deepEqual(proofs(source), [
    { rule: 'TR-01', test: 'tr_01_a' },
    { rule: 'C03', test: 'c03_c' },
  ]);
});
