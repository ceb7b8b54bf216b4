import { expect, test } from 'vitest';

import type { CallRecord, Evidence } from '../port/contract';
import { factsOf, isAlive, meaningOf } from './evidence';

const file = (now: string | null): Evidence => ({
  file: { path: 'a', before: 'b'.repeat(64), after: 'c'.repeat(64), now },
});
const process = (more: object): Evidence => ({
  process: { alive: false, ended_by: '', exit: null, stragglers: [], ...more },
});

test('tr_17 a file’s evidence says what the file is now, and never who wrote it', () => {
  const now = (evidence: Evidence) => factsOf(evidence).at(-1);
  expect(factsOf(file('c'.repeat(64)))).toHaveLength(3);
  expect(now(file('c'.repeat(64)))).toMatchObject({ code: 'c'.repeat(12), mark: 'done' });
  expect(now(file('b'.repeat(64)))).toMatchObject({ value: 'same as before', mark: 'stopped' });
  expect(now(file('d'.repeat(64)))).toMatchObject({ value: 'something else', mark: 'unknown' });
  expect(now(file(''))?.value).toContain('no file');
  expect(now(file(null))).toMatchObject({ value: 'could not be read', mark: 'unknown' });
  const said = (state: string, evidence: Evidence) =>
    meaningOf({ inspection_state: state, inspection_evidence: evidence } as CallRecord);
  expect(said('postcondition_satisfied', file('c'.repeat(64)))).toContain('not prove who wrote');
  expect(said('unknown', file('d'.repeat(64)))).toContain('does not prove');
});

test('sv_04 a process’s evidence names what is left, and nothing claims an end that is not known', () => {
  const left = process({
    stragglers: [
      { name: 'sudo', pid: 71 },
      { name: 'sleep', pid: 72 },
    ],
  });
  expect(isAlive(left)).toBe(true);
  const values = factsOf(left).map(({ value }) => value);
  expect(values).toContain('sudo (pid 71)');
  expect(values).toContain('sleep (pid 72)');
  expect(values.filter((value) => value === 'not known')).toHaveLength(2);
  const ended = factsOf(process({ ended_by: 'host_loss', exit: 143 }));
  expect(ended.map(({ value }) => value)).toContain('the loss of the host');
  expect(ended.map(({ code }) => code)).toContain('143');
  expect(factsOf(process({ alive: true }))).toHaveLength(1);
  expect(isAlive(process({}))).toBe(false);
  expect(isAlive('none')).toBe(false);
  expect(isAlive(null)).toBe(false);
});

test('where there is nothing to look at, the host’s own words tell it', () => {
  const call = {
    inspection_state: 'unknown',
    inspection_evidence: 'none',
    inspection_summary: 'the inspection took longer than 5 s',
  } as CallRecord;
  expect(meaningOf(call)).toBe('the inspection took longer than 5 s');
  expect(factsOf('none')).toHaveLength(1);
});
