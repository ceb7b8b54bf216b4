// The conversation of one tab as the screen shows it: the assembly, published once a frame.

import { SvelteMap, SvelteSet } from 'svelte/reactivity';

import type { NumberedFrame, PendingPrompt, TranscriptItem } from '../port/contract';
import { portError, type Port } from '../port/port';
import { Assembly, type Ending, type Retrying } from './assembly';

const OLDER = 100;

export interface Paint {
  (callback: () => void): void;
}

export class Conversation {
  items = $state.raw<readonly TranscriptItem[]>([]);
  live = $state.raw<Assembly['live']>(null);
  progress = $state.raw<ReadonlyMap<string, string>>(new Map());
  prompts = $state.raw<readonly PendingPrompt[]>([]);
  usage = $state.raw<Assembly['usage']>(null);
  ending = $state.raw<Ending | null>(null);
  retrying = $state.raw<Retrying | null>(null);
  /** The first snapshot is there. */
  loaded = $state(false);
  problem = $state('');
  loadingOlder = $state(false);
  atBeginning = $state(false);
  /** Questions that the backend no longer takes an answer to. */
  readonly gone = new SvelteSet<string>();
  readonly #kept = new Map<string, PendingPrompt>();
  /** Cards that the person opened or closed, by call id; thoughts by their place. */
  readonly opened = new SvelteMap<string, boolean>();

  readonly tabId: string;
  readonly #port: Port;
  readonly #paint: Paint;
  readonly #assembly = new Assembly();
  #loading: Promise<void> | null = null;
  #again = false;
  #painting = false;
  #closed = false;

  constructor(
    port: Port,
    tabId: string,
    paint: Paint = (callback) => requestAnimationFrame(callback),
  ) {
    this.#port = port;
    this.tabId = tabId;
    this.#paint = paint;
  }

  /** Reads everything anew; calls during a read make one more read behind it. */
  load(): Promise<void> {
    if (this.#loading !== null) {
      this.#again = true;
      return this.#loading;
    }
    this.#loading = this.#read().finally(() => {
      this.#loading = null;
      if (this.#again && !this.#closed) {
        this.#again = false;
        void this.load();
      }
    });
    return this.#loading;
  }

  frames(frames: readonly NumberedFrame[]): void {
    const applied = this.#assembly.frames(frames);
    if (applied === 'reload') {
      void this.load();
    } else if (applied === 'changed') {
      this.#publish();
    }
  }

  async older(): Promise<void> {
    const before = this.#assembly.before;
    if (this.loadingOlder || before === null) {
      return;
    }
    this.loadingOlder = true;
    try {
      const page = await this.#port.transcriptPage({
        tabId: this.tabId,
        before,
        limit: OLDER,
      });
      this.#assembly.older(page, before);
      this.#show();
    } catch {
      // The next scroll asks again.
    } finally {
      this.loadingOlder = false;
    }
  }

  wasSeenRunning(callId: string): boolean {
    return this.#assembly.seenRunning.has(callId);
  }

  /**
   * Keeps a question on screen while its answer is on the way, also when it is answered elsewhere
   * meanwhile: what became of the answer has to be told.
   */
  keep(prompt: PendingPrompt): void {
    this.#kept.set(prompt.promptId, prompt);
  }

  /** The question is no longer kept; it stays while the backend still names it. */
  release(promptId: string): void {
    this.#kept.delete(promptId);
    this.#publish();
  }

  /** A question that can't be answered any more, read and closed by the person. */
  forget(promptId: string): void {
    this.#assembly.prompts = this.#assembly.prompts.filter(
      (prompt) => prompt.promptId !== promptId,
    );
    this.release(promptId);
  }

  close(): void {
    this.#closed = true;
  }

  async #read(): Promise<void> {
    const request = { tabId: this.tabId };
    this.#assembly.expect();
    try {
      const [snapshot, prompts] = await Promise.all([
        this.#port.transcriptSnapshot(request),
        this.#port.pendingPrompts(request),
      ]);
      if (this.#closed) {
        return;
      }
      this.#assembly.prompts = [];
      if (this.#assembly.snapshot(snapshot) === 'reload') {
        this.#again = true;
      }
      this.#assembly.asked(prompts);
      this.problem = '';
      this.loaded = true;
      this.#show();
    } catch (error) {
      this.problem = portError(error).message;
    }
  }

  #publish(): void {
    if (!this.#painting) {
      this.#painting = true;
      this.#paint(() => {
        this.#painting = false;
        this.#show();
      });
    }
  }

  #show(): void {
    const assembly = this.#assembly;
    this.items = assembly.items;
    this.atBeginning = assembly.before === null;
    this.live = assembly.live;
    this.progress = assembly.progress;
    const named = new Set(assembly.prompts.map((prompt) => prompt.promptId));
    this.prompts = [
      ...[...this.#kept.values()].filter((prompt) => !named.has(prompt.promptId)),
      ...assembly.prompts,
    ];
    this.usage = assembly.usage;
    this.ending = assembly.ending;
    this.retrying = assembly.retrying;
  }
}
