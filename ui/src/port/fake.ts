// A port without a backend, for the gallery and unit tests alone. It answers from a scene and
// remembers what was asked.

import type * as wire from './contract';
import { operationsOver, PortError, type Operation, type Port } from './port';

export interface Scene {
  layout: wire.Layout;
  projects: wire.ProjectView[];
  projection: wire.RuntimeStateProjection;
  transcripts: Record<string, wire.TranscriptSnapshot>;
  prompts: Record<string, wire.PendingPrompt[]>;
  recovery: Record<string, wire.ToolRecoverySnapshot>;
  settings: wire.Settings;
  models: wire.ModelView[];
  providers: wire.ProviderView[];
  hosts?: wire.HostView[];
  jobs: wire.Job[];
  /** What waits, by tab; nothing without an entry. */
  inboxes?: Record<string, wire.InboxView>;
  /** Frames to be sent by who made the port. */
  frames: wire.NumberedFrame[];
  /** The window was asked to close while these run. */
  quitting?: wire.QuitQuestion;
  /** Operations that are refused. */
  refused: Partial<Record<Operation, PortError>>;
}

export interface FakePort extends Port {
  readonly asked: { operation: Operation; request: unknown }[];
  send(event: wire.AppEvent): void;
}

const NOTHING_WAITS: wire.InboxView = {
  revision: 0,
  paused: false,
  recovered: false,
  reason: '',
  items: [],
  capacity: 64,
};

export function createFakePort(scene: Scene): FakePort {
  const asked: FakePort['asked'] = [];
  const listeners = new Set<(event: wire.AppEvent) => void>();

  function answer(operation: Operation, request: Record<string, unknown>): unknown {
    const tabId = String(request.tabId ?? '');
    switch (operation) {
      case 'get_runtime_state_snapshot':
      case 'sync_runtime_state':
        return scene.projection;
      case 'get_tool_recovery_for_tab':
      case 'resolve_tool_recovery_for_tab':
        return scene.recovery[tabId];
      case 'get_layout':
      case 'close_tab':
        return scene.layout;
      case 'list_projects':
      case 'open_project':
      case 'remove_project':
        return { projects: scene.projects };
      case 'new_session':
      case 'open_session':
      case 'fork_session':
      case 'start_demo':
        return scene.layout.tabs[0];
      case 'list_sessions':
        return { items: scene.projects.flatMap((project) => project.sessions), next: null };
      case 'pending_prompts':
        return scene.prompts[tabId] ?? [];
      case 'transcript_snapshot':
        return scene.transcripts[tabId] ?? { items: [], live: null, before: null, upTo: 'e.0' };
      case 'transcript_page':
        return { items: [], before: null };
      case 'submit':
        return { turnId: 'turn', duplicate: false };
      case 'inbox':
        return scene.inboxes?.[tabId] ?? NOTHING_WAITS;
      case 'inbox_receipt':
        return { key: '', itemId: '', disposition: 'started', state: 'done', turnId: 'turn' };
      case 'enqueue':
        return { itemId: 'item', disposition: 'queued_followup', position: 1 };
      case 'compact':
        return { turnId: 'compaction' };
      case 'rewind':
        return { text: '', kept: [] };
      case 'cancel':
        return { alreadyEnded: false };
      case 'diff':
        return { attemptId: '', diff: '' };
      case 'output':
        return { attemptId: '', offset: 0, length: 0, text: '', more: false };
      case 'jobs':
        return scene.jobs;
      case 'background_job':
        return scene.jobs[0];
      case 'list_models':
        return { defaultModel: scene.models[0]?.id ?? '', models: scene.models };
      case 'get_settings':
        return scene.settings;
      case 'save_settings':
        return request;
      case 'list_providers':
      case 'save_provider':
        return { providers: scene.providers };
      case 'test_provider':
      case 'test_host':
        return { ok: true, code: '', message: '' };
      case 'list_hosts':
      case 'save_host':
      case 'remove_host':
        return { hosts: scene.hosts ?? [] };
      case 'select_tab':
      case 'save_draft':
      case 'change_session':
      case 'delete_session':
      case 'approve':
      case 'cancel_job':
      case 'edit_item':
      case 'delete_item':
      case 'move_item':
      case 'pause_inbox':
      case 'resume_inbox':
      case 'retry_host':
        return {};
    }
  }

  function call(operation: Operation, request: unknown): Promise<unknown> {
    asked.push({ operation, request });
    const refused = scene.refused[operation];
    return refused
      ? Promise.reject(refused)
      : Promise.resolve(answer(operation, request as Record<string, unknown>));
  }

  return {
    ...operationsOver(call),
    native: false,
    asked,
    send: (event) => listeners.forEach((listener) => listener(event)),
    events(listener, link) {
      listeners.add(listener);
      link('up');
      return Promise.resolve(() => void listeners.delete(listener));
    },
    pickFolder: () => Promise.resolve(null),
    quits(listener) {
      if (scene.quitting) {
        listener(scene.quitting);
      }
      return Promise.resolve(() => undefined);
    },
    quit: () => Promise.resolve(),
    openLink: () => Promise.resolve(),
  };
}
