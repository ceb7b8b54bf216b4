// Attempts of unknown outcome for the gallery.

import type { CallRecord, ToolRecoverySnapshot } from '../port/contract';
import { HEX, NOW, MINUTE } from './material';

function record(name: string, subject: string, more: Partial<CallRecord> = {}): CallRecord {
  const id = more.inspection_id || name + subject;
  return {
    identity: {
      session_id: HEX('a'),
      turn_id: 'turn-1',
      step: 2,
      call_id: `call-${id}`,
      canonical_tool: name,
      argument_digest: HEX('5'),
      attempt_id: `attempt-${id}`,
      resource_scope: 'file',
    },
    state: 'unknown',
    read_only: false,
    idempotency_key: HEX('6'),
    subject,
    started_at: NOW - 42 * MINUTE,
    finished_at: null,
    resolved_at: null,
    result_digest: null,
    result_source: null,
    effect_summary: '',
    resolution: null,
    resolution_source: '',
    inspection_id: '',
    inspection_state: null,
    inspection_evidence: null,
    inspection_summary: '',
    superseded_by: null,
    ...more,
  };
}

export function recovery(
  records: CallRecord[],
  more: Partial<ToolRecoverySnapshot> = {},
): ToolRecoverySnapshot {
  return {
    silent: false,
    statistics: {
      unknown: records.length,
      confirmed: 1,
      retried: 0,
      rejected: 0,
      blocked: 3,
      dismissed: 0,
    },
    sessionPath: `session-id:${HEX('a')}`,
    runtimeEpoch: HEX('9'),
    revision: HEX('4'),
    calls: records,
    retryEnabled: false,
    dismissEnabled: true,
    ...more,
  };
}

export const UNRESOLVED = [
  record('write_file', 'src/config/keys.rs', {
    inspection_id: 'i1',
    inspection_state: 'postcondition_satisfied',
    inspection_summary:
      'The file has exactly the content that was to be written. That does not say who wrote it.',
    inspection_evidence: {
      file: {
        path: 'src/config/keys.rs',
        before: '3f9a1c77e2b0aa',
        after: 'b41e77d2c09f31',
        now: 'b41e77d2c09f31',
      },
    },
    arguments: {
      path: 'src/config/keys.rs',
      content: 'pub const KEYS: &[&str] = &["mode", "model"];\n',
    },
  }),
  record('edit_file', 'src/config/load.rs', {
    inspection_id: 'i2',
    inspection_state: 'postcondition_satisfied',
    inspection_summary:
      'The file has exactly the content that was to be written. That does not say who wrote it.',
    inspection_evidence: {
      file: {
        path: 'src/config/load.rs',
        before: '88aa01f3c2e4d9',
        after: '0c7722be91aa30',
        now: '0c7722be91aa30',
      },
    },
  }),
  record('shell', '', {
    inspection_id: 'i3',
    inspection_state: 'unknown',
    inspection_summary:
      'The command was started and no exit was recorded. None of its processes is alive. Whether it did its work is not proven.',
    inspection_evidence: { process: { alive: false, ended_by: '', exit: null, stragglers: [] } },
    arguments: { command: './deploy.sh staging' },
  }),
  record('write_file', 'CHANGELOG.md'),
];

/** Of which something still runs, and one that can be run again. */
export const LIVING = [
  record('shell', '', {
    inspection_id: 'i4',
    inspection_state: 'unknown',
    inspection_evidence: {
      process: {
        alive: true,
        ended_by: '',
        exit: null,
        stragglers: [
          { name: 'sudo', pid: 40121 },
          { name: 'apt-get', pid: 40122 },
        ],
      },
    },
    arguments: { command: 'sudo apt-get upgrade' },
  }),
  record('write_file', 'src/config/keys.rs', {
    inspection_id: 'i5',
    inspection_state: 'absent_fenced',
    inspection_evidence: {
      file: {
        path: 'src/config/keys.rs',
        before: '3f9a1c77e2b0aa',
        after: 'b41e77d2c09f31',
        now: '3f9a1c77e2b0aa',
      },
    },
    arguments: { path: 'src/config/keys.rs', content: 'pub const KEYS: &[&str] = &[];\n' },
  }),
];
