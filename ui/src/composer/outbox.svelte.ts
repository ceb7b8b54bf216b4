// Drafts and their keys (RS-16).
//
// Guarantees: a draft is cleared only when the backend has the message; a message that was not
// answered keeps its key, over a reload too, so that sending the same text again can't make it two;
// it is looked up and never sent again by itself; what the backend has not stored yet is kept by the
// page itself.

import { SvelteMap } from 'svelte/reactivity';

import { PortError, type Port } from '../port/port';

const SAVE_MS = 400;
/** Name of what the page keeps itself: drafts that the backend has not stored, by tab. */
const UNSAVED = 'holdfast.drafts';
/** Name of the keys of messages that were sent and not answered, by tab. */
const UNANSWERED = 'holdfast.unanswered';

/** Codes after which nobody knows whether a message arrived: here, or at another machine. */
const UNKNOWN = ['unreachable', 'reply_lost', 'host_reply_invalid'];

/** Where the page keeps what it could not hand over yet. */
export type Keep = Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;

export class Outbox {
  readonly #port: Port;
  readonly #keep: Keep | null;
  readonly #drafts = new SvelteMap<string, string>();
  readonly #keys = new Map<string, { text: string; key: string }>();
  /** Messages whose answer was lost, by tab: text and key. */
  readonly #unanswered = new SvelteMap<string, { text: string; key: string }>();
  readonly #timers = new Map<string, ReturnType<typeof setTimeout>>();
  /** What the backend has not said to have stored. */
  readonly #unsaved = new Map<string, string>();
  readonly #sending = new SvelteMap<string, boolean>();

  constructor(port: Port, keep: Keep | null = null) {
    this.#port = port;
    this.#keep = keep;
    for (const [tabId, text] of Object.entries(this.#kept(UNSAVED))) {
      if (typeof text === 'string') {
        this.#unsaved.set(tabId, text);
      }
    }
    for (const [tabId, sent] of Object.entries(this.#kept(UNANSWERED))) {
      if (isSent(sent)) {
        this.#keys.set(tabId, sent);
        this.#unanswered.set(tabId, sent);
      }
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
    this.#answered(tabId);
    this.#letGo(tabId);
  }

  /** A message was sent, and nobody knows whether it arrived. */
  isUnanswered(tabId: string): boolean {
    return this.#unanswered.has(tabId);
  }

  /**
   * Looks up what became of a message whose answer was lost. It is sent again by the person alone,
   * with the same key.
   */
  async settle(tabId: string): Promise<void> {
    const sent = this.#unanswered.get(tabId);
    if (sent === undefined || this.isSending(tabId)) {
      return;
    }
    try {
      await this.#port.inboxReceipt({ tabId, key: sent.key });
    } catch {
      // It did not arrive, or not yet, or nobody answers: the key stays with the text.
      return;
    }
    if (this.#unanswered.get(tabId)?.key === sent.key) {
      this.#accepted(tabId, sent.text);
    }
  }

  /**
   * Sends a text, into the queue while a turn runs; throws what the backend refused, and then the
   * draft is still there.
   */
  async send(tabId: string, text: string, waits = false): Promise<void> {
    if (this.isSending(tabId)) {
      return;
    }
    const known = this.#keys.get(tabId);
    const key = known?.text === text ? known.key : crypto.randomUUID();
    this.#keys.set(tabId, { text, key });
    this.#sending.set(tabId, true);
    try {
      await this.#hand(tabId, text, key, waits);
      this.#accepted(tabId, text);
    } catch (error) {
      if (error instanceof PortError && UNKNOWN.includes(error.code)) {
        this.#unanswered.set(tabId, { text, key });
        this.#writeUnanswered();
      }
      throw error;
    } finally {
      this.#sending.set(tabId, false);
      // The way may be open again already.
      void this.settle(tabId);
    }
  }

  /** The page may not know yet that a turn runs; the key is the same for both ways. */
  async #hand(tabId: string, text: string, key: string, waits: boolean): Promise<void> {
    if (!waits) {
      try {
        await this.#port.submit({ tabId, input: text, submissionId: key });
        return;
      } catch (error) {
        if (!(error instanceof PortError && error.code === 'session_busy')) {
          throw error;
        }
      }
    }
    await this.#port.enqueue({ tabId, input: text, intent: 'followup', idempotencyKey: key });
  }

  #accepted(tabId: string, text: string): void {
    this.#keys.delete(tabId);
    this.#answered(tabId);
    if (this.draft(tabId).trim() === text) {
      this.#drafts.set(tabId, '');
      this.#hold(tabId, '');
      this.#save(tabId);
    }
  }

  #answered(tabId: string): void {
    if (this.#unanswered.delete(tabId)) {
      this.#writeUnanswered();
    }
  }

  #writeUnanswered(): void {
    this.#store(UNANSWERED, this.#unanswered);
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
    this.#store(UNSAVED, this.#unsaved);
  }

  #store(name: string, what: ReadonlyMap<string, unknown>): void {
    try {
      if (what.size === 0) {
        this.#keep?.removeItem(name);
      } else {
        this.#keep?.setItem(name, JSON.stringify(Object.fromEntries(what)));
      }
    } catch {
      // A page that may keep nothing still has the draft on screen.
    }
  }

  #kept(name: string): Record<string, unknown> {
    try {
      const value: unknown = JSON.parse(this.#keep?.getItem(name) ?? '{}');
      return typeof value === 'object' && value !== null ? { ...value } : {};
    } catch {
      return {};
    }
  }
}

function isSent(value: unknown): value is { text: string; key: string } {
  const sent = value as { text?: unknown; key?: unknown } | null;
  return typeof sent?.text === 'string' && typeof sent.key === 'string';
}
