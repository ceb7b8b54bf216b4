// What waits in each tab's session, as the backend last told it (RS-16).
//
// Guarantees: the page holds no order of its own: what a person does is asked of the backend and
// then read anew; a reply of an earlier read never replaces that of a later one.

import { SvelteMap } from 'svelte/reactivity';

import type { InboxView } from '../port/contract';
import type { Port } from '../port/port';

export class Queues {
  readonly #port: Port;
  readonly #views = new SvelteMap<string, InboxView>();
  /** The latest read of each tab; an earlier one shows nothing. */
  readonly #reads = new Map<string, Promise<void>>();

  constructor(port: Port) {
    this.#port = port;
  }

  view(tabId: string): InboxView | undefined {
    return this.#views.get(tabId);
  }

  /**
   * Reads it again; done when what is shown is no older than this call. What can't be read now is kept
   * as it was: the next change or sync asks again.
   */
  async load(tabId: string): Promise<void> {
    const own = this.#port.inbox({ tabId }).then(
      (view) => {
        if (this.#reads.get(tabId) === own) {
          this.#views.set(tabId, view);
        }
      },
      // A refused tab says so itself.
      () => undefined,
    );
    this.#reads.set(tabId, own);
    let latest: Promise<void> | undefined = own;
    let seen: Promise<void> | undefined;
    while (latest !== seen) {
      seen = latest;
      await seen;
      latest = this.#reads.get(tabId);
    }
  }

  forget(tabId: string): void {
    this.#reads.delete(tabId);
    this.#views.delete(tabId);
  }

  async edit(tabId: string, itemId: string, input: string): Promise<void> {
    await this.#do(tabId, () => this.#port.editItem({ tabId, itemId, input, intent: null }));
  }

  /** As soon as possible: into the turn that runs, or as the next one. */
  async sendNow(tabId: string, itemId: string): Promise<void> {
    await this.#do(tabId, () =>
      this.#port.editItem({ tabId, itemId, input: null, intent: 'steer' }),
    );
  }

  async move(tabId: string, itemId: string, position: number): Promise<void> {
    await this.#do(tabId, () => this.#port.moveItem({ tabId, itemId, position }));
  }

  async remove(tabId: string, itemId: string): Promise<void> {
    await this.#do(tabId, () => this.#port.deleteItem({ tabId, itemId }));
  }

  async pause(tabId: string): Promise<void> {
    await this.#do(tabId, () => this.#port.pauseInbox({ tabId }));
  }

  async resume(tabId: string): Promise<void> {
    await this.#do(tabId, () => this.#port.resumeInbox({ tabId }));
  }

  async #do(tabId: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } finally {
      // Refused, what is on screen may be old.
      await this.load(tabId);
    }
  }
}
