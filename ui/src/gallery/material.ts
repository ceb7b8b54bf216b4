// The material of the gallery's scenes: sessions, conversations, calls, recovery, on the wire.

import type {
  PendingPrompt,
  RuntimeSession,
  RuntimeState,
  SessionRow,
  TabView,
  ToolRecoverySnapshot,
  ToolView,
  Topic,
  TopicStatus,
  TranscriptItem,
} from '../port/contract';
import type { Scene } from '../port/fake';

export const NOW = Date.now();
export const MINUTE = 60_000;
export const HEX = (digit: string) => digit.repeat(32);

const PARSER = '/home/mei/src/holdfast';
const SITE = '/home/mei/src/website';

interface Row {
  id: string;
  title: string;
  root: string;
  status: TopicStatus;
  jobs?: number;
  unresolved?: number;
}

export const ROWS: Row[] = [
  { id: HEX('a'), title: 'Fix the empty-line parser', root: PARSER, status: 'thinking' },
  { id: HEX('b'), title: 'Deploy to buildbox', root: PARSER, status: 'idle', jobs: 2 },
  { id: HEX('c'), title: 'Rename the config keys', root: PARSER, status: 'idle', unresolved: 2 },
  { id: HEX('d'), title: 'Retry with backoff', root: PARSER, status: 'error' },
  { id: HEX('e'), title: 'New landing page', root: SITE, status: 'waiting_confirmation' },
  { id: HEX('f'), title: 'Compress the images', root: SITE, status: 'streaming' },
  { id: HEX('1'), title: 'Broken links in the archive', root: SITE, status: 'idle' },
];

const WORDS: TopicStatus[] = [
  'idle',
  'finishing',
  'cancelling',
  'waiting_confirmation',
  'streaming',
  'thinking',
  'background_jobs',
  'error',
  'paused',
  'awaiting_delivery',
];

/**
 * A session in every state (RS-15), and one with an unknown outcome. ui/scripts/states.mjs knows the
 * order.
 */
export const EVERY_STATE: Row[] = [
  ...WORDS.map((status, n) => ({
    id: HEX(n.toString(16)),
    title: 'A session',
    root: PARSER,
    status,
    jobs: status === 'background_jobs' ? 2 : 0,
  })),
  { id: HEX('d'), title: 'A session', root: PARSER, status: 'idle', unresolved: 1 },
];

function runtime(row: Row, more: Partial<RuntimeState> = {}): RuntimeState {
  const busy = ['thinking', 'streaming', 'waiting_confirmation', 'cancelling'].includes(row.status);
  return {
    schemaVersion: 1,
    runtimeEpoch: HEX('9'),
    revision: 7,
    phase: row.status === 'finishing' ? 'finishing' : busy ? 'executing' : 'idle',
    running: busy,
    turnId: 'turn-1',
    turnStatus: busy ? 'in_progress' : row.status === 'error' ? 'failed' : 'completed',
    turnEventSeq: 12,
    pendingPrompt: row.status === 'waiting_confirmation',
    cancelRequested: row.status === 'cancelling',
    cancellable: busy,
    backgroundJobs: row.jobs ?? 0,
    activity: row.status === 'streaming' ? 'streaming' : busy ? 'thinking' : '',
    unresolved: row.unresolved ?? 0,
    outcome: row.status === 'error' ? 'error' : '',
    ...more,
  };
}

function tabOf(row: Row, more: Partial<TabView> = {}): TabView {
  return {
    tabId: `tab-${row.id.slice(0, 2)}`,
    sessionId: row.id,
    sessionPath: `session-id:${row.id}`,
    sessionGeneration: 1,
    title: row.title,
    workspaceRoot: row.root,
    model: 'deepseek/deepseek-chat',
    mode: 'ask',
    draft: '',
    remote: false,
    hostId: '',
    problem: '',
    ...more,
  };
}

function sessionRow(row: Row): SessionRow {
  return {
    sessionId: row.id,
    sessionPath: `session-id:${row.id}`,
    title: row.title,
    workspace: row.root,
    updatedAt: NOW - MINUTE,
    state: {
      open: true,
      phase: 'idle',
      turnStatus: '',
      pendingPrompt: false,
      backgroundJobs: row.jobs ?? 0,
      unresolved: row.unresolved ?? 0,
    },
  };
}

let seq = 0;
export function item(kind: string, more: Partial<TranscriptItem>): TranscriptItem {
  seq += 1;
  return { seq, kind, turnId: 'turn-1', at: NOW - (60 - seq) * MINUTE, partial: false, ...more };
}
const user = (text: string) => item('user', { text });
const model = (text: string, more: Partial<TranscriptItem> = {}) =>
  item('assistant', { text, ...more });
const note = (text: string) => item('note', { text });

let calls = 0;
function tool(name: string, args: ToolView['args'], more: Partial<ToolView> = {}): TranscriptItem {
  calls += 1;
  return item('tool', {
    tool: {
      id: `call-${calls}`,
      name,
      args,
      state: 'completed',
      readOnly: ['read_file', 'grep', 'glob', 'list_dir'].includes(name),
      resultSource: more.state === undefined || more.state === 'completed' ? 'live' : null,
      output: '',
      truncated: false,
      attemptId: `attempt-${calls}`,
      ...more,
    },
  });
}

export const DIFF = `--- a/src/parse/lines.rs
+++ b/src/parse/lines.rs
@@ -41,12 +41,15 @@ impl<'a> Lines<'a> {
     /// The next line without its end.
     pub fn next_line(&mut self) -> Option<&'a str> {
         let rest = self.rest?;
-        let (line, rest) = rest.split_once('\\n')?;
-        self.rest = Some(rest);
+        let Some((line, rest)) = rest.split_once('\\n') else {
+            // The last line has no end; an empty one is still a line.
+            self.rest = None;
+            return Some(rest);
+        };
+        self.rest = Some(rest);
         Some(line.trim_end_matches('\\r'))
     }
 
     /// Lines so far.
     pub fn count(&self) -> usize {
         self.count
`;

export const NEW_FILE = `--- /dev/null
+++ b/tests/empty_lines.rs
@@ -0,0 +1,9 @@
+use parser::Lines;
+
+#[test]
+fn an_empty_last_line_is_a_line() {
+    let mut lines = Lines::of("a\\n");
+    assert_eq!(lines.next_line(), Some("a"));
+    assert_eq!(lines.next_line(), Some(""));
+    assert_eq!(lines.next_line(), None);
+}
`;

export const TESTS = `\u001b[1m\u001b[32m   Compiling\u001b[0m parser v0.4.1 (/home/mei/src/holdfast)
\u001b[1m\u001b[32m    Finished\u001b[0m test profile in 2.31s
\u001b[1m\u001b[32m     Running\u001b[0m tests/empty_lines.rs

running 3 tests
test an_empty_last_line_is_a_line ... \u001b[32mok\u001b[0m
test carriage_returns_are_cut ... \u001b[32mok\u001b[0m
test a_file_without_an_end ... \u001b[32mok\u001b[0m

test result: \u001b[32mok\u001b[0m. 3 passed; 0 failed; 0 ignored; finished in 0.01s`;

const FAILED = `running 3 tests
test an_empty_last_line_is_a_line ... \u001b[31mFAILED\u001b[0m
test carriage_returns_are_cut ... \u001b[32mok\u001b[0m

---- an_empty_last_line_is_a_line stdout ----
assertion \`left == right\` failed
  left: None
 right: Some("")

test result: \u001b[31mFAILED\u001b[0m. 2 passed; 1 failed`;

export const ANSWER = `The parser drops the last line when it is empty: \`split_once\` returns \`None\` there, and the \`?\` ends the loop one line too early.

Two things follow from that:

- a file that ends with a newline loses its **empty last line**;
- \`count()\` is then one lower than what editors show.

I kept the signature and changed the loop alone:

\`\`\`rust
let Some((line, rest)) = rest.split_once('\\n') else {
    self.rest = None;
    return Some(rest);
};
\`\`\`

All three tests pass. See [the rule on final newlines](https://example.com/newlines) for why the old behaviour was wrong.`;

export const CONVERSATION = [
  user('Lines::next_line loses an empty last line. Find out why and fix it, with a test.'),
  model('I look at the parser and at what calls it first.', {
    reasoning:
      'The iterator returns an Option. split_once returns None when no newline is left.\nSo the last line is lost if it has no end. Check the callers before changing it.',
  }),
  tool(
    'grep',
    { pattern: 'next_line', path: 'src' },
    { output: 'src/parse/lines.rs:42\nsrc/main.rs:17', durationMs: 40 },
  ),
  tool('read_file', { path: 'src/parse/lines.rs' }, { output: '…', durationMs: 12 }),
  tool(
    'edit_file',
    { path: 'src/parse/lines.rs', edits: [] },
    { diff: DIFF, output: 'edited', durationMs: 31 },
  ),
  tool(
    'shell',
    { command: 'cargo test -p parser --test empty_lines', timeout_s: 120 },
    { output: TESTS, exitCode: 0, durationMs: 4_210, name: 'shell' },
  ),
  model(ANSWER),
];

function projection(
  rows: Row[],
  tabs: TabView[],
  change: (row: Row) => Partial<RuntimeState>,
  freshness: RuntimeSession['freshness'],
) {
  const sessions: RuntimeSession[] = tabs.map((tab) => {
    const row = rows.find(({ id }) => id === tab.sessionId) ?? ROWS[0]!;
    return {
      tabId: tab.tabId,
      scope: 'local',
      workspaceRoot: row.root,
      topicId: row.id,
      sessionPath: tab.sessionPath,
      sessionGeneration: 1,
      open: true,
      remote: false,
      freshness,
      state: runtime(row, change(row)),
    };
  });
  const topics: Topic[] = rows.map((row) => ({
    scope: 'local',
    workspaceRoot: row.root,
    topicId: row.id,
    title: row.title,
    status: row.status,
    backgroundJobs: row.jobs ?? 0,
    unresolved: row.unresolved ?? 0,
    freshness,
  }));
  return { epoch: HEX('8'), revision: 3, sessions, topics };
}

interface Options {
  rows?: Row[];
  /** State of the first session, the active one. */
  status?: TopicStatus;
  unresolved?: number;
  items?: TranscriptItem[];
  live?: { text: string; reasoning: string };
  prompts?: PendingPrompt[];
  state?: Partial<RuntimeState>;
  freshness?: RuntimeSession['freshness'];
  draft?: string;
  recovery?: ToolRecoverySnapshot;
  scene?: Partial<Scene>;
  demo?: boolean;
  mode?: string;
  problem?: string;
}

export function scene(options: Options = {}): Scene {
  const [first, ...others] = options.rows ?? ROWS;
  const rows = first
    ? [
        {
          ...first,
          status: options.status ?? first.status,
          unresolved: options.unresolved ?? first.unresolved ?? 0,
        },
        ...others,
      ]
    : [];
  const open = [rows[0], rows[1], rows[4]].filter((row) => row !== undefined);
  const tabs = open.map((row, index) =>
    tabOf(
      row,
      index === 0
        ? {
            draft: options.draft ?? '',
            mode: options.mode ?? 'ask',
            model: options.demo ? 'demo/scripted' : 'deepseek/deepseek-chat',
            problem: options.problem ?? '',
          }
        : {},
    ),
  );
  const active = tabs[0]?.tabId ?? '';
  const live = options.live ? { turnId: 'turn-1', ...options.live } : null;
  return {
    layout: { tabs, active },
    projects: [
      {
        hostId: '',
        workspaceRoot: PARSER,
        name: 'holdfast',
        missing: false,
        sessions: rows.filter((row) => row.root === PARSER).map(sessionRow),
      },
      {
        hostId: '',
        workspaceRoot: SITE,
        name: 'website',
        missing: false,
        sessions: rows.filter((row) => row.root === SITE).map(sessionRow),
      },
      { hostId: '', workspaceRoot: '/mnt/usb/notes', name: 'notes', missing: true, sessions: [] },
    ],
    projection: projection(
      rows,
      tabs,
      (row) => (row === rows[0] ? (options.state ?? {}) : {}),
      options.freshness ?? 'synced',
    ),
    transcripts: {
      [active]: {
        items: [...(options.items ?? CONVERSATION)].reverse(),
        live,
        before: null,
        upTo: 'e.0',
      },
    },
    prompts: { [active]: options.prompts ?? [] },
    recovery: options.recovery ? { [active]: options.recovery } : {},
    settings: {
      theme: 'light',
      language: 'en',
      fontSize: 13,
      mode: 'ask',
      model: 'deepseek/deepseek-chat',
      dataFolder: '/home/mei/.local/share/holdfast',
      retryEnabled: false,
      version: '0.1.0',
    },
    models: [
      { id: 'deepseek/deepseek-chat', demo: false, problem: '' },
      { id: 'deepseek/deepseek-reasoner', demo: false, problem: '' },
      { id: 'local/qwen3-coder', demo: false, problem: 'no key and no address' },
      { id: 'demo/scripted', demo: true, problem: '' },
    ],
    providers: [
      {
        name: 'deepseek',
        baseUrl: 'https://api.deepseek.com/v1',
        models: ['deepseek-chat', 'deepseek-reasoner'],
        apiKeyEnv: '',
        hasKey: true,
      },
      { name: 'demo', baseUrl: '', models: ['scripted'], apiKeyEnv: '', hasKey: false },
      {
        name: 'local',
        baseUrl: 'http://127.0.0.1:11434/v1',
        models: ['qwen3-coder'],
        apiKeyEnv: '',
        hasKey: false,
      },
    ],
    frames: [
      {
        id: 'e.1',
        frame: {
          sessionId: rows[0]?.id ?? '',
          turnId: 'turn-1',
          kind: 'usage',
          usage: { input: 18_420, output: 1_204, cached_input: 15_900, reasoning: 300 },
        },
      },
    ],
    jobs: [
      {
        id: 'j1',
        subject: 'npm run dev -- --port 5173',
        startedAt: NOW - 31 * MINUTE,
        kind: 'background',
        stopping: false,
        command: 'npm run dev -- --port 5173',
        callId: 'call-dev',
        pid: 4_711,
        outputLength: 1_204,
      },
      {
        id: 'j2',
        subject: 'node watch.mjs',
        startedAt: NOW - 4 * MINUTE,
        kind: 'survivors',
        stopping: true,
        command: 'node watch.mjs & sleep 1',
        callId: 'call-watch',
        pid: 4_802,
        outputLength: 0,
      },
    ],
    refused: {},
    ...options.scene,
  };
}

export function prompt(
  name: string,
  subject: string,
  more: Partial<PendingPrompt['approval']> = {},
  kind = 'approval',
): PendingPrompt {
  return {
    promptId: `prompt-${name}-${kind}`,
    kind,
    turnId: 'turn-1',
    approval: {
      id: `prompt-${name}`,
      tool: name,
      subject,
      generation: 1,
      scopes: ['once', 'session'],
      callId: 'call-asks',
      reason: '',
      ...more,
    },
  };
}

export const CARDS = [
  user('Show me every state of a call.'),
  tool('shell', { command: 'cargo build' }, { state: 'proposed', resultSource: null }),
  tool('read_file', { path: 'src/main.rs' }, { output: 'fn main() {}', durationMs: 8 }),
  tool(
    'fetch',
    { url: 'https://example.com/api' },
    {
      state: 'failed',
      resultSource: 'live',
      output: 'the server answered 503; nothing was changed; try again later',
      durationMs: 1_830,
    },
  ),
  tool(
    'shell',
    { command: 'cargo test' },
    { state: 'failed', resultSource: 'live', output: FAILED, exitCode: 101, durationMs: 3_904 },
  ),
  tool(
    'shell',
    { command: 'npm run watch' },
    { state: 'interrupted', resultSource: 'live', output: 'watching…', durationMs: 61_000 },
  ),
  tool(
    'shell',
    { command: 'rm -rf build' },
    {
      state: 'not_started',
      code: 'denied',
      resultSource: 'synthetic',
      output: 'The person denied this call: the build folder is still needed.',
    },
  ),
  tool(
    'write_file',
    { path: 'src/keys.rs', content: '' },
    {
      state: 'not_started',
      code: 'recovery_required',
      resultSource: 'synthetic',
      output: 'blocked',
    },
  ),
  tool(
    'shell',
    { command: 'npm run dev', background: true },
    { state: 'in_flight', resultSource: null, background: 'model' },
  ),
  tool(
    'shell',
    { command: 'cargo build --release' },
    {
      state: 'failed',
      resultSource: 'live',
      background: 'person',
      output: FAILED,
      exitCode: 101,
      durationMs: 312_000,
    },
  ),
  tool('shell', { command: './deploy.sh staging' }, { state: 'unknown', resultSource: null }),
  tool(
    'shell',
    { command: 'cargo test --release' },
    { resultSource: 'recovered', output: TESTS, exitCode: 0, durationMs: 94_000 },
  ),
  tool(
    'write_file',
    { path: 'CHANGELOG.md', content: '' },
    { state: 'user_confirmed', resultSource: 'synthetic' },
  ),
  tool(
    'shell',
    { command: 'git push origin main' },
    { state: 'user_dismissed', resultSource: 'synthetic' },
  ),
  tool(
    'write_file',
    { path: 'src/keys.rs', content: '' },
    { state: 'unknown', resultSource: null, supersededBy: 'attempt-again' },
  ),
  tool(
    'write_file',
    { path: 'src/keys.rs', content: '' },
    { output: 'written', retryOf: 'attempt-before' },
  ),
  tool(
    'shell',
    { command: 'git log -1' },
    { readOnly: true, output: 'commit 3f9a1c7', exitCode: 0 },
  ),
  tool('glob', { pattern: '**/*.md' }, { state: 'cancelled', resultSource: 'synthetic' }),
  note(
    'This session was continued after a restart. One call has an unknown outcome; it was not run again.',
  ),
];

export const RUNNING = tool(
  'shell',
  { command: 'cargo test --workspace' },
  {
    state: 'in_flight',
    resultSource: null,
    startedAt: NOW - 41_000,
  },
);
export const ASKING_EDIT = tool(
  'edit_file',
  { path: 'src/parse/lines.rs', edits: [] },
  { id: 'call-asks', state: 'proposed', resultSource: null },
);
export const ASKING_SHELL = tool(
  'shell',
  { command: 'cargo test -p parser' },
  { id: 'call-asks', state: 'proposed', resultSource: null },
);
export const ASKING_DEPLOY = tool(
  'shell',
  { command: './deploy.sh staging' },
  { id: 'call-asks', state: 'proposed', resultSource: null },
);
export const ASKING_WRITE = tool(
  'write_file',
  { path: 'tests/empty_lines.rs', content: '' },
  { id: 'call-asks', state: 'proposed', resultSource: null },
);
