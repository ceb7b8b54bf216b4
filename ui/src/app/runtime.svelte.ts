// The runtime projection as the screen reads it. Every indicator asks here and nowhere else; what
// the backend's projection does not say is not shown.

import type { Freshness, ProjectView, RuntimeSession, Topic, TopicStatus } from '../port/contract';
import type { RuntimeView } from '../runtime/store';

/** What one indicator shows. */
export interface Indicator {
  status: TopicStatus;
  backgroundJobs: number;
  unresolved: number;
  /** It is known to be so now. */
  confirmed: boolean;
}

/** RS-15: the order in which states win, for sums over sessions. */
const PRIORITY: readonly TopicStatus[] = [
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

/** For a project a person's answer comes first: it is what the badge is for. */
const PROJECT_PRIORITY: readonly TopicStatus[] = [
  'waiting_confirmation',
  ...PRIORITY.filter((status) => status !== 'waiting_confirmation'),
];

/** Where a session is: its machine (empty for this one), and its id there. */
export interface Place {
  hostId: string;
  sessionId: string;
}

/** The projection's word for a machine. */
function scopeOf(hostId: string): string {
  return hostId === '' ? 'local' : hostId;
}

function keyOf(scope: string, sessionId: string): string {
  return `${scope}\0${sessionId}`;
}

function grouped<T>(all: readonly T[], keyOfOne: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) {
    const key = keyOfOne(one);
    const group = groups.get(key);
    if (group === undefined) {
      groups.set(key, [one]);
    } else {
      group.push(one);
    }
  }
  return groups;
}

export class RuntimeMirror {
  view = $state.raw<RuntimeView>({ sessions: [], topics: [], failed: false, empty: true });
  /** When the next try is due, Unix milliseconds; `null` while none waits. */
  retryAt = $state<number | null>(null);

  readonly #topics = $derived(
    new Map(this.view.topics.map((topic) => [keyOf(topic.scope, topic.topicId), topic])),
  );

  // Looked up by every row and tab at each change: a thousand of them, and each finds its own at once.
  readonly #byTab = $derived(
    new Map(this.view.sessions.map((session) => [session.tabId, session])),
  );
  readonly #sessions = $derived(
    grouped(this.view.sessions, (session) => keyOf(session.scope, session.topicId)),
  );
  readonly #projects = $derived(
    grouped(this.view.topics, (topic) => keyOf(topic.scope, topic.workspaceRoot)),
  );

  readonly #shown = new Map<string, Indicator>();

  /** The session as the tab has it. */
  session(tabId: string): RuntimeSession | undefined {
    return this.#byTab.get(tabId);
  }

  /** RS-17: a session is one of its machine; the same id on two machines is two sessions. */
  topic(place: Place): Topic | undefined {
    return this.#topics.get(keyOf(scopeOf(place.hostId), place.sessionId));
  }

  /** RS-25: nothing is confirmed while the store is marked failed. */
  confirmed(freshness: Freshness | undefined): boolean {
    return !this.view.failed && freshness === 'synced';
  }

  /** The indicator of a session's row or tab; `null` when the projection does not name it. */
  indicator(place: Place): Indicator | null {
    const key = keyOf(scopeOf(place.hostId), place.sessionId);
    const topic = this.#topics.get(key);
    if (topic === undefined) {
      return null;
    }
    const sessions = this.#sessions.get(key) ?? [];
    return this.#same(key, {
      status: topic.status,
      backgroundJobs: topic.backgroundJobs,
      unresolved: topic.unresolved,
      confirmed:
        this.confirmed(topic.freshness) &&
        sessions.every((session) => session.freshness === 'synced'),
    });
  }

  /** The object of before while it says the same: what shows it is then not drawn anew. */
  #same(key: string, next: Indicator): Indicator {
    const before = this.#shown.get(key);
    const isSame =
      before?.status === next.status &&
      before.backgroundJobs === next.backgroundJobs &&
      before.unresolved === next.unresolved &&
      before.confirmed === next.confirmed;
    if (isSame) {
      return before;
    }
    this.#shown.set(key, next);
    return next;
  }

  /** RS-17: the sum over a project's sessions. A session is one topic, however many tabs show it. */
  project(project: ProjectView): Indicator {
    const topics = this.#projects.get(keyOf(scopeOf(project.hostId), project.workspaceRoot)) ?? [];
    const status =
      PROJECT_PRIORITY.find((word) => topics.some((topic) => topic.status === word)) ?? 'idle';
    const sum = (of: (topic: Topic) => number) => topics.reduce((all, topic) => all + of(topic), 0);
    return {
      status,
      backgroundJobs: sum((topic) => topic.backgroundJobs),
      unresolved: sum((topic) => topic.unresolved),
      confirmed: !this.view.failed && topics.every((topic) => topic.freshness === 'synced'),
    };
  }
}
