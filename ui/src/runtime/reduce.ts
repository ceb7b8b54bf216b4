// How a copy of a state is accepted (RS-23, RS-24): the same rules as the Rust reducer, proven by
// the shared vectors. Pure; the caller keeps the store.

export type Verdict = 'accepted' | 'duplicate' | 'stale' | 'conflict';

/** Largest revision (RS-04): 2^53 − 1. */
export const MAX_REVISION = Number.MAX_SAFE_INTEGER;

/** What an incoming state shows of itself. */
export interface Incoming<T> {
  /** Empty means malformed. */
  epoch: string;
  /** 0 means malformed. */
  revision: number;
  /** A session's state inside is malformed. */
  innerMalformed: boolean;
  /** It answers a read during which the store did not change (RS-24). */
  authoritative: boolean;
  content: T;
}

/** A reader's copy. */
export interface Store<T> {
  held: { epoch: string; revision: number; content: T } | null;
  /** Grows with every accepted state; a read compares it before and after (RS-24). */
  version: number;
}

export function emptyStore<T>(): Store<T> {
  return { held: null, version: 0 };
}

/** RS-23: the verdict, and the store after it. Only `accepted` changes the store. */
export function reduce<T>(
  store: Store<T>,
  incoming: Incoming<T>,
  same: (a: T, b: T) => boolean,
): { verdict: Verdict; store: Store<T> } {
  const verdict = judge(store, incoming, same);
  if (verdict !== 'accepted') {
    return { verdict, store };
  }
  const { epoch, revision, content } = incoming;
  return { verdict, store: { held: { epoch, revision, content }, version: store.version + 1 } };
}

function judge<T>(
  { held }: Store<T>,
  incoming: Incoming<T>,
  same: (a: T, b: T) => boolean,
): Verdict {
  const { epoch, revision, authoritative } = incoming;
  const readable =
    epoch !== '' && Number.isInteger(revision) && revision >= 1 && revision <= MAX_REVISION;
  if (!readable) {
    return 'stale';
  }
  if (incoming.innerMalformed) {
    return 'conflict';
  }
  if (held === null || held.epoch !== epoch) {
    return authoritative ? 'accepted' : 'conflict';
  }
  if (revision < held.revision) {
    return 'stale';
  }
  if (revision > held.revision) {
    return 'accepted';
  }
  return same(held.content, incoming.content) ? 'duplicate' : 'conflict';
}
