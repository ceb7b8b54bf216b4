// Scenes with other machines: connected, waiting, refused, one that tells less, and their settings.

import type {
  HostView,
  LegacyState,
  ProjectView,
  RuntimeSession,
  RuntimeState,
  SessionRow,
  TabView,
  TopicStatus,
} from '../port/contract';
import type { Scene } from '../port/fake';
import { PortError } from '../port/port';
import { CONVERSATION, HEX, MINUTE, NOW, scene } from './material';
import type { Shot } from './scenes';

const BUILDBOX = HEX('b');
const ATTIC = HEX('c');
const ROOT = '/srv/src/holdfast';

function host(hostId: string, name: string, more: Partial<HostView> = {}): HostView {
  return {
    hostId,
    name,
    way: { kind: 'ssh', destination: `mei@${name}`, program: '' },
    hasToken: false,
    state: 'connected',
    code: '',
    message: '',
    retryInMs: null,
    stale: 0,
    conflicts: 0,
    failures: 0,
    ...more,
  };
}

const CONNECTED = host(BUILDBOX, 'buildbox');
const WAITING = host(BUILDBOX, 'buildbox', {
  state: 'waiting',
  code: 'host_unreachable',
  message: 'the host could not be reached (connection timed out); nothing was sent',
  retryInMs: 9_400,
});
const REFUSED = host(BUILDBOX, 'buildbox', {
  way: { kind: 'direct', url: 'https://buildbox.lan:8443' },
  hasToken: true,
  state: 'refused',
  code: 'host_unauthorized',
  message: 'the host does not accept the token; nothing was done; check the token of this host',
});
const ATTIC_AWAY = host(ATTIC, 'attic-mini', {
  way: { kind: 'direct', url: 'https://attic-mini.lan:8443' },
  hasToken: true,
  state: 'waiting',
  code: 'host_unreachable',
  message: 'the host could not be reached (no route); nothing was sent',
  retryInMs: 24_000,
});

interface Far {
  id: string;
  title: string;
  status: TopicStatus;
  jobs?: number;
  unresolved?: number;
}

const FAR: Far[] = [
  { id: HEX('2'), title: 'Cross-compile for arm64', status: 'thinking' },
  { id: HEX('3'), title: 'Nightly fuzz run', status: 'idle', jobs: 1 },
  { id: HEX('4'), title: 'Bisect the slow start', status: 'waiting_confirmation' },
];
const ATTIC_FAR: Far[] = [
  { id: HEX('5'), title: 'Sort the photo archive', status: 'streaming', unresolved: 1 },
];

function rowOf(far: Far, root: string): SessionRow {
  return {
    sessionId: far.id,
    sessionPath: `session-id:${far.id}`,
    title: far.title,
    workspace: root,
    updatedAt: NOW - MINUTE,
    state: {
      open: true,
      phase: 'idle',
      turnStatus: '',
      pendingPrompt: false,
      backgroundJobs: far.jobs ?? 0,
      unresolved: far.unresolved ?? 0,
    },
  };
}

const thinking = (before: RuntimeState): RuntimeState => ({
  ...before,
  phase: 'executing',
  running: true,
  turnStatus: 'in_progress',
  activity: 'thinking',
  cancellable: true,
});

/** The usual scene with machines beside it; the first far session is in the active tab. */
function withHosts(hosts: HostView[], legacy?: LegacyState, draft = ''): Scene {
  const made = scene({ status: 'idle' });
  const here = made.layout.tabs;
  const isAway = (hostId: string) =>
    hosts.find((one) => one.hostId === hostId)?.state !== 'connected';
  const places = [
    { hostId: BUILDBOX, name: 'holdfast', root: ROOT, rows: FAR },
    { hostId: ATTIC, name: 'photos', root: '/home/mei/photos', rows: ATTIC_FAR },
  ].filter(({ hostId }) => hosts.some((one) => one.hostId === hostId));
  const tab: TabView = {
    ...here[0]!,
    tabId: 'tab-far',
    sessionId: FAR[0]!.id,
    sessionPath: `session-id:${FAR[0]!.id}`,
    title: FAR[0]!.title,
    workspaceRoot: ROOT,
    remote: true,
    hostId: BUILDBOX,
    draft,
  };
  const model: RuntimeSession = made.projection.sessions[0]!;
  const freshness = isAway(BUILDBOX) ? 'unknown' : 'synced';
  const session: RuntimeSession = {
    ...model,
    tabId: tab.tabId,
    scope: BUILDBOX,
    workspaceRoot: ROOT,
    topicId: tab.sessionId,
    sessionPath: tab.sessionPath,
    remote: true,
    hostId: BUILDBOX,
    freshness,
    state: legacy ?? thinking(model.state as RuntimeState),
  };
  const projects: ProjectView[] = places.map(({ hostId, name, root, rows }) => ({
    hostId,
    workspaceRoot: root,
    name,
    missing: false,
    sessions: rows.map((row) => rowOf(row, root)),
  }));
  const topics = places.flatMap(({ hostId, root, rows }) =>
    rows.map((row) => ({
      scope: hostId,
      workspaceRoot: root,
      topicId: row.id,
      title: row.title,
      status: row.status,
      backgroundJobs: row.jobs ?? 0,
      unresolved: row.unresolved ?? 0,
      freshness: isAway(hostId) ? ('unknown' as const) : ('synced' as const),
    })),
  );
  return {
    ...made,
    hosts,
    layout: { tabs: [here[0]!, tab, here[2]!], active: tab.tabId },
    projects: [...made.projects.slice(0, 1), ...projects],
    projection: {
      ...made.projection,
      sessions: [...made.projection.sessions, session],
      topics: [...made.projection.topics, ...topics],
    },
    transcripts: {
      ...made.transcripts,
      [tab.tabId]: {
        items: CONVERSATION.slice(0, 5).reverse(),
        live: null,
        before: null,
        upTo: 'e.0',
      },
    },
    frames: [],
  };
}

const PAGE = { keys: ['Control+,'], press: ['dialog nav button >> nth=3'] };
const TOKEN_REFUSED = new PortError(
  'host_unauthorized',
  'the host does not accept the token; nothing was done; check the token of this host',
);

export const HOST_SHOTS: Record<string, () => Shot> = {
  'host-connected': () => ({ scene: withHosts([CONNECTED]) }),
  'host-waiting': () => ({
    scene: withHosts([WAITING], undefined, 'Then strip the binary and measure it'),
  }),
  'host-connecting': () => ({ scene: withHosts([{ ...CONNECTED, state: 'connecting' }]) }),
  'host-refused': () => ({ scene: withHosts([REFUSED]) }),
  'host-legacy': () => ({
    scene: withHosts([CONNECTED], { schemaVersion: 0, phase: 'executing', running: true }),
  }),
  'host-two': () => ({ scene: withHosts([CONNECTED, ATTIC_AWAY]) }),
  'host-folder': () => ({
    scene: withHosts([CONNECTED, ATTIC_AWAY]),
    press: ['nav .host .tools > button'],
  }),
  'settings-hosts': () => ({
    scene: withHosts([CONNECTED, ATTIC_AWAY, { ...REFUSED, hostId: HEX('d'), name: 'old-tower' }]),
    ...PAGE,
  }),
  'settings-hosts-none': () => ({ scene: scene({ status: 'idle' }), ...PAGE }),
  'settings-host': () => ({
    scene: { ...withHosts([REFUSED]), refused: { test_host: TOKEN_REFUSED } },
    keys: PAGE.keys,
    press: [...PAGE.press, 'dialog li button >> nth=1', 'text=/^(Test|测试)$/'],
  }),
  'settings-host-new': () => ({
    scene: scene({ status: 'idle' }),
    keys: PAGE.keys,
    press: [...PAGE.press, '.add button'],
  }),
  'settings-host-remove': () => ({
    scene: withHosts([CONNECTED]),
    keys: PAGE.keys,
    press: [...PAGE.press, 'dialog li button >> nth=1'],
  }),
};
