// The types of the app operations and events, in the shape in which they are on the wire.
//
// Guarantee: names and fields are those of the backend's table; nothing is added here.

export type Freshness = 'synced' | 'unknown';
export type Phase = 'idle' | 'executing' | 'finishing' | 'closed';
export type Activity = '' | 'streaming' | 'thinking';
export type TurnStatus = '' | 'in_progress' | 'completed' | 'failed' | 'cancelled' | 'interrupted';
export type Outcome = '' | 'error' | 'paused' | 'awaiting_delivery';
export type TopicStatus =
  | 'finishing'
  | 'cancelling'
  | 'waiting_confirmation'
  | 'streaming'
  | 'thinking'
  | 'background_jobs'
  | 'error'
  | 'paused'
  | 'awaiting_delivery'
  | 'idle';

export type Nothing = Record<string, never>;
export type Tab = { tabId: string };
export type TabRecovery = { tabId: string; request: ActionRequest };
export type TabSubmit = { tabId: string; input: string; submissionId: string };
export type TabCancel = { tabId: string; turnId: string };
export type CancelReply = { alreadyEnded: boolean };
export type TabApprove = {
  tabId: string;
  id: string;
  generation: number;
  allow: boolean;
  scope: string;
  reason: string;
};
export type TabPage = { tabId: string; before: number | null; limit: number };
export type TabAttempt = { tabId: string; attemptId: string; offset?: number };
export type TabJob = { tabId: string; id: string };

/** RS-04. */
export type RuntimeState = {
  schemaVersion: number;
  runtimeEpoch: string;
  revision: number;
  phase: Phase;
  running: boolean;
  turnId: string;
  turnStatus: TurnStatus;
  turnEventSeq: number;
  pendingPrompt: boolean;
  cancelRequested: boolean;
  cancellable: boolean;
  backgroundJobs: number;
  activity: Activity;
  unresolved: number;
  outcome: Outcome;
};

/** RS-18. */
export type RuntimeStateProjection = {
  epoch: string;
  revision: number;
  sessions: RuntimeSession[];
  topics: Topic[];
};
export type RuntimeSession = {
  tabId: string;
  scope: string;
  workspaceRoot: string;
  topicId: string;
  sessionPath: string;
  sessionGeneration: number;
  open: boolean;
  remote: boolean;
  hostId?: string | null;
  freshness: Freshness;
  state: RuntimeState;
};
export type Topic = {
  scope: string;
  workspaceRoot: string;
  topicId: string;
  title: string;
  status: TopicStatus;
  backgroundJobs: number;
  unresolved: number;
};

export type TabView = {
  tabId: string;
  sessionId: string;
  sessionPath: string;
  sessionGeneration: number;
  title: string;
  workspaceRoot: string;
  model: string;
  mode: string;
  draft: string;
  remote: boolean;
  problem: string;
};
export type Layout = { tabs: TabView[]; active: string };
export type ProjectView = {
  workspaceRoot: string;
  name: string;
  missing: boolean;
  sessions: SessionRow[];
};
export type ProjectList = { projects: ProjectView[] };
export type ProjectFolder = { path: string };
export type NewSession = { workspaceRoot: string; model?: string; mode?: string };
export type OpenSession = { sessionId: string };
export type ActiveTab = { tabId: string };
export type Draft = { tabId: string; text: string };
export type SessionChange = {
  sessionId: string;
  title?: string | null;
  mode?: string | null;
  model?: string | null;
  archived?: boolean | null;
};
export type ModelView = { id: string; demo: boolean; problem: string };
export type ModelList = { defaultModel: string; models: ModelView[] };
export type Settings = {
  theme: string;
  language: string;
  fontSize: number;
  mode: string;
  model: string;
  dataFolder: string;
  retryEnabled: boolean;
  version: string;
};
export type ProviderView = {
  name: string;
  baseUrl: string;
  models: string[];
  apiKeyEnv: string;
  hasKey: boolean;
};
export type ProviderList = { providers: ProviderView[] };
export type ProviderChange = { name: string; baseUrl: string; models: string[]; apiKey?: string };
export type ProviderCheck = { ok: boolean; code: string; message: string };

export type SessionState = {
  open: boolean;
  phase: string;
  turnStatus: string;
  pendingPrompt: boolean;
  backgroundJobs: number;
  unresolved: number;
  problem?: string | null;
};
export type SessionRow = {
  sessionId: string;
  sessionPath: string;
  title: string;
  workspace: string;
  updatedAt: number;
  state: SessionState;
};
export type SessionsQuery = {
  query?: string | null;
  cursor?: string | null;
  limit?: number | null;
};
export type SessionsPage = { items: SessionRow[]; next: string | null };
export type Submitted = { turnId: string; duplicate: boolean };
export type PendingPrompt = { promptId: string; kind: string; turnId: string; approval: Approval };
export type Approval = {
  id: string;
  tool: string;
  subject: string;
  diff?: string | null;
  generation: number;
  scopes: string[];
  callId: string;
  reason: string;
};
export type Job = {
  id: string;
  subject: string;
  startedAt: number | null;
  kind: string;
  stopping: boolean;
};

export type JsonValue =
  null | boolean | number | string | JsonValue[] | { [key in string]: JsonValue };
export type ToolView = {
  id: string;
  name: string;
  args: JsonValue;
  state: string;
  code?: string | null;
  readOnly: boolean;
  resultSource?: string | null;
  output: string;
  truncated: boolean;
  attemptId: string;
  effectSummary?: string;
  diff?: string | null;
  exitCode?: number | null;
  durationMs?: number | null;
  startedAt?: number | null;
};
export type TranscriptItem = {
  seq: number;
  kind: string;
  text?: string | null;
  reasoning?: string | null;
  tool?: ToolView | null;
  turnId: string;
  at: number;
  partial: boolean;
};
export type TranscriptPage = { items: TranscriptItem[]; before: number | null };
export type LiveMessage = { turnId: string; text: string; reasoning: string };
export type TranscriptSnapshot = {
  items: TranscriptItem[];
  live: LiveMessage | null;
  upTo: string;
};
export type OutputPage = {
  attemptId: string;
  offset: number;
  length: number;
  text: string;
  more: boolean;
};
export type DiffReply = { attemptId: string; diff: string };

export type Usage = { input: number; output: number; cached_input: number; reasoning: number };
export type Event =
  | { kind: 'turn_started'; continuation: boolean }
  | { kind: 'text'; text: string }
  | { kind: 'reasoning'; text: string }
  | { kind: 'message'; item: TranscriptItem }
  | { kind: 'usage'; usage: Usage }
  | { kind: 'tool_dispatch'; tool: ToolView }
  | { kind: 'tool_started'; tool: ToolView }
  | { kind: 'tool_progress'; id: string; attemptId: string; text: string }
  | { kind: 'tool_result'; tool: ToolView }
  | { kind: 'approval_request'; prompt: PendingPrompt }
  | { kind: 'prompt_answered'; promptId: string; allow: boolean }
  | { kind: 'job_changed'; id: string; ended: boolean }
  | { kind: 'retrying'; attempt: number; waitMs: number; code: string; message: string }
  | { kind: 'notice'; code: string; message: string }
  | { kind: 'turn_done'; status: string; code: string; message: string }
  | { kind: 'session_changed'; sessionPath: string }
  | {
      kind: 'runtime_state';
      sessionPath: string;
      sessionCurrent: boolean;
      runtimeState: RuntimeState;
    }
  | { kind: 'gap' };
export type Frame = { sessionId: string; turnId: string; seq?: number | null } & Event;
export type NumberedFrame = { id: string; frame: Frame };
export type SessionFrames = { frames: NumberedFrame[] };
export type Resync = { recoveryVersion: number };
export type RemoteTab = { tabId: string };
export type AppEvent =
  | { event: 'runtime-state:changed'; payload: RuntimeStateProjection }
  | { event: 'desktop:resync'; payload: Resync }
  | { event: 'remote-tab:updated'; payload: RemoteTab }
  | { event: 'session:frames'; payload: SessionFrames };

export type Action = 'inspect' | 'confirm' | 'reject' | 'retry' | 'dismiss';
export type ActionRequest = {
  sessionPath: string;
  runtimeEpoch: string;
  revision: string;
  attemptId: string;
  inspectionId?: string;
  action: Action;
};
export type Identity = {
  session_id: string;
  turn_id: string;
  step: number;
  call_id: string;
  canonical_tool: string;
  argument_digest: string;
  attempt_id: string;
  resource_scope: string;
};
export type AttemptState =
  | 'pending'
  | 'started'
  | 'running'
  | 'completed'
  | 'failed'
  | 'cancelled'
  | 'not_started'
  | 'unknown'
  | 'user_confirmed'
  | 'interrupted'
  | 'user_dismissed';
export type Resolution = 'confirm' | 'reject' | 'dismiss';
export type ResultSource = 'live' | 'recovered' | 'synthetic';
export type InspectionState = 'present' | 'postcondition_satisfied' | 'absent_fenced' | 'unknown';
export type Straggler = { pid: number; name: string };
export type Evidence =
  | { file: { path: string; before: string; after: string; now: string | null } }
  | {
      process: { alive: boolean; ended_by: string; exit: number | null; stragglers?: Straggler[] };
    }
  | 'none';
export type CallRecord = {
  identity: Identity;
  state: AttemptState;
  read_only: boolean;
  arguments?: JsonValue;
  idempotency_key: string;
  subject: string;
  started_at: number | null;
  finished_at: number | null;
  resolved_at: number | null;
  result_digest: string | null;
  result_source: ResultSource | null;
  effect_summary: string;
  resolution: Resolution | null;
  resolution_source: string;
  inspection_id: string;
  inspection_state: InspectionState | null;
  inspection_evidence: Evidence | null;
  inspection_summary: string;
  superseded_by: string | null;
};
export type Statistics = {
  unknown: number;
  confirmed: number;
  retried: number;
  rejected: number;
  blocked: number;
  dismissed: number;
};
export type ToolRecoverySnapshot = {
  silent: boolean;
  statistics: Statistics;
  sessionPath: string;
  runtimeEpoch: string;
  revision: string;
  calls: CallRecord[];
  retryEnabled: boolean;
  dismissEnabled: boolean;
};
export type ErrorBody = { code: string; message: string; snapshot?: ToolRecoverySnapshot | null };
