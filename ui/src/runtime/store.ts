// The one copy of the runtime projection in this page. Every indicator reads it and nothing else.
//
// Guarantees: only the reducer's verdict changes what is held; a failure marks it as not confirmed
// and clears nothing (RS-25).

import type { RuntimeSession, RuntimeStateProjection, Topic } from '../port/contract';
import { incoming, isProjection, sameContent } from './projection';
import { emptyStore, reduce, type Verdict } from './reduce';

/** What indicators see. */
export interface RuntimeView {
  sessions: readonly RuntimeSession[];
  topics: readonly Topic[];
  /** What is held is not confirmed now: Send and Stop pause (RS-25). */
  failed: boolean;
  /** Nothing was read yet. */
  empty: boolean;
}

/** Diagnostics (RS-37). */
export interface RuntimeCounters {
  stale: number;
  conflicts: number;
  failures: number;
}

export interface RuntimeStore {
  readonly view: RuntimeView;
  readonly counters: Readonly<RuntimeCounters>;
  /** Compared before and after a read (RS-24). */
  readonly version: number;
  /** Takes an event's payload. */
  event(payload: unknown): Verdict;
  /** Takes a read's reply; `began` is the version at its beginning. */
  read(payload: unknown, began: number): Verdict;
  /** A read or a resync failed. */
  fail(): void;
  /** A read was confirmed. */
  confirm(): void;
  subscribe(listener: (view: RuntimeView) => void): () => void;
}

export function createRuntimeStore(): RuntimeStore {
  let store = emptyStore<RuntimeStateProjection>();
  let view: RuntimeView = { sessions: [], topics: [], failed: false, empty: true };
  const counters: RuntimeCounters = { stale: 0, conflicts: 0, failures: 0 };
  const listeners = new Set<(view: RuntimeView) => void>();

  function show(changes: Partial<RuntimeView>): void {
    view = { ...view, ...changes };
    for (const listener of listeners) {
      listener(view);
    }
  }

  function take(payload: unknown, authoritative: boolean): Verdict {
    const result = reduce(store, incoming(payload, authoritative), sameContent);
    store = result.store;
    if (result.verdict === 'stale') {
      counters.stale += 1;
    } else if (result.verdict === 'conflict') {
      counters.conflicts += 1;
    } else if (result.verdict === 'accepted' && isProjection(payload)) {
      show({ sessions: payload.sessions, topics: payload.topics, empty: false });
    }
    return result.verdict;
  }

  return {
    get view() {
      return view;
    },
    get version() {
      return store.version;
    },
    counters,
    event: (payload) => take(payload, false),
    read: (payload, began) => take(payload, store.version === began),
    fail() {
      counters.failures += 1;
      // Also when it is marked already: the next try is due at another time.
      show({ failed: true });
    },
    confirm() {
      if (view.failed) {
        show({ failed: false });
      }
    },
    subscribe(listener) {
      listeners.add(listener);
      listener(view);
      return () => listeners.delete(listener);
    },
  };
}
