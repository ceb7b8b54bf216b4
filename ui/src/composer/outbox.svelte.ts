// Drafts and their keys (RS-16).
//
// Guarantees: a draft is cleared only when the backend has the message; a message that was not
// answered keeps its key, so that sending the same text again can't make it two.

import { SvelteMap } from 'svelte/reactivity';

import type { Port } from '../port/port';

const SAVE_MS = 400;

export class Outbox {
  readonly #port: Port;
  readonly #drafts = new SvelteMap<string, string>();
  readonly #keys = new Map<string, { text: string; key: string }>();
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();
  readonly #sending = new SvelteMap<string, boolean>();

  constructor(port: Port) {
    this.#port = port;
  }

  /** The draft of a tab as it was left, unless something was typed here already. */
  restore(tabId: string, text: string): void {
    if (!this.#drafts.has(tabId)) {
      this.#drafts.set(tabId, text);
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
    clearTimeout(this.#timers.get(tabId));
    this.#timers.set(
      tabId,
      setTimeout(() => this.#save(tabId), SAVE_MS),
    );
  }

  /** Saves what waits to be saved, at once: the page may be going. */
  flush(): void {
    for (const tabId of [...this.#timers.keys()]) {
      this.#save(tabId);
    }
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
        this.#save(tabId);
      }
    } finally {
      this.#sending.set(tabId, false);
    }
  }

  #save(tabId: string): void {
    clearTimeout(this.#timers.get(tabId));
    this.#timers.delete(tabId);
    // The draft is on screen still; the next key stroke saves again.
    this.#port.saveDraft({ tabId, text: this.draft(tabId) }).catch(() => undefined);
  }
}
