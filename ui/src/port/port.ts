// The one way from the UI to the backend: every app operation, and the events.
//
// Guarantee: nothing else in the UI talks to the outside. A refused operation throws a PortError
// with the backend's own code and words.

import type * as wire from './contract';

/** Names of the app operations on the wire, in the order of the backend's table. */
export const OPERATIONS = [
  'get_runtime_state_snapshot',
  'sync_runtime_state',
  'get_tool_recovery_for_tab',
  'resolve_tool_recovery_for_tab',
  'get_layout',
  'new_session',
  'open_session',
  'close_tab',
  'select_tab',
  'save_draft',
  'list_projects',
  'open_project',
  'remove_project',
  'start_demo',
  'list_sessions',
  'change_session',
  'delete_session',
  'submit',
  'inbox',
  'inbox_receipt',
  'enqueue',
  'edit_item',
  'delete_item',
  'move_item',
  'pause_inbox',
  'resume_inbox',
  'cancel',
  'compact',
  'rewind',
  'fork_session',
  'pending_prompts',
  'approve',
  'transcript_snapshot',
  'transcript_page',
  'diff',
  'output',
  'jobs',
  'cancel_job',
  'background_job',
  'list_models',
  'get_settings',
  'save_settings',
  'list_providers',
  'save_provider',
  'test_provider',
  'list_hosts',
  'save_host',
  'remove_host',
  'test_host',
  'retry_host',
] as const;

export type Operation = (typeof OPERATIONS)[number];

/** All operations of the backend's table, typed. */
export interface Operations {
  getRuntimeStateSnapshot(): Promise<wire.RuntimeStateProjection>;
  syncRuntimeState(): Promise<wire.RuntimeStateProjection>;
  getToolRecoveryForTab(request: wire.Tab): Promise<wire.ToolRecoverySnapshot>;
  resolveToolRecoveryForTab(request: wire.TabRecovery): Promise<wire.ToolRecoverySnapshot>;
  getLayout(): Promise<wire.Layout>;
  newSession(request: wire.NewSession): Promise<wire.TabView>;
  openSession(request: wire.OpenSession): Promise<wire.TabView>;
  closeTab(request: wire.Tab): Promise<wire.Layout>;
  selectTab(request: wire.ActiveTab): Promise<wire.Nothing>;
  saveDraft(request: wire.Draft): Promise<wire.Nothing>;
  listProjects(): Promise<wire.ProjectList>;
  openProject(request: wire.ProjectFolder): Promise<wire.ProjectList>;
  removeProject(request: wire.ProjectFolder): Promise<wire.ProjectList>;
  startDemo(): Promise<wire.TabView>;
  listSessions(request: wire.SessionsQuery): Promise<wire.SessionsPage>;
  changeSession(request: wire.SessionChange): Promise<wire.Nothing>;
  deleteSession(request: wire.OpenSession): Promise<wire.Nothing>;
  submit(request: wire.TabSubmit): Promise<wire.Submitted>;
  inbox(request: wire.Tab): Promise<wire.InboxView>;
  inboxReceipt(request: wire.TabKey): Promise<wire.InboxReceipt>;
  enqueue(request: wire.TabEnqueue): Promise<wire.Enqueued>;
  editItem(request: wire.TabEditItem): Promise<wire.Nothing>;
  deleteItem(request: wire.TabItem): Promise<wire.Nothing>;
  moveItem(request: wire.TabMoveItem): Promise<wire.Nothing>;
  pauseInbox(request: wire.Tab): Promise<wire.Nothing>;
  resumeInbox(request: wire.Tab): Promise<wire.Nothing>;
  cancel(request: wire.TabCancel): Promise<wire.CancelReply>;
  compact(request: wire.Tab): Promise<wire.CompactionStarted>;
  rewind(request: wire.TabRewind): Promise<wire.RewindReply>;
  forkSession(request: wire.OpenSession): Promise<wire.TabView>;
  pendingPrompts(request: wire.Tab): Promise<wire.PendingPrompt[]>;
  approve(request: wire.TabApprove): Promise<wire.Nothing>;
  transcriptSnapshot(request: wire.Tab): Promise<wire.TranscriptSnapshot>;
  transcriptPage(request: wire.TabPage): Promise<wire.TranscriptPage>;
  diff(request: wire.TabAttempt): Promise<wire.DiffReply>;
  output(request: wire.TabAttempt): Promise<wire.OutputPage>;
  jobs(request: wire.Tab): Promise<wire.Job[]>;
  cancelJob(request: wire.TabJob): Promise<wire.Nothing>;
  backgroundJob(request: wire.TabAttempt): Promise<wire.Job>;
  listModels(): Promise<wire.ModelList>;
  getSettings(): Promise<wire.Settings>;
  saveSettings(request: wire.Settings): Promise<wire.Settings>;
  listProviders(): Promise<wire.ProviderList>;
  saveProvider(request: wire.ProviderChange): Promise<wire.ProviderList>;
  testProvider(request: wire.ProviderChange): Promise<wire.ProviderCheck>;
  listHosts(): Promise<wire.HostList>;
  saveHost(request: wire.HostChange): Promise<wire.HostList>;
  removeHost(request: wire.HostRef): Promise<wire.HostList>;
  testHost(request: wire.HostChange): Promise<wire.HostCheck>;
  retryHost(request: wire.HostRef): Promise<wire.Nothing>;
}

/**
 * `up` once events arrive, `down` while the stream is broken and is being tried again, `refused` when
 * the backend answers and no longer lets this page in: it is not tried again.
 */
export type Link = 'up' | 'down' | 'refused';

export interface Port extends Operations {
  /** The native window: it has a folder dialog. */
  readonly native: boolean;
  /** Subscribes to the app's events; resolves when none can be missed any more (RS-22). */
  events(listener: (event: wire.AppEvent) => void, link: (link: Link) => void): Promise<() => void>;
  /** A folder chosen by the person; `null` when none was, or where there is no dialog. */
  pickFolder(): Promise<string | null>;
  /**
   * SV-09: the question that the window asks when it is to close while commands run; the browser
   * never asks it, since closing a page ends nothing.
   */
  quits(listener: (question: wire.QuitQuestion) => void): Promise<() => void>;
  /** What the person says to it, or that the person wants to quit. */
  quit(word: wire.QuitWord): Promise<void>;
  /** Opens a web address outside. */
  openLink(url: string): Promise<void>;
}

/** What the backend, or the way to it, refused. */
export class PortError extends Error {
  readonly code: string;
  readonly snapshot: wire.ToolRecoverySnapshot | null;

  constructor(code: string, message: string, snapshot: wire.ToolRecoverySnapshot | null = null) {
    super(message);
    this.name = 'PortError';
    this.code = code;
    this.snapshot = snapshot;
  }
}

/** Reads an error body; anything else becomes `internal` with what it says. */
export function portError(value: unknown): PortError {
  if (value instanceof PortError) {
    return value;
  }
  if (typeof value === 'object' && value !== null && 'code' in value && 'message' in value) {
    const body = value as wire.ErrorBody;
    return new PortError(String(body.code), String(body.message), body.snapshot ?? null);
  }
  return new PortError('internal', value instanceof Error ? value.message : String(value));
}

/** `get_layout` → `getLayout`. */
export function camel(operation: string): string {
  return operation.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase());
}

/** The operations over one function that carries a name and a request. */
export function operationsOver(
  call: (operation: Operation, request: unknown) => Promise<unknown>,
): Operations {
  const operations: Record<string, (request?: unknown) => Promise<unknown>> = {};
  for (const operation of OPERATIONS) {
    operations[camel(operation)] = (request = {}) => call(operation, request);
  }
  // The table above and the interface name the same operations; a test compares both.
  return operations as unknown as Operations;
}
