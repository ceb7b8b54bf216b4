// Reading a projection that came over a wire: what is malformed is told apart from what is new.

import type { Freshness, RuntimeSession, RuntimeStateProjection, Topic } from '../port/contract';
import type { Incoming } from './reduce';

const PHASES = ['idle', 'executing', 'finishing', 'closed'];
const TURN_STATUSES = ['', 'in_progress', 'completed', 'failed', 'cancelled', 'interrupted'];
const ACTIVITIES = ['', 'streaming', 'thinking'];
const OUTCOMES = ['', 'error', 'paused', 'awaiting_delivery'];
const LEGACY_PHASES = ['idle', 'executing'];
const STATUSES = [
  'finishing',
  'cancelling',
  'waiting_confirmation',
  'streaming',
  'thinking',
  'background_jobs',
  'error',
  'paused',
  'awaiting_delivery',
  'idle',
];
const EMPTY: RuntimeStateProjection = { epoch: '', revision: 0, sessions: [], topics: [] };

/** A payload as the reducer takes it. Malformed as a whole: empty epoch, revision 0. */
export function incoming(
  payload: unknown,
  authoritative: boolean,
): Incoming<RuntimeStateProjection> {
  if (!isProjection(payload)) {
    return { epoch: '', revision: 0, innerMalformed: false, authoritative, content: EMPTY };
  }
  return {
    epoch: payload.epoch,
    revision: payload.revision,
    innerMalformed: !payload.sessions.every(isSession),
    authoritative,
    content: payload,
  };
}

/** The payload has the form of a projection; its sessions may still be malformed inside. */
export function isProjection(payload: unknown): payload is RuntimeStateProjection {
  return (
    isRecord(payload) &&
    typeof payload.epoch === 'string' &&
    typeof payload.revision === 'number' &&
    Array.isArray(payload.sessions) &&
    Array.isArray(payload.topics) &&
    payload.topics.every(isTopic)
  );
}

function isTopic(topic: unknown): topic is Topic {
  return (
    isRecord(topic) &&
    [topic.scope, topic.workspaceRoot, topic.topicId, topic.title].every(isText) &&
    STATUSES.includes(topic.status as string) &&
    [topic.backgroundJobs, topic.unresolved].every(isCount) &&
    isFreshness(topic.freshness)
  );
}

function isSession(session: unknown): session is RuntimeSession {
  return (
    isRecord(session) &&
    [session.tabId, session.scope, session.workspaceRoot].every(isText) &&
    [session.topicId, session.sessionPath].every(isText) &&
    isCount(session.sessionGeneration) &&
    [session.open, session.remote].every((flag) => typeof flag === 'boolean') &&
    (session.hostId === undefined || session.hostId === null || isText(session.hostId)) &&
    isFreshness(session.freshness) &&
    isState(session.state)
  );
}

/**
 * RS-06; a state of schema 0 is exempt (RS-14), but that its host can't know of finishing: where it
 * says so all the same, somebody guessed (RS-03).
 */
export function isState(state: unknown): boolean {
  if (!isRecord(state)) {
    return false;
  }
  if (state.schemaVersion === 0) {
    return LEGACY_PHASES.includes(state.phase as string);
  }
  const counts = [state.backgroundJobs, state.turnEventSeq, state.unresolved];
  const flags = [state.running, state.pendingPrompt, state.cancelRequested, state.cancellable];
  return (
    state.schemaVersion === 1 &&
    typeof state.runtimeEpoch === 'string' &&
    state.runtimeEpoch !== '' &&
    isCount(state.revision) &&
    state.revision >= 1 &&
    PHASES.includes(state.phase as string) &&
    TURN_STATUSES.includes(state.turnStatus as string) &&
    ACTIVITIES.includes(state.activity as string) &&
    OUTCOMES.includes(state.outcome as string) &&
    typeof state.turnId === 'string' &&
    counts.every(isCount) &&
    flags.every((flag) => typeof flag === 'boolean')
  );
}

function isFreshness(value: unknown): value is Freshness {
  return value === 'synced' || value === 'unknown';
}

function isText(value: unknown): value is string {
  return typeof value === 'string';
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Equality of whole contents (RS-11), whatever the order of their keys. */
export function sameContent(a: unknown, b: unknown): boolean {
  if (a === b) {
    return true;
  }
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((value, index) => sameContent(value, b[index]));
  }
  if (!isRecord(a) || !isRecord(b)) {
    return false;
  }
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && sameContent(a[key], b[key]))
  );
}
