// The sync loop on fake time, against a source that the test answers by hand.

import { describe, expect, test } from 'vitest';

import type { RuntimeSession, RuntimeStateProjection } from '../port/contract';
import { snapshotOf } from './observed';
import { sameContent } from './projection';
import { createRuntimeStore } from './store';
import { BACKOFF_MS, READ_MS, VERIFY_MS, createRuntimeSync } from './sync';

class FakeClock {
  now = 0;
  private next = 1;
  private timers = new Map<number, { at: number; callback: () => void }>();

  setTimeout(callback: () => void, ms: number): number {
    const id = this.next++;
    this.timers.set(id, { at: this.now + ms, callback });
    return id;
  }

  clearTimeout(id: unknown): void {
    this.timers.delete(id as number);
  }

  async advance(ms: number): Promise<void> {
    const end = this.now + ms;
    for (;;) {
      const due = [...this.timers].filter(([, t]) => t.at <= end).sort((a, b) => a[1].at - b[1].at);
      const first = due[0];
      if (!first) {
        break;
      }
      this.timers.delete(first[0]);
      this.now = first[1].at;
      first[1].callback();
      await settled();
    }
    this.now = end;
  }
}

/** Lets every promise that can go on go on. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) {
    await Promise.resolve();
  }
}

class FakeSource {
  syncs: { resolve: (value: unknown) => void; reject: (error: Error) => void }[] = [];
  gets: FakeSource['syncs'] = [];
  sync = () => this.ask(this.syncs);
  get = () => this.ask(this.gets);

  private ask(list: FakeSource['syncs']): Promise<unknown> {
    return new Promise((resolve, reject) => list.push({ resolve, reject }));
  }

  async answer(payload: unknown): Promise<void> {
    this.syncs.at(-1)?.resolve(payload);
    await settled();
  }

  /** Both the verification and the plain read fail. */
  async fail(): Promise<void> {
    this.syncs.at(-1)?.reject(new Error('down'));
    await settled();
    this.gets.at(-1)?.reject(new Error('down'));
    await settled();
  }
}

function session(changes: Partial<RuntimeSession> = {}): RuntimeSession {
  return {
    tabId: 't1',
    scope: 'local',
    workspaceRoot: '/w',
    topicId: 's1',
    sessionPath: 'session-id:s1',
    sessionGeneration: 1,
    open: true,
    remote: false,
    freshness: 'synced',
    state: {
      schemaVersion: 1,
      runtimeEpoch: 'e'.repeat(32),
      revision: 1,
      phase: 'idle',
      running: false,
      turnId: '',
      turnStatus: '',
      turnEventSeq: 0,
      pendingPrompt: false,
      cancelRequested: false,
      cancellable: false,
      backgroundJobs: 0,
      activity: '',
      unresolved: 0,
      outcome: '',
    },
    ...changes,
  };
}

function projection(
  revision: number,
  changes: Partial<RuntimeStateProjection> = {},
): RuntimeStateProjection {
  return { epoch: 'a'.repeat(32), revision, sessions: [session()], topics: [], ...changes };
}

function setUp() {
  const clock = new FakeClock();
  const source = new FakeSource();
  const store = createRuntimeStore();
  const sync = createRuntimeSync(store, source, clock);
  return { clock, source, store, sync };
}

describe('RS-22, RS-24, RS-25', () => {
  test('rs_22 an event before the first read is not adopted; the read is', async () => {
    const { source, store, sync } = setUp();
    sync.start();
    sync.changed(projection(3));
    expect(store.view.empty).toBe(true);
    await source.answer(projection(2));
    expect(store.view.empty).toBe(false);
    sync.changed(projection(3));
    expect(store.version).toBe(2);
  });

  test('rs_24 a read of another epoch counts only if nothing changed since it began', async () => {
    const { source, store, sync } = setUp();
    sync.start();
    await source.answer(projection(1));
    sync.verify();
    sync.changed(projection(2));
    await source.answer(projection(1, { epoch: 'b'.repeat(32) }));
    expect(store.view.failed).toBe(true);
    expect(store.counters.conflicts).toBe(1);
    expect(sync.retryIn).toBe(BACKOFF_MS[0]);
  });

  test('rs_25 it verifies every 30 s, and one read at a time', async () => {
    const { clock, source, sync } = setUp();
    sync.start();
    sync.verify();
    sync.verify();
    expect(source.syncs).toHaveLength(1);
    await source.answer(projection(1));
    // The occasions during the read are one more read.
    expect(source.syncs).toHaveLength(2);
    await source.answer(projection(1));
    await clock.advance(VERIFY_MS - 1);
    expect(source.syncs).toHaveLength(2);
    await clock.advance(1);
    expect(source.syncs).toHaveLength(3);
  });

  test('rs_25 failures back off 5, 10, 20, 30, 30 s and clear nothing', async () => {
    const { clock, source, store, sync } = setUp();
    sync.start();
    await source.answer(projection(1));
    sync.verify();
    await source.fail();
    expect(store.view.failed).toBe(true);
    expect(store.view.sessions).toHaveLength(1);
    for (const wait of [...BACKOFF_MS, 30_000]) {
      expect(sync.retryIn).toBe(wait);
      const before = source.syncs.length;
      await clock.advance(wait - 1);
      expect(source.syncs).toHaveLength(before);
      await clock.advance(1);
      expect(source.syncs).toHaveLength(before + 1);
      await source.fail();
    }
    sync.verify();
    await source.answer(projection(1));
    expect(store.view.failed).toBe(false);
    expect(sync.retryIn).toBeNull();
  });

  test('rs_20 a failed verification falls back to the plain read', async () => {
    const { source, store, sync } = setUp();
    sync.start();
    source.syncs.at(-1)?.reject(new Error('down'));
    await settled();
    source.gets.at(-1)?.resolve(projection(1));
    await settled();
    expect(store.view.failed).toBe(false);
    expect(store.view.empty).toBe(false);
  });

  test('rs_25 an unsynced remote session is tried again sooner and takes nothing from this machine', async () => {
    const { clock, source, store, sync } = setUp();
    sync.start();
    const away = session({ remote: true, freshness: 'unknown', hostId: 'h', scope: 'h' });
    const lacking = (revision: number) => projection(revision, { sessions: [session(), away] });
    // This machine's sessions stay confirmed; the remote one's freshness marks it, and it alone.
    for (const [n, wait] of [...BACKOFF_MS, 30_000].entries()) {
      await source.answer(lacking(n + 1));
      expect([store.view.failed, sync.retryIn]).toEqual([false, wait]);
      expect(store.view.sessions.map((one) => one.freshness)).toEqual(['synced', 'unknown']);
      await clock.advance(wait);
    }
    // A read that fails is another matter, with waits of its own.
    await source.fail();
    expect([store.view.failed, sync.retryIn]).toEqual([true, BACKOFF_MS[0]]);
    await clock.advance(BACKOFF_MS[0]);
    await source.answer(lacking(9));
    expect([store.view.failed, sync.retryIn]).toEqual([false, 30_000]);
    await clock.advance(30_000);
    await source.fail();
    expect([store.view.failed, sync.retryIn]).toEqual([true, BACKOFF_MS[0]]);
    await clock.advance(BACKOFF_MS[0]);
    await source.answer(projection(10));
    expect([store.view.failed, sync.retryIn]).toEqual([false, null]);
  });

  test('rs_25 what lacks a remote session is not confirmed while the stream is broken', async () => {
    const { source, store, sync } = setUp();
    sync.start();
    const away = session({ remote: true, freshness: 'unknown', hostId: 'h', scope: 'h' });
    await source.answer(projection(1, { sessions: [away] }));
    sync.link(false);
    sync.verify();
    await source.answer(projection(2, { sessions: [away] }));
    expect([store.view.failed, store.version]).toEqual([true, 2]);
  });

  test('rs_25 a resync invalidates what is under way and reads anew', async () => {
    const { source, store, sync } = setUp();
    sync.start();
    await source.answer(projection(1));
    sync.verify();
    sync.resync();
    expect(sync.recoveryVersion).toBe(1);
    expect(store.view.failed).toBe(true);
    await source.answer(projection(2));
    // The first answer may be from before the resync and confirms nothing.
    expect(store.view.failed).toBe(true);
    expect(store.version).toBe(1);
    await source.answer(projection(2));
    expect(store.view.failed).toBe(false);
    expect(store.version).toBe(2);
  });

  test('rs_23 conflicts schedule one coalesced read', async () => {
    const { source, store, sync } = setUp();
    sync.start();
    await source.answer(projection(1));
    const other = projection(1, { sessions: [] });
    sync.changed(other);
    sync.changed(other);
    sync.changed(other);
    expect(store.counters.conflicts).toBe(3);
    expect(source.syncs).toHaveLength(2);
  });

  test('rs_25 a read that never answers fails, and its late answer is dropped', async () => {
    const { clock, source, store, sync } = setUp();
    sync.start();
    const late = source.syncs.at(-1);
    await clock.advance(READ_MS);
    expect(store.view.failed).toBe(true);
    late?.resolve(projection(9));
    await settled();
    expect(store.view.empty).toBe(true);
  });

  test('rs_25 while the stream is broken a read is shown and confirms nothing', async () => {
    const { clock, source, store, sync } = setUp();
    sync.start();
    await source.answer(projection(1));
    sync.verify();
    sync.link(false);
    expect(store.view.failed).toBe(true);
    // One that was under way, and a later one by itself.
    await source.answer(projection(2));
    expect([store.view.failed, store.version]).toEqual([true, 2]);
    await clock.advance(VERIFY_MS);
    await source.answer(projection(3));
    expect([store.view.failed, store.version]).toEqual([true, 3]);
    sync.link(true);
    await source.answer(projection(3));
    expect(store.view.failed).toBe(false);
  });

  test('rs_14 a host without snapshots shows what it knows, and it can’t know of finishing', async () => {
    const { source, store, sync } = setUp();
    sync.start();
    const legacy = (phase: string) => {
      const one = session();
      return { ...one, state: { schemaVersion: 0, phase, running: phase !== 'idle' } };
    };
    const told = (revision: number, phase: string) =>
      ({ ...projection(revision), sessions: [legacy(phase)] }) as unknown;
    await source.answer(told(1, 'executing'));
    expect(store.view.sessions[0]?.state.phase).toBe('executing');
    // Absent fields stay absent: they are unknown and not zero.
    expect(store.view.sessions[0]?.state.backgroundJobs).toBeUndefined();
    sync.changed(told(2, 'finishing'));
    expect(store.view.sessions[0]?.state.phase).toBe('executing');
    expect(store.counters.conflicts).toBe(1);
    await source.answer(told(2, 'idle'));
    expect(store.view.sessions[0]?.state.phase).toBe('idle');
  });

  test('rs_23 a topic that does not say how fresh it is is malformed', async () => {
    const { source, store, sync } = setUp();
    sync.start();
    const topic = {
      scope: 'h',
      workspaceRoot: '/w',
      topicId: 's1',
      title: '',
      status: 'idle' as const,
      backgroundJobs: 0,
      unresolved: 0,
      freshness: 'unknown' as const,
    };
    await source.answer(projection(1, { topics: [topic] }));
    expect(store.view.topics).toHaveLength(1);
    sync.changed({ ...projection(2), topics: [{ ...topic, freshness: undefined }] });
    sync.changed({ ...projection(2), topics: [{ ...topic, freshness: 'old' }] });
    expect([store.counters.stale, store.version]).toEqual([2, 1]);
  });

  test('rs_06 a malformed state inside changes nothing but freshness', async () => {
    const { source, store, sync } = setUp();
    sync.start();
    await source.answer(projection(1));
    const broken = session();
    broken.state = { ...broken.state, revision: 0 };
    sync.verify();
    await source.answer(projection(2, { sessions: [broken] }));
    expect(snapshotOf(store.view.sessions[0]?.state)?.revision).toBe(1);
    expect(store.view.failed).toBe(true);
  });

  test('rs_38 an hour of silence changes nothing by itself', async () => {
    const { clock, source, store, sync } = setUp();
    sync.start();
    const running = session();
    running.state = { ...running.state, phase: 'executing', running: true };
    const payload = projection(1, { sessions: [running] });
    await source.answer(payload);
    for (let verified = 0; verified < 120; verified += 1) {
      await clock.advance(VERIFY_MS);
      await source.answer(payload);
    }
    expect(store.view.sessions[0]?.state.phase).toBe('executing');
    expect(store.view.failed).toBe(false);
  });
});

test('contents are the same whatever the order of their keys', () => {
  expect(sameContent({ a: 1, b: [1, { c: null }] }, { b: [1, { c: null }], a: 1 })).toBe(true);
  expect(sameContent({ a: 1 }, { a: 1, b: undefined })).toBe(false);
  expect(sameContent([1, 2], [2, 1])).toBe(false);
});
