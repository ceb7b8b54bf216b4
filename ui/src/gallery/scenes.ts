// What the gallery shows: every screen and every state of a card.

import type { Earlier, InboxView } from '../port/contract';
import type { Scene } from '../port/fake';
import { PortError } from '../port/port';
import {
  ANSWER,
  ASKING_DEPLOY,
  ASKING_EDIT,
  ASKING_SHELL,
  ASKING_WRITE,
  CARDS,
  CONVERSATION,
  DIFF,
  EVERY_STATE,
  HEX,
  item,
  MINUTE,
  NEW_FILE,
  NOW,
  prompt,
  ROWS,
  RUNNING,
  scene,
  TESTS,
} from './material';
import { HOST_SHOTS } from './hosts';
import { LIVING, recovery, UNRESOLVED } from './unresolved';

export interface Shot {
  scene: Scene;
  /** What to press before the picture, by accessible name or selector. */
  press?: string[];
  /** Keys before the picture. */
  keys?: string[];
}

const EARLIER: Earlier = {
  attemptId: HEX('7'),
  callId: 'call-earlier',
  tool: 'shell',
  subject: './deploy.sh staging',
  sameCall: true,
  state: 'interrupted',
  startedAt: NOW - 42 * MINUTE,
  endedAt: NOW - 40 * MINUTE,
  exitCode: null,
  outcome: 'It was stopped; its effects may be partial.',
};

/** The active tab. */
const ACTIVE = `tab-${HEX('a').slice(0, 2)}`;

/** Messages in the queue of the active tab. */
function waiting(change: Partial<InboxView> = {}): InboxView {
  const inputs = [
    'Then run the whole test suite',
    'And bump the version in Cargo.toml, with a line in the changelog that says what a last line without an end means',
    'Commit it',
  ];
  return {
    revision: 12,
    paused: false,
    recovered: false,
    reason: '',
    capacity: 64,
    items: inputs.map((input, index) => ({
      itemId: `item-${index}`,
      input,
      intent: 'followup',
      position: index + 1,
      queuedAt: NOW - MINUTE,
      idempotencyKey: `key-${index}`,
      recovered: Boolean(change.recovered) && index === 0,
    })),
    ...change,
  };
}

/** A question about a repetition, for each way in which the earlier one may have ended. */
const REPEATS = Object.fromEntries(
  (
    [
      ['stopped', {}],
      ['confirmed', { state: 'user_confirmed' }],
      ['dismissed', { state: 'user_dismissed', sameCall: false, subject: './deploy.sh  staging' }],
      ['recovered', { state: 'completed', exitCode: 0 }],
      ['running', { state: 'in_flight', endedAt: null }],
    ] as [string, Partial<Earlier>][]
  ).map(([name, more]): [string, () => Shot] => [
    `repeat-${name}`,
    () => ({
      scene: scene({
        status: 'waiting_confirmation',
        mode: 'full',
        items: [...CONVERSATION.slice(0, 2), ASKING_DEPLOY],
        prompts: [
          prompt(
            'shell',
            './deploy.sh staging',
            { scopes: ['once'], earlier: { ...EARLIER, ...more } },
            'repeat',
          ),
        ],
      }),
    }),
  ]),
);

export const SHOTS: Record<string, () => Shot> = {
  conversation: () => ({ scene: scene({ status: 'idle' }) }),
  'conversation-open': () => ({
    scene: scene({ status: 'idle' }),
    press: ['.thinking button', '[data-card]:has-text("empty_lines") .head'],
  }),
  streaming: () => ({
    scene: scene({
      status: 'streaming',
      items: CONVERSATION.slice(0, 4),
      live: {
        reasoning: 'The callers expect Some("") for an empty last line.',
        text: ANSWER.slice(0, 420),
      },
    }),
  }),
  thinking: () => ({
    scene: scene({
      items: CONVERSATION.slice(0, 4),
      live: {
        reasoning:
          'split_once returns None when no newline is left.\nSo the last line is lost if it has no end.',
        text: '',
      },
    }),
  }),
  running: () => ({
    scene: scene({
      items: [...CONVERSATION.slice(0, 5), RUNNING],
      draft: 'And then bump the version',
      scene: {
        frames: [
          {
            id: 'e.1',
            frame: {
              sessionId: HEX('a'),
              turnId: 'turn-1',
              kind: 'tool_progress',
              id: RUNNING.tool?.id ?? '',
              attemptId: '',
              text: TESTS.slice(0, 330),
            },
          },
        ],
      },
    }),
  }),
  queue: () => ({
    scene: scene({
      status: 'streaming',
      items: CONVERSATION.slice(0, 5),
      scene: { inboxes: { [ACTIVE]: waiting() } },
    }),
  }),
  'queue-editing': () => ({
    scene: scene({
      status: 'streaming',
      items: CONVERSATION.slice(0, 5),
      scene: { inboxes: { [ACTIVE]: waiting() } },
    }),
    press: ['[data-item] [data-control=edit]'],
  }),
  'queue-recovered': () => ({
    scene: scene({
      status: 'paused',
      items: CONVERSATION.slice(0, 5),
      state: { outcome: 'paused', turnStatus: 'interrupted' },
      scene: {
        inboxes: {
          [ACTIVE]: waiting({
            paused: true,
            recovered: true,
            reason: 'host_restarted',
          }),
        },
      },
    }),
  }),
  cards: () => ({ scene: scene({ status: 'idle', items: CARDS, unresolved: 1 }) }),
  'cards-open': () => ({
    scene: scene({ status: 'idle', items: CARDS.slice(0, 1).concat(CARDS.slice(5, 13)) }),
    press: [
      '[data-card] .head[aria-expanded=false]',
      '[data-card] .head[aria-expanded=false]',
      '[data-card] .head[aria-expanded=false]',
      '[data-card] .head[aria-expanded=false]',
      '[data-card] .head[aria-expanded=false]',
    ],
  }),
  'approval-edit': () => ({
    scene: scene({
      status: 'waiting_confirmation',
      items: [...CONVERSATION.slice(0, 4), ASKING_EDIT],
      prompts: [
        prompt('edit_file', 'src/parse/lines.rs', {
          diff: DIFF,
          reason: 'In this mode every change of a file asks first.',
        }),
      ],
    }),
  }),
  'approval-new-file': () => ({
    scene: scene({
      status: 'waiting_confirmation',
      items: [...CONVERSATION.slice(0, 2), ASKING_WRITE],
      prompts: [prompt('write_file', 'tests/empty_lines.rs', { diff: NEW_FILE })],
    }),
  }),
  'approval-shell': () => ({
    scene: scene({
      status: 'waiting_confirmation',
      items: [...CONVERSATION.slice(0, 4), ASKING_SHELL],
      prompts: [
        prompt('shell', 'cargo test -p parser --test empty_lines', {
          reason: 'Commands ask first in this mode.',
        }),
      ],
    }),
    press: ['text=/Deny with|附理由/'],
  }),
  ...REPEATS,
  'approval-gone': () => ({
    scene: scene({
      status: 'waiting_confirmation',
      items: [...CONVERSATION.slice(0, 4), ASKING_SHELL],
      prompts: [prompt('shell', 'cargo test -p parser')],
      scene: {
        refused: {
          approve: new PortError('prompt_unknown', 'this question is not pending any more'),
        },
      },
    }),
    press: ['[data-approval] .primary'],
  }),
  finishing: () => ({ scene: scene({ status: 'finishing' }) }),
  states: () => ({ scene: scene({ rows: EVERY_STATE }) }),
  'states-not-synced': () => ({ scene: scene({ rows: EVERY_STATE, freshness: 'unknown' }) }),
  stopping: () => ({
    scene: scene({
      status: 'cancelling',
      items: [...CONVERSATION.slice(0, 5), RUNNING],
      state: { cancelRequested: true, cancellable: true },
    }),
  }),
  stopped: () => ({
    scene: scene({
      status: 'idle',
      items: CONVERSATION.slice(0, 5),
      state: { turnStatus: 'cancelled' },
    }),
  }),
  failed: () => ({
    scene: scene({
      status: 'error',
      items: CONVERSATION.slice(0, 2),
      scene: {
        frames: [
          {
            id: 'e.1',
            frame: {
              sessionId: HEX('a'),
              turnId: 'turn-1',
              kind: 'turn_done',
              status: 'failed',
              code: 'auth',
              message:
                'The provider refused the key (401). Nothing was run. Check the key in Settings, then send again.',
            },
          },
        ],
      },
    }),
  }),
  barrier: () => ({
    scene: scene({
      status: 'idle',
      items: [...CONVERSATION.slice(0, 4), CARDS[8]!],
      unresolved: 2,
      draft: 'Now rename the keys in the docs too',
    }),
  }),
  recovery: () => ({
    scene: scene({
      status: 'idle',
      items: [...CONVERSATION.slice(0, 4), CARDS[8]!],
      unresolved: 4,
      recovery: recovery(UNRESOLVED),
    }),
    press: ['.banner button'],
  }),
  'recovery-open': () => ({
    scene: scene({
      status: 'idle',
      items: [...CONVERSATION.slice(0, 4), CARDS[8]!],
      unresolved: 4,
      recovery: recovery(UNRESOLVED.slice(0, 3), { retryEnabled: true }),
    }),
    press: ['.banner button', 'summary'],
  }),
  'recovery-living': () => ({
    scene: scene({
      status: 'idle',
      items: [...CONVERSATION.slice(0, 4), CARDS[8]!],
      unresolved: 2,
      recovery: recovery(LIVING, { retryEnabled: true }),
    }),
    press: ['.banner button'],
  }),
  'recovery-clear': () => ({
    // The barrier is still up when the panel is opened: what it reads is newer.
    scene: scene({
      status: 'idle',
      items: [...CONVERSATION.slice(0, 4), CARDS[10]!],
      unresolved: 1,
      recovery: recovery([]),
    }),
    press: ['.banner button'],
  }),
  'not-synced': () => ({
    scene: scene({ status: 'thinking', items: CONVERSATION.slice(0, 5), freshness: 'unknown' }),
  }),
  empty: () => ({ scene: scene({ status: 'idle', items: [], scene: { frames: [] } }) }),
  problem: () => ({
    scene: scene({
      status: 'idle',
      problem: 'Another program has this session open. Close it there, then open the tab again.',
    }),
  }),
  'first-run': () => ({
    scene: { ...scene({ rows: [], items: [] }), projects: [], layout: { tabs: [], active: '' } },
  }),
  'no-tab': () => ({ scene: { ...scene(), layout: { tabs: [], active: '' } } }),
  palette: () => ({ scene: scene({ status: 'idle' }), keys: ['Control+k'] }),
  settings: () => ({ scene: scene({ status: 'idle' }), keys: ['Control+,'] }),
  'settings-agent': () => ({
    scene: scene({ status: 'idle' }),
    keys: ['Control+,'],
    press: ['dialog nav button >> nth=1'],
  }),
  'settings-providers': () => ({
    scene: scene({ status: 'idle' }),
    keys: ['Control+,'],
    press: ['dialog nav button >> nth=2'],
  }),
  'settings-provider': () => ({
    scene: scene({
      status: 'idle',
      scene: {
        refused: {
          test_provider: new PortError(
            'auth',
            'The provider refused the key (401). Nothing was stored. Check the key.',
          ),
        },
      },
    }),
    keys: ['Control+,'],
    press: ['dialog nav button >> nth=2', 'dialog li button >> nth=0', 'text=/^(Test|测试)$/'],
  }),
  folder: () => ({ scene: scene({ status: 'idle' }), press: ['nav .top button'] }),
  'mode-menu': () => ({ scene: scene({ status: 'idle' }), press: ['.composer .trigger >> nth=0'] }),
  toast: () => ({
    scene: scene({
      status: 'idle',
      scene: {
        refused: {
          new_session: new PortError(
            'workspace_missing',
            'The folder /mnt/usb/notes is not there; nothing was opened; connect the drive and try again.',
          ),
        },
      },
    }),
    press: ['.tabs > button'],
  }),
  'send-refused': () => ({
    scene: scene({
      status: 'idle',
      draft: 'Bump the version to 0.5',
      scene: {
        refused: {
          submit: new PortError(
            'not_durable',
            'The message could not be stored: the disk is full. Free some space.',
          ),
        },
      },
    }),
    press: ['.composer .primary'],
  }),
  jobs: () => ({
    scene: scene({ rows: [ROWS[1]!, ...ROWS.slice(2)], status: 'background_jobs' }),
    press: ['.status-line button.jobs'],
  }),
  'taken-back': () => ({
    scene: scene({
      status: 'idle',
      items: [
        ...CONVERSATION.slice(0, 2),
        item('compacted', { text: 'The parser lost an **empty last line**; it is mended.' }),
        item('rewound', {
          kept: [
            { attemptId: 'k1', tool: 'write_file', subject: 'src/lines.rs', state: 'completed' },
            { attemptId: 'k2', tool: 'shell', subject: './deploy.sh staging', state: 'unknown' },
          ],
        }),
      ],
    }),
  }),
  'going-back': () => ({ scene: scene({ status: 'idle' }), press: ['.user .back button'] }),
  quitting: () => ({
    scene: scene({
      rows: [ROWS[1]!, ...ROWS.slice(2)],
      status: 'background_jobs',
      scene: {
        quitting: {
          default: 'keep',
          commands: [
            {
              attemptId: 'a1',
              sessionId: '1'.repeat(32),
              sessionTitle: 'Bring the importer to the new API',
              command: 'npm run dev -- --port 5173 --host 127.0.0.1',
              startedAt: NOW - 15 * 60_000,
            },
            {
              attemptId: 'a2',
              sessionId: '2'.repeat(32),
              sessionTitle: '',
              command: 'cargo test --workspace',
              startedAt: NOW - 40_000,
            },
          ],
        },
      },
    }),
  }),
  ...HOST_SHOTS,
  'demo-model': () => ({ scene: scene({ status: 'idle', demo: true, mode: 'edits' }) }),
};
