// A call as its card shows it: what it does to what, and the state that is known of it.
//
// Guarantee: only a result of the tool itself looks like success; what a person said, and what
// nobody knows, have marks and words of their own.

import type { IconName } from '../kit/Icon.svelte';
import type { Mark } from '../kit/StateMark.svelte';
import type { Key } from '../messages/language.svelte';
import type { ToolView } from '../port/contract';

export interface CardState {
  mark: Mark;
  word: Key;
  /** A sentence about the state, where the word alone is not enough. */
  why: Key | null;
  tone: 'plain' | 'failed' | 'unknown' | 'person' | 'asks';
}

const TARGETS: Record<string, { icon: IconName; field: string }> = {
  read_file: { icon: 'file', field: 'path' },
  list_dir: { icon: 'folder', field: 'path' },
  glob: { icon: 'search', field: 'pattern' },
  grep: { icon: 'search', field: 'pattern' },
  write_file: { icon: 'pencil', field: 'path' },
  edit_file: { icon: 'pencil', field: 'path' },
  fetch: { icon: 'globe', field: 'url' },
  shell: { icon: 'terminal', field: 'command' },
  job_output: { icon: 'terminal', field: 'id' },
  job_stop: { icon: 'terminal', field: 'id' },
};

export function iconOf(name: string): IconName {
  return TARGETS[name]?.icon ?? 'gear';
}

/** What the call acts on, in one line. */
export function targetOf(tool: Pick<ToolView, 'name' | 'args'>): string {
  const field = TARGETS[tool.name]?.field;
  const { args } = tool;
  if (typeof args === 'string') {
    return args;
  }
  if (field !== undefined && typeof args === 'object' && args !== null && !Array.isArray(args)) {
    const value = args[field];
    if (typeof value === 'string') {
      return value;
    }
  }
  return '';
}

export function isEdit(name: string): boolean {
  return name === 'write_file' || name === 'edit_file';
}

export function cardState(
  tool: Pick<ToolView, 'state' | 'resultSource' | 'code' | 'supersededBy' | 'background'> & {
    readOnly?: boolean;
  },
  asks: boolean,
): CardState {
  if (tool.supersededBy) {
    return {
      mark: 'superseded',
      word: 'tool.superseded',
      why: 'tool.why.superseded',
      tone: 'person',
    };
  }
  switch (tool.state) {
    case 'proposed':
    case 'pending':
      return asks
        ? { mark: 'asks', word: 'tool.asks', why: null, tone: 'asks' }
        : { mark: 'waiting', word: 'tool.waiting', why: null, tone: 'plain' };
    case 'in_flight':
      return tool.background
        ? { mark: 'jobs', word: 'tool.inBackground', why: null, tone: 'plain' }
        : { mark: 'running', word: 'tool.running', why: null, tone: 'plain' };
    case 'completed':
      return tool.resultSource === 'recovered'
        ? { mark: 'recovered', word: 'tool.recovered', why: 'tool.why.recovered', tone: 'plain' }
        : { mark: 'done', word: 'tool.done', why: null, tone: 'plain' };
    case 'failed':
      return tool.resultSource === 'recovered'
        ? {
            mark: 'failed',
            word: 'tool.recovered_failed',
            why: 'tool.why.recovered',
            tone: 'failed',
          }
        : { mark: 'failed', word: 'tool.failed', why: null, tone: 'failed' };
    case 'interrupted':
      return { mark: 'stopped', word: 'tool.stopped', why: 'tool.why.stopped', tone: 'plain' };
    case 'cancelled':
      // One that only reads may have begun; there is no effect that could be open.
      if (tool.readOnly) {
        return { mark: 'stopped', word: 'tool.stopped', why: 'tool.why.cutShort', tone: 'plain' };
      }
      return { mark: 'stopped', word: 'tool.not_started', why: 'tool.why.never', tone: 'plain' };
    case 'not_started':
      if (tool.code === 'recovery_required') {
        return { mark: 'blocked', word: 'tool.blocked', why: 'tool.why.blocked', tone: 'unknown' };
      }
      return tool.code === 'denied'
        ? { mark: 'stopped', word: 'tool.denied', why: null, tone: 'plain' }
        : { mark: 'stopped', word: 'tool.not_started', why: 'tool.why.never', tone: 'plain' };
    case 'user_confirmed':
      return {
        mark: 'confirmed',
        word: 'tool.confirmed',
        why: 'tool.why.confirmed',
        tone: 'person',
      };
    case 'user_dismissed':
      return {
        mark: 'dismissed',
        word: 'tool.dismissed',
        why: 'tool.why.dismissed',
        tone: 'person',
      };
    default:
      // `unknown`, and any word that is newer than this page: never shown as success.
      return { mark: 'unknown', word: 'tool.unknown', why: 'tool.why.unknown', tone: 'unknown' };
  }
}
