import { expect, test } from 'vitest';

import type {
  Event,
  NumberedFrame,
  PendingPrompt,
  ToolView,
  TranscriptItem,
  TranscriptSnapshot,
} from '../port/contract';
import { Assembly } from './assembly';

function frame(n: number, event: Event, seq?: number, epoch = 'e'): NumberedFrame {
  return {
    id: `${epoch}.${n}`,
    frame: { sessionId: 's', turnId: 't', seq: seq ?? null, ...event },
  };
}

function message(seq: number, kind: string, text: string): TranscriptItem {
  return { seq, kind, text, turnId: 't', at: seq, partial: false };
}

function tool(id: string, state: string): ToolView {
  return {
    id,
    name: 'shell',
    args: { command: 'ls' },
    state,
    readOnly: false,
    output: '',
    truncated: false,
    attemptId: id,
  };
}

/** A turn as the backend streams it, frame by frame. */
const TURN: NumberedFrame[] = [
  frame(1, { kind: 'message', item: message(1, 'user', 'do it') }, 1),
  frame(2, { kind: 'turn_started', continuation: false }, 2),
  frame(3, { kind: 'reasoning', text: 'I ' }),
  frame(4, { kind: 'reasoning', text: 'think' }),
  frame(5, { kind: 'text', text: 'Look' }),
  frame(6, { kind: 'text', text: 'ing' }),
  frame(
    7,
    { kind: 'message', item: { ...message(3, 'assistant', 'Looking'), reasoning: 'I think' } },
    3,
  ),
  frame(8, { kind: 'tool_dispatch', tool: tool('c1', 'proposed') }, 3),
  frame(9, { kind: 'tool_started', tool: tool('c1', 'in_flight') }, 5),
  frame(10, { kind: 'tool_progress', id: 'c1', attemptId: 'c1', text: 'a\n' }),
  frame(11, { kind: 'tool_progress', id: 'c1', attemptId: 'c1', text: 'b\n' }),
  frame(12, { kind: 'tool_result', tool: { ...tool('c1', 'completed'), output: 'a\nb\n' } }, 6),
  frame(13, { kind: 'text', text: 'Do' }),
  frame(14, { kind: 'text', text: 'ne' }),
  frame(15, { kind: 'message', item: message(7, 'assistant', 'Done') }, 7),
  frame(16, { kind: 'turn_done', status: 'completed', code: '', message: '' }, 8),
];

/** What the backend's snapshot says after these frames: the assembly itself, fed from the start. */
function snapshotAfter(n: number): TranscriptSnapshot {
  const whole = new Assembly();
  whole.snapshot({ items: [], live: null, before: null, upTo: 'e.0' });
  whole.frames(TURN.slice(0, n));
  return {
    items: [...whole.items].reverse(),
    live: whole.live,
    progress: [...whole.progress].map(([id, text]) => ({ id, attemptId: id, text })),
    before: null,
    upTo: `e.${n}`,
  };
}

test('what was taken back is gone, and what stands in its place follows', () => {
  const assembly = new Assembly();
  assembly.snapshot({ items: [], live: null, before: null, upTo: 'e.0' });
  assembly.frames(TURN);
  const first = assembly.items[0];
  assembly.frames([
    frame(17, { kind: 'message', item: message(9, 'user', 'and more') }, 9),
    frame(18, { kind: 'rewound', toSeq: 9 }, 12),
    frame(19, { kind: 'message', item: message(12, 'rewound', '') }, 12),
  ]);
  expect(assembly.items.at(-1)?.kind).toBe('rewound');
  expect(assembly.items.some((item) => item.text === 'and more')).toBe(false);
  expect(assembly.items[0]).toBe(first);
});

test('a whole turn gives its messages and calls in order, once each', () => {
  const assembly = new Assembly();
  assembly.snapshot({ items: [], live: null, before: null, upTo: 'e.0' });
  expect(assembly.frames(TURN)).toBe('changed');
  expect(assembly.items.map((item) => item.tool?.state ?? item.text)).toEqual([
    'do it',
    'Looking',
    'completed',
    'Done',
  ]);
  expect(assembly.live).toBeNull();
  expect(assembly.progress.size).toBe(0);
  expect(assembly.ending?.status).toBe('completed');
});

test('rs_22 a snapshot at any place, arriving at any time, loses and doubles nothing', () => {
  for (let taken = 0; taken <= TURN.length; taken += 1) {
    for (let arrives = taken; arrives <= TURN.length; arrives += 1) {
      const assembly = new Assembly();
      assembly.expect();
      // The stream was opened before the snapshot was taken: earlier frames come too.
      assembly.frames(TURN.slice(0, arrives));
      assembly.snapshot(snapshotAfter(taken));
      assembly.frames(TURN.slice(arrives));
      const name = `taken at ${taken}, arrived at ${arrives}`;
      expect(assembly.items, name).toEqual(snapshotAfter(TURN.length).items.toReversed());
      expect(assembly.live, name).toBeNull();
    }
  }
});

test("a running call's output so far is in the snapshot, and goes on behind it", () => {
  for (let taken = 9; taken <= 11; taken += 1) {
    const assembly = new Assembly();
    assembly.snapshot(snapshotAfter(taken));
    assembly.frames(TURN.slice(0, 11));
    expect(assembly.progress.get('c1'), `taken at ${taken}`).toBe('a\nb\n');
  }
});

test('text that streams is neither lost nor doubled around a snapshot', () => {
  for (let taken = 2; taken < 6; taken += 1) {
    for (let arrives = taken; arrives <= 6; arrives += 1) {
      const assembly = new Assembly();
      assembly.expect();
      assembly.frames(TURN.slice(0, arrives));
      assembly.snapshot(snapshotAfter(taken));
      assembly.frames(TURN.slice(arrives, 6));
      expect(assembly.live).toEqual({ turnId: 't', text: 'Looking', reasoning: 'I think' });
    }
  }
});

test('the same frames again change nothing', () => {
  const assembly = new Assembly();
  assembly.snapshot(snapshotAfter(6));
  expect(assembly.frames(TURN.slice(0, 6))).toBe('nothing');
  expect(assembly.live?.text).toBe('Looking');
});

test('a gap, and a frame of another run of the host, ask for everything anew', () => {
  const assembly = new Assembly();
  assembly.snapshot(snapshotAfter(6));
  expect(assembly.frames([frame(7, { kind: 'gap' })])).toBe('reload');
  expect(assembly.frames([frame(1, { kind: 'text', text: 'x' }, undefined, 'other')])).toBe(
    'reload',
  );
  expect(assembly.live?.text).toBe('Looking');
});

test('output so far is kept by its end, and goes with the result', () => {
  const assembly = new Assembly();
  assembly.snapshot(snapshotAfter(9));
  assembly.frames([
    frame(10, { kind: 'tool_progress', id: 'c1', attemptId: 'c1', text: 'x'.repeat(20_000) }),
    frame(11, { kind: 'tool_progress', id: 'c1', attemptId: 'c1', text: 'end' }),
  ]);
  const shown = assembly.progress.get('c1') ?? '';
  expect(shown.length).toBeLessThan(20_000);
  expect(shown.endsWith('xend')).toBe(true);
  assembly.frames([TURN[11]!]);
  expect(assembly.progress.has('c1')).toBe(false);
});

function call(seq: number, id: string): TranscriptItem {
  return { seq, kind: 'tool', tool: tool(id, 'completed'), turnId: 't', at: seq, partial: false };
}

test('older pages go before, by the cursor alone, through the middle of a message too', () => {
  const assembly = new Assembly();
  assembly.snapshot({
    items: [message(9, 'user', 'i'), call(8, 'c3')],
    live: null,
    before: 7171,
    upTo: 'e.0',
  });
  expect(assembly.before).toBe(7171);
  // All calls of one message have its place in the log.
  assembly.older({ items: [call(8, 'c2'), call(8, 'c1')], before: 7169 }, 7171);
  expect(assembly.items.map((item) => item.tool?.id ?? item.text)).toEqual(['c1', 'c2', 'c3', 'i']);
  expect(assembly.before).toBe(7169);
  // An answer to an older question comes late: nothing twice.
  assembly.older({ items: [call(8, 'c2'), call(8, 'c1')], before: 7169 }, 7171);
  expect(assembly.items).toHaveLength(4);
  assembly.older(
    { items: [message(8, 'assistant', 'h'), message(1, 'user', 'a')], before: null },
    7169,
  );
  expect(assembly.before).toBeNull();
  expect(assembly.items[0]?.text).toBe('a');
});

test('a later snapshot keeps what was paged in where it joins on, and begins anew where it does not', () => {
  const assembly = new Assembly();
  assembly.snapshot({ items: [message(3, 'user', 'c')], live: null, before: 2048, upTo: 'e.0' });
  assembly.older({ items: [message(2, 'user', 'b')], before: 1024 }, 2048);
  const joins = [message(4, 'user', 'd'), message(3, 'user', 'c')];
  assembly.snapshot({ items: joins, live: null, before: 2048, upTo: 'e.1' });
  expect(assembly.items.map((item) => item.text)).toEqual(['b', 'c', 'd']);
  expect(assembly.before).toBe(1024);
  assembly.snapshot({ items: [message(9, 'user', 'i')], live: null, before: 8192, upTo: 'e.2' });
  expect(assembly.items.map((item) => item.text)).toEqual(['i']);
  expect(assembly.before).toBe(8192);
});

test('a question answered before its list arrives does not come back', () => {
  const prompt = { promptId: 'p1', kind: 'approval', turnId: 't' } as PendingPrompt;
  const assembly = new Assembly();
  assembly.expect();
  assembly.frames([frame(1, { kind: 'prompt_answered', promptId: 'p1', allow: true })]);
  assembly.snapshot({ items: [], live: null, before: null, upTo: 'e.1' });
  assembly.asked([prompt]);
  expect(assembly.prompts).toEqual([]);
});
