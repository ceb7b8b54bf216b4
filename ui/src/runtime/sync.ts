// The sync loop of a page: subscribe first, then read; verify every 30 s and on occasions; back off
// after failures (RS-22, RS-25).
//
// Guarantees: at most one read is under way; an answer to a read that was invalidated is dropped;
// what is read while the stream is broken is shown and not confirmed, since it may be old at once;
// after a failure the next try is 5, 10, 20, then every 30 s later, or at once on an occasion; a reply
// that lacks a remote session is tried again like that, and takes nothing from this machine's: the
// remote session's own freshness marks it.

import { isProjection } from './projection';
import type { RuntimeStore } from './store';

/** How the loop reaches the backend. */
export interface SyncSource {
  /** RS-20: verifies every remote connection first. */
  sync(): Promise<unknown>;
  /** The projection as it is; asked when `sync` fails. */
  get(): Promise<unknown>;
}

/** Time, so that a test decides it. */
export interface SyncClock {
  setTimeout(callback: () => void, ms: number): unknown;
  clearTimeout(handle: unknown): void;
}

export const VERIFY_MS = 30_000;
/** A read that takes longer has failed; what it brings later is dropped. */
export const READ_MS = 10_000;
export const BACKOFF_MS = [5_000, 10_000, 20_000, 30_000] as const;

export interface RuntimeSync {
  /** The first read. The caller has subscribed before (RS-22). */
  start(): void;
  /** An occasion to verify at once: attach, focus, online, `remote-tab:updated`. */
  verify(): void;
  /** `runtime-state:changed`. */
  changed(payload: unknown): void;
  /** The stream of events broke, or is open again. While it is broken no read confirms anything. */
  link(up: boolean): void;
  /** `desktop:resync`, or a gap in the stream. */
  resync(): void;
  /** When the next try after a failure is due, in ms from the failure; `null` without one. */
  readonly retryIn: number | null;
  /** How often everything has to be read anew. */
  readonly recoveryVersion: number;
  stop(): void;
}

export function createRuntimeSync(
  store: RuntimeStore,
  source: SyncSource,
  clock: SyncClock = { setTimeout: (f, ms) => setTimeout(f, ms), clearTimeout: stopTimer },
): RuntimeSync {
  let timer: unknown = null;
  let failures = 0;
  /** Replies in a row that lacked a remote session. */
  let lacks = 0;
  let retryIn: number | null = null;
  let recoveryVersion = 0;
  let generation = 0;
  let reading = false;
  let readTimer: unknown = null;
  let again = false;
  let stopped = false;
  let isDown = false;

  function schedule(ms: number): void {
    clock.clearTimeout(timer);
    timer = stopped ? null : clock.setTimeout(read, ms);
  }

  function backOff(count: number): void {
    const step = Math.min(count, BACKOFF_MS.length - 1);
    retryIn = BACKOFF_MS[step] ?? VERIFY_MS;
    schedule(retryIn);
  }

  function failed(): void {
    backOff(failures);
    failures += 1;
    store.fail();
  }

  /** What was read holds, but for the sessions of a machine that can't be asked: they say so. */
  function lacking(): void {
    failures = 0;
    backOff(lacks);
    lacks += 1;
    confirm();
  }

  function succeeded(): void {
    failures = 0;
    lacks = 0;
    retryIn = null;
    confirm();
    schedule(VERIFY_MS);
  }

  function confirm(): void {
    if (!isDown) {
      store.confirm();
    }
  }

  function read(): void {
    if (stopped) {
      return;
    }
    if (reading) {
      again = true;
      return;
    }
    reading = true;
    again = false;
    clock.clearTimeout(timer);
    timer = null;
    const began = store.version;
    const own = generation;
    let open = true;
    const once = (judgeIt: () => void) => {
      if (open) {
        open = false;
        clock.clearTimeout(readTimer);
        settle(own, judgeIt);
      }
    };
    readTimer = clock.setTimeout(() => once(failed), READ_MS);
    void source
      .sync()
      .catch(() => source.get())
      .then(
        (payload) => once(() => judge(payload, began)),
        () => once(failed),
      );
  }

  function settle(own: number, judgeIt: () => void): void {
    reading = false;
    if (stopped) {
      return;
    }
    if (own !== generation) {
      // Invalidated by a resync: what it read may be from before.
      read();
      return;
    }
    judgeIt();
    if (again) {
      again = false;
      read();
    }
  }

  function judge(payload: unknown, began: number): void {
    const verdict = store.read(payload, began);
    if (verdict === 'conflict' || !isProjection(payload)) {
      failed();
    } else if (!payload.sessions.every((one) => !one.remote || one.freshness === 'synced')) {
      lacking();
    } else {
      succeeded();
    }
  }

  return {
    start: read,
    verify: read,
    changed(payload) {
      if (!stopped && store.event(payload) === 'conflict') {
        // One coalesced resync, however many conflicts there are.
        read();
      }
    },
    link(up) {
      isDown = !up;
      if (up) {
        read();
      } else {
        store.fail();
      }
    },
    resync() {
      recoveryVersion += 1;
      generation += 1;
      store.fail();
      if (!reading) {
        read();
      }
    },
    get retryIn() {
      return retryIn;
    },
    get recoveryVersion() {
      return recoveryVersion;
    },
    stop() {
      stopped = true;
      clock.clearTimeout(timer);
      clock.clearTimeout(readTimer);
    },
  };
}

function stopTimer(handle: unknown): void {
  clearTimeout(handle as ReturnType<typeof setTimeout>);
}
