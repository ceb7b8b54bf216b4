// @vitest-environment node
// The pages' reducer against generated traces that the Rust reducer judged.
//
// The program that makes them is built with the others, or here when it is not there.
// HOLDFAST_TEST_SCALE multiplies the number of traces.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { expect, test } from 'vitest';

import { incoming, sameContent } from './projection';
import { emptyStore, reduce, type Verdict } from './reduce';
import { createRuntimeStore } from './store';

interface Step {
  kind: 'event' | 'begin' | 'answer';
  read: number;
  payload: number;
  verdict: Verdict;
}

interface Trace {
  payloads: unknown[];
  steps: Step[];
  end: { epoch: string; revision: number; payload: number } | null;
  version: number;
}

const ROOT = path.resolve(import.meta.dirname, '../../..');
const SCALE = Number(process.env.HOLDFAST_TEST_SCALE ?? 1) || 1;
const COUNT = Math.max(200, Math.round(10_000 * SCALE));
const SEED = 20_261_201;

/** The program, built when it is not there. */
function program(): string {
  const name = `holdfast-runtime-traces${process.platform === 'win32' ? '.exe' : ''}`;
  const target = process.env.CARGO_TARGET_DIR ?? path.join(ROOT, 'target');
  const file = path.join(target, 'debug', name);
  if (!existsSync(file)) {
    const words = ['build', '-p', 'holdfast-testkit', '--bin', 'holdfast-runtime-traces'];
    spawnSync('cargo', words, { cwd: ROOT, stdio: 'inherit' });
  }
  return file;
}

async function* traces(): AsyncGenerator<Trace> {
  const child = spawn(program(), ['--seed', String(SEED), '--count', String(COUNT)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = new Promise<unknown>((resolve) => {
    child.on('close', resolve);
    child.on('error', resolve);
  });
  for await (const line of createInterface({ input: child.stdout })) {
    yield JSON.parse(line) as Trace;
  }
  expect(await ended).toBe(0);
}

/** The same content with its members in the opposite order. */
function reversed(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(reversed);
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  const members = Object.entries(value).reverse();
  return Object.fromEntries(members.map(([name, inner]) => [name, reversed(inner)]));
}

/** What both reducers find; throws where they differ. */
function follow(trace: Trace, place: number, seen: Map<string, number>): void {
  const store = createRuntimeStore();
  let plain = emptyStore<unknown>();
  const began = new Map<number, number>();
  trace.steps.forEach((step, at) => {
    if (step.kind === 'begin') {
      began.set(step.read, store.version);
      return;
    }
    const sent = trace.payloads[step.payload];
    const payload = at % 2 === 0 ? sent : reversed(sent);
    const start = step.kind === 'answer' ? (began.get(step.read) ?? -1) : -1;
    const result = reduce(plain, incoming(payload, start === plain.version), sameContent);
    plain = result.store;
    const verdict = start === -1 ? store.event(payload) : store.read(payload, start);
    if (verdict !== step.verdict || result.verdict !== step.verdict) {
      const what = JSON.stringify({ step, payload, held: plain.held });
      throw new Error(
        `trace ${place}, step ${at}: ${verdict} here, ${step.verdict} there: ${what}`,
      );
    }
    const key = `${step.kind} ${verdict}`;
    seen.set(key, (seen.get(key) ?? 0) + 1);
  });
  const { end } = trace;
  const content = end ? trace.payloads[end.payload] : null;
  expect([plain.version, store.version]).toEqual([trace.version, trace.version]);
  expect(plain.held?.epoch ?? null).toBe(end?.epoch ?? null);
  expect(plain.held?.revision ?? null).toBe(end?.revision ?? null);
  expect(sameContent(plain.held?.content ?? null, content)).toBe(true);
  const held = (content ?? { sessions: [], topics: [] }) as { sessions: unknown; topics: unknown };
  expect(sameContent(store.view.sessions, held.sessions)).toBe(true);
  expect(sameContent(store.view.topics, held.topics)).toBe(true);
  expect(store.view.empty).toBe(end === null);
}

test('rs_22 the reducers of Rust and of the pages agree on generated traces', async () => {
  const seen = new Map<string, number>();
  let count = 0;
  for await (const trace of traces()) {
    follow(trace, count, seen);
    count += 1;
  }
  expect(count).toBe(COUNT);
  // Every verdict came up, on events and on reads, often.
  for (const verdict of ['accepted', 'duplicate', 'stale', 'conflict']) {
    expect(seen.get(`event ${verdict}`) ?? 0, verdict).toBeGreaterThan(COUNT / 50);
    expect(seen.get(`answer ${verdict}`) ?? 0, verdict).toBeGreaterThan(COUNT / 50);
  }
}, 300_000);
