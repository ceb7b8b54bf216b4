// One conversation put together from a snapshot and frames.
//
// Guarantees: frames that the snapshot already tells of are dropped, later ones are all applied, in
// whatever order snapshot and frames arrive; so no text is lost and none is doubled. When frames
// are missing or of another run of the host, `reload` says so and nothing is guessed.

import type {
  Frame,
  LiveMessage,
  NumberedFrame,
  PendingPrompt,
  ToolView,
  TranscriptItem,
  TranscriptPage,
  TranscriptSnapshot,
  Usage,
} from '../port/contract';

/** Frames kept while a snapshot is on its way; more mean that it is read again. */
const MOST_HELD = 20_000;
/** Characters kept of a running call's output; the whole is in the spill file. */
const MOST_PROGRESS = 16_384;

export interface Ending {
  status: string;
  message: string;
}

export interface Retrying {
  attempt: number;
  waitMs: number;
  message: string;
}

export type Applied = 'nothing' | 'changed' | 'reload';

/** What an item is called in lists: messages by their place, calls by their id. */
export function keyOf(item: TranscriptItem): string {
  return item.tool ? `t:${item.tool.id}` : `m:${item.seq}`;
}

export class Assembly {
  /** Oldest first. A new array whenever something of it changed. */
  items: readonly TranscriptItem[] = [];
  /** Cursor of the page before the first item; `null` at the beginning. */
  before: number | null = null;
  live: LiveMessage | null = null;
  /** Output so far of running calls, by call id. */
  progress: ReadonlyMap<string, string> = new Map();
  prompts: readonly PendingPrompt[] = [];
  usage: Usage | null = null;
  ending: Ending | null = null;
  retrying: Retrying | null = null;
  /** A call was seen starting here. */
  readonly seenRunning = new Set<string>();

  #epoch = '';
  #last = -1;
  #ready = false;
  #held: NumberedFrame[] = [];
  #answered = new Set<string>();

  /** From now on frames are held until the next snapshot. */
  expect(): void {
    this.#ready = false;
    this.#held = [];
  }

  snapshot(snapshot: TranscriptSnapshot): Applied {
    const newest = [...snapshot.items].reverse();
    const first = newest[0];
    // What was read before the snapshot's first item stays, and its cursor with it. Without that item
    // there is a gap between the two, which only pages from the snapshot on can fill.
    const joint =
      first === undefined ? -1 : this.items.findIndex((item) => keyOf(item) === keyOf(first));
    if (joint > 0) {
      this.items = [...this.items.slice(0, joint), ...newest];
    } else {
      this.items = newest;
      this.before = snapshot.before ?? null;
    }
    this.live = snapshot.live;
    this.progress = new Map(
      (snapshot.progress ?? []).map(({ id, text }) => [id, text.slice(-MOST_PROGRESS)]),
    );
    this.retrying = null;
    const place = placeOf(snapshot.upTo);
    this.#epoch = place?.epoch ?? '';
    this.#last = place?.n ?? -1;
    this.#ready = true;
    const held = this.#held;
    this.#held = [];
    return this.frames(held) === 'reload' ? 'reload' : 'changed';
  }

  /** The questions that wait, as read after the snapshot. Those answered meanwhile stay away. */
  asked(prompts: readonly PendingPrompt[]): void {
    const later = this.prompts.filter((p) => !prompts.some((q) => q.promptId === p.promptId));
    this.prompts = [...prompts, ...later].filter((p) => !this.#answered.has(p.promptId));
  }

  /** The page that was asked for by this cursor; one that has been overtaken is dropped. */
  older(page: TranscriptPage, before: number): void {
    if (this.before !== before) {
      return;
    }
    this.items = [...[...page.items].reverse(), ...this.items];
    this.before = page.before;
  }

  frames(frames: readonly NumberedFrame[]): Applied {
    let result: Applied = 'nothing';
    for (const { id, frame } of frames) {
      if (frame.kind === 'gap') {
        return 'reload';
      }
      if (frame.kind === 'runtime_state') {
        continue;
      }
      if (!this.#ready) {
        this.#held.push({ id, frame });
        if (this.#held.length > MOST_HELD) {
          this.#held = [];
          return 'reload';
        }
        continue;
      }
      const place = placeOf(id);
      if (place === null || (this.#epoch !== '' && place.epoch !== this.#epoch)) {
        return 'reload';
      }
      if (place.n > this.#last) {
        this.#epoch = place.epoch;
        this.#last = place.n;
        this.#apply(frame);
        result = 'changed';
      } else if (frame.kind === 'prompt_answered') {
        // The questions are read beside the snapshot and may be from before it.
        this.#answered.add(frame.promptId);
      }
    }
    return result;
  }

  #apply(frame: Frame): void {
    switch (frame.kind) {
      case 'turn_started':
        this.ending = null;
        this.retrying = null;
        break;
      case 'text':
      case 'reasoning': {
        const live =
          this.live?.turnId === frame.turnId
            ? this.live
            : { turnId: frame.turnId, text: '', reasoning: '' };
        this.live = { ...live, [frame.kind]: live[frame.kind] + frame.text };
        this.retrying = null;
        break;
      }
      case 'message':
        if (frame.item.kind === 'assistant') {
          this.live = null;
        }
        this.#put(frame.item);
        break;
      case 'rewound':
        this.items = this.items.filter((item) => item.seq < frame.toSeq);
        this.ending = null;
        break;
      case 'usage':
        this.usage = frame.usage;
        break;
      case 'tool_dispatch':
        this.#tool(frame, frame.tool);
        break;
      case 'tool_started':
        this.seenRunning.add(frame.tool.id);
        this.#tool(frame, frame.tool);
        break;
      case 'tool_progress': {
        const text = (this.progress.get(frame.id) ?? '') + frame.text;
        this.progress = new Map(this.progress).set(frame.id, text.slice(-MOST_PROGRESS));
        break;
      }
      case 'tool_result':
        this.#tool(frame, frame.tool);
        if (frame.tool.state !== 'in_flight') {
          const progress = new Map(this.progress);
          progress.delete(frame.tool.id);
          this.progress = progress;
        }
        break;
      case 'approval_request':
        this.asked([frame.prompt]);
        break;
      case 'prompt_answered':
        this.#answered.add(frame.promptId);
        this.prompts = this.prompts.filter((prompt) => prompt.promptId !== frame.promptId);
        break;
      case 'retrying':
        this.retrying = {
          attempt: frame.attempt,
          waitMs: frame.waitMs,
          message: frame.message,
        };
        break;
      case 'turn_done':
        this.live = null;
        this.retrying = null;
        this.ending = { status: frame.status, message: frame.message };
        break;
      case 'notice':
      case 'inbox_changed':
      case 'job_changed':
      case 'session_changed':
      case 'runtime_state':
      case 'gap':
        break;
    }
  }

  #tool(frame: Frame, tool: ToolView): void {
    const known = this.items.find((item) => item.tool?.id === tool.id);
    this.#put({
      seq: known?.seq ?? frame.seq ?? this.items.at(-1)?.seq ?? 0,
      kind: 'tool',
      tool,
      turnId: frame.turnId,
      at: known?.at ?? tool.startedAt ?? 0,
      partial: false,
    });
  }

  /** Replaces an item of that key, or puts a new one behind all with its place or an earlier one. */
  #put(item: TranscriptItem): void {
    const key = keyOf(item);
    const items = [...this.items];
    const known = items.findIndex((other) => keyOf(other) === key);
    if (known >= 0) {
      items[known] = item;
    } else {
      let at = items.length;
      while (at > 0 && (items[at - 1]?.seq ?? 0) > item.seq) {
        at -= 1;
      }
      items.splice(at, 0, item);
    }
    this.items = items;
  }
}

/** `<epoch>.<n>`. */
function placeOf(id: string): { epoch: string; n: number } | null {
  const dot = id.lastIndexOf('.');
  const n = Number(id.slice(dot + 1));
  return dot > 0 && Number.isSafeInteger(n) ? { epoch: id.slice(0, dot), n } : null;
}
