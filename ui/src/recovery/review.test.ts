import { expect, test } from 'vitest';

import type { CallRecord, TabRecovery, ToolRecoverySnapshot } from '../port/contract';
import { PortError, type Port } from '../port/port';
import { isVerified, retryRefusal, Review } from './review.svelte';

function record(id: string, inspected = false): CallRecord {
  return {
    identity: { attempt_id: id },
    state: 'unknown',
    inspection_id: inspected ? `i-${id}` : '',
    inspection_state: inspected ? 'postcondition_satisfied' : null,
    inspection_evidence: null,
  } as CallRecord;
}

function snapshot(path: string, revision: string, calls: CallRecord[]): ToolRecoverySnapshot {
  return { sessionPath: path, runtimeEpoch: 'epoch', revision, calls } as ToolRecoverySnapshot;
}

/** A port whose answers come when the test says so. */
function slowPort() {
  const waiting: {
    request: unknown;
    answer: (s: ToolRecoverySnapshot) => void;
    refuse: (e: PortError) => void;
  }[] = [];
  const ask = (request: unknown) =>
    new Promise<ToolRecoverySnapshot>((answer, refuse) =>
      waiting.push({ request, answer, refuse }),
    );
  const port = { getToolRecoveryForTab: ask, resolveToolRecoveryForTab: ask } as unknown as Port;
  return { port, waiting };
}

test('a reply that comes after the switch to another session is dropped', async () => {
  const { port, waiting } = slowPort();
  const review = new Review(port);
  const first = review.show('one');
  const second = review.show('two');
  waiting[1]?.answer(snapshot('session-id:two', 'r2', [record('b')]));
  await second;
  waiting[0]?.answer(snapshot('session-id:one', 'r1', [record('a')]));
  await first;
  expect(review.snapshot?.sessionPath).toBe('session-id:two');
  expect(review.loading).toBe(false);
});

test('an action that is answered after the switch changes nothing, nor does its refusal', async () => {
  for (const refused of [false, true]) {
    const { port, waiting } = slowPort();
    const review = new Review(port);
    const shown = review.show('one');
    waiting[0]?.answer(snapshot('session-id:one', 'r1', [record('a')]));
    await shown;
    const action = review.act(record('a'), 'inspect');
    const other = review.show('two');
    waiting[2]?.answer(snapshot('session-id:two', 'r2', []));
    await other;
    if (refused) {
      waiting[1]?.refuse(new PortError('turn_running', 'a turn is running'));
    } else {
      waiting[1]?.answer(snapshot('session-id:one', 'r3', [record('a', true)]));
    }
    expect(await action).toBe(false);
    expect(review.snapshot?.sessionPath).toBe('session-id:two');
    expect(review.problem).toBe('');
    expect(review.busy.size).toBe(0);
  }
});

test('tr_29 an action carries the snapshot that was on screen and the latest inspection', async () => {
  const { port, waiting } = slowPort();
  const review = new Review(port);
  const shown = review.show('one');
  waiting[0]?.answer(snapshot('session-id:one', 'r1', [record('a', true)]));
  await shown;
  void review.act(record('a', true), 'confirm');
  expect(waiting[1]?.request).toEqual({
    tabId: 'one',
    request: {
      sessionPath: 'session-id:one',
      runtimeEpoch: 'epoch',
      revision: 'r1',
      attemptId: 'a',
      inspectionId: 'i-a',
      action: 'confirm',
    },
  });
  // While it is under way the same attempt takes no second action.
  expect(await review.act(record('a', true), 'dismiss')).toBe(false);
  expect(waiting).toHaveLength(2);
});

test('all verified are confirmed one by one, each on the snapshot before it; a refusal ends it', async () => {
  const seen: TabRecovery['request'][] = [];
  let calls = [record('a', true), record('b'), record('c', true), record('d', true)];
  const port = {
    getToolRecoveryForTab: () => Promise.resolve(snapshot('p', 'r0', calls)),
    resolveToolRecoveryForTab({ request }: TabRecovery) {
      seen.push(request);
      if (request.attemptId === 'd') {
        return Promise.reject(new PortError('turn_running', 'a turn is running'));
      }
      calls = calls.filter((call) => call.identity.attempt_id !== request.attemptId);
      return Promise.resolve(snapshot('p', `r${seen.length}`, calls));
    },
  } as unknown as Port;
  const review = new Review(port);
  await review.show('one');
  await review.confirmVerified();
  expect(seen.map(({ attemptId, revision }) => `${attemptId}@${revision}`)).toEqual([
    'a@r0',
    'c@r1',
    'd@r2',
  ]);
  expect(review.problem).toBe('a turn is running');
  expect(review.snapshot?.calls.map((call) => call.identity.attempt_id)).toEqual(['b', 'd']);
});

test('tr_41 a refusal that carries a snapshot shows it', async () => {
  const { port, waiting } = slowPort();
  const review = new Review(port);
  const shown = review.show('one');
  waiting[0]?.answer(snapshot('p', 'r1', [record('a')]));
  await shown;
  const action = review.act(record('a'), 'inspect');
  waiting[1]?.refuse(new PortError('snapshot_changed', 'refresh', snapshot('p', 'r9', [])));
  expect(await action).toBe(false);
  expect(review.snapshot?.revision).toBe('r9');
  expect(review.problem).toBe('refresh');
});

test('only evidence of the effect counts as verified', () => {
  expect(isVerified(record('a', true))).toBe(true);
  expect(isVerified(record('a'))).toBe(false);
  expect(isVerified({ ...record('a', true), inspection_state: 'absent_fenced' })).toBe(false);
  expect(isVerified({ ...record('a', true), inspection_state: 'unknown' })).toBe(false);
});

test('tr_36 what speaks against a retry is named, and what the host says counts', () => {
  const fenced = { ...record('a', true), inspection_state: 'absent_fenced' } as CallRecord;
  const codeOf = (call: CallRecord, turnRuns = false) => retryRefusal(call, turnRuns)?.code;
  expect(retryRefusal(fenced, false)).toBeNull();
  expect(codeOf(fenced, true)).toBe('turn_running');
  expect(codeOf(record('a'))).toBe('not_inspected');
  expect(codeOf(record('a', true))).toBe('not_fenced');
  expect(codeOf({ ...record('a', true), inspection_state: 'unknown' })).toBe('not_fenced');
  const process = {
    alive: false,
    ended_by: '',
    exit: null,
    stragglers: [{ pid: 7, name: 'sudo' }],
  };
  expect(codeOf({ ...fenced, inspection_evidence: { process } } as CallRecord)).toBe(
    'executor_alive',
  );
  const hint = (allowed: boolean) =>
    ({
      ...fenced,
      retry: { allowed, code: allowed ? '' : 'mode_read_only', reason: 'only reads' },
    }) as CallRecord;
  expect(retryRefusal(hint(true), false)).toBeNull();
  expect(retryRefusal(hint(false), false)).toEqual({
    code: 'mode_read_only',
    reason: 'only reads',
  });
});

test('tr_34 while something lives Stop is offered, and only an inspection says that it has ended', async () => {
  const stopped: unknown[] = [];
  let refuses = true;
  const port = {
    getToolRecoveryForTab: () => Promise.resolve(snapshot('p', 'r1', [record('a')])),
    resolveToolRecoveryForTab: () =>
      refuses
        ? Promise.reject(new PortError('executor_alive', 'it still runs'))
        : Promise.resolve(snapshot('p', 'r2', [record('a', true)])),
    cancelJob: (request: unknown) => {
      stopped.push(request);
      return Promise.resolve({});
    },
  } as unknown as Port;
  const review = new Review(port);
  await review.show('one');
  expect(review.isLiving(record('a'))).toBe(false);
  expect(await review.act(record('a'), 'dismiss')).toBe(false);
  expect(review.isLiving(record('a'))).toBe(true);
  await review.stop(record('a'));
  expect(stopped).toEqual([{ tabId: 'one', id: 'a' }]);
  expect(review.stopping.has('a')).toBe(true);
  expect(review.isLiving(record('a'))).toBe(true);
  refuses = false;
  expect(await review.act(record('a'), 'inspect')).toBe(true);
  expect(review.isLiving(record('a', true))).toBe(false);
  expect(review.stopping.has('a')).toBe(false);
});
