// Drafts and their keys (RS-16).
//
// Guarantees: a draft is cleared only when the backend has the message; a message that was not
// answered keeps its key, so that sending the same text again can't make it two; what the backend
// has not stored yet is kept by the page itself, over a reload too.

import { SvelteMap } from 'svelte/reactivity';

import type { Port } from '../port/port';

const SAVE_MS = 400;
/** Name of what the page keeps itself: drafts that the backend has not stored, by tab. */
const UNSAVED = 'holdfast.drafts';

/** Where the page keeps what it could not hand over yet. */
export type Keep = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

export class Outbox {
  readonly #port: Port;
  readonly #keep: Keep | null;
  readonly #drafts = new SvelteMap<string, string>();
  readonly #keys = new Map<string, { text: string; key: string }>();
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();
  /** What the backend has not said to have stored. */
  readonly #unsaved = new Map<string, string>();
  readonly #sending = new SvelteMap<string, boolean>();

  constructor(port: Port, keep: Keep | null = null) {
    this.#port = port;
    this.#keep = keep;
    for (const [tabId, text] of Object.entries(this.#kept())) {
      this.#unsaved.set(tabId, text);
    }
  }

  /**
   * The draft of a tab as it was left, unless something was typed here already. What an earlier page
   * could not hand over is newer than what the backend has.
   */
  restore(tabId: string, text: string): void {
    if (this.#drafts.has(tabId)) {
      return;
    }
    const unsaved = this.#unsaved.get(tabId);
    this.#drafts.set(tabId, unsaved ?? text);
    if (unsaved !== undefined) {
      this.#save(tabId);
    }
  }

  draft(tabId: string): string {
    return this.#drafts.get(tabId) ?? '';
  }

  isSending(tabId: string): boolean {
    return this.#sending.get(tabId) ?? false;
  }

  write(tabId: string, text: string): void {
    this.#drafts.set(tabId, text);
    this.#hold(tabId, text);
    clearTimeout(this.#timers.get(tabId));
    this.#timers.set(
      tabId,
      setTimeout(() => this.#save(tabId), SAVE_MS),
    );
  }

  /** Saves what is not stored yet, at once: the page may be going, or the backend is back. */
  flush(): void {
    for (const tabId of [...this.#unsaved.keys()]) {
      if (this.#drafts.has(tabId)) {
        this.#save(tabId);
      }
    }
  }

  /** The tab is gone, and with it what was typed there. */
  forget(tabId: string): void {
    clearTimeout(this.#timers.get(tabId));
    this.#timers.delete(tabId);
    this.#drafts.delete(tabId);
    this.#keys.delete(tabId);
    this.#letGo(tabId);
  }

  /**
   * Sends a text; throws what the backend refused, and then the draft is still there.
   */
  async send(tabId: string, text: string): Promise<void> {
    if (this.isSending(tabId)) {
      return;
    }
    const known = this.#keys.get(tabId);
    const key = known?.text === text ? known.key : crypto.randomUUID();
    this.#keys.set(tabId, { text, key });
    this.#sending.set(tabId, true);
    try {
      await this.#port.submit({ tabId, input: text, submissionId: key });
      this.#keys.delete(tabId);
      if (this.draft(tabId).trim() === text) {
        this.#drafts.set(tabId, '');
        this.#hold(tabId, '');
        this.#save(tabId);
      }
    } finally {
      this.#sending.set(tabId, false);
    }
  }

  #save(tabId: string): void {
    clearTimeout(this.#timers.get(tabId));
    this.#timers.delete(tabId);
    const text = this.draft(tabId);
    // Refused or unanswered, it stays held: the next key stroke, a return of the backend or the next
    // page saves it.
    this.#port.saveDraft({ tabId, text }).then(
      () => {
        if (this.#unsaved.get(tabId) === text) {
          this.#letGo(tabId);
        }
      },
      () => undefined,
    );
  }

  #hold(tabId: string, text: string): void {
    this.#unsaved.set(tabId, text);
    this.#write();
  }

  #letGo(tabId: string): void {
    this.#unsaved.delete(tabId);
    this.#write();
  }

  #write(): void {
    try {
      if (this.#unsaved.size === 0) {
        this.#keep?.removeItem(UNSAVED);
      } else {
        this.#keep?.setItem(UNSAVED, JSON.stringify(Object.fromEntries(this.#unsaved)));
      }
    } catch {
      // A page that may keep nothing still has the draft on screen.
    }
  }

  #kept(): Record<string, string> {
    try {
      const value: unknown = JSON.parse(this.#keep?.getItem(UNSAVED) ?? '{}');
      return Object.fromEntries(
        Object.entries(value as Record<string, unknown>).filter(
          (entry): entry is [string, string] => typeof entry[1] === 'string',
        ),
      );
    } catch {
      return {};
    }
  }
}
