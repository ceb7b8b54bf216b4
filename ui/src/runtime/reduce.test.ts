// @vitest-environment node
// The reducer against the vectors that the Rust one reads too.

import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';

import { emptyStore, reduce, type Verdict } from './reduce';

interface Step {
  epoch: string;
  revision: number;
  content: string;
  authoritative: boolean;
  innerMalformed: boolean;
  verdict: Verdict;
}

interface Case {
  name: string;
  rule: string;
  steps: Step[];
  end: { epoch: string; revision: number; content: string } | null;
  accepted: number;
}

const vectors = new URL('../../../tests/vectors/runtime-reducer.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(vectors, 'utf8')) as { cases: Case[] };
const same = (a: string, b: string) => a === b;

describe('rs_23 vectors', () => {
  test('there are enough of them, C14 among them', () => {
    expect(cases.length).toBeGreaterThanOrEqual(40);
    expect(cases.some((one) => one.rule === 'C14')).toBe(true);
  });

  test.each(cases.map((one) => [one.name, one] as const))('rs_23 %s', (_, one) => {
    let store = emptyStore<string>();
    for (const step of one.steps) {
      const before = structuredClone(store);
      const result = reduce(store, step, same);
      expect(result.verdict).toBe(step.verdict);
      if (result.verdict !== 'accepted') {
        expect(result.store).toEqual(before);
      }
      store = result.store;
    }
    expect(store.held).toEqual(one.end);
    expect(store.version).toBe(one.accepted);
  });
});
