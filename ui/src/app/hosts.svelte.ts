// The other machines, with how their connections stand, as the backend last told it (RS-36).
//
// Guarantees: one read is under way at a time, and calls during it make one more behind it; a reply
// that is older than a change made here is dropped; what can't be read now stays as it was.

import type { HostChange, HostCheck, HostView } from '../port/contract';
import type { Port } from '../port/port';

/** A machine, and when its connection is tried again by this page's clock. */
export interface Host extends HostView {
  /** Unix milliseconds; `null` while no try waits. */
  retryAt: number | null;
}

export class Hosts {
  list = $state.raw<readonly Host[]>([]);
  /** The list was read once. */
  loaded = $state(false);

  readonly #port: Port;
  readonly #now: () => number;
  #reading: Promise<void> | null = null;
  #again = false;
  /** Grows with every change that was made here. */
  #version = 0;

  constructor(port: Port, now: () => number = Date.now) {
    this.#port = port;
    this.#now = now;
  }

  view(hostId: string): Host | undefined {
    return this.list.find((host) => host.hostId === hostId);
  }

  /** Its name; while nothing is known of it, something in its place. */
  name(hostId: string): string {
    return this.view(hostId)?.name ?? (this.loaded ? hostId.slice(0, 8) : '…');
  }

  /** It is known, and not connected. This machine never is. */
  isAway(hostId: string): boolean {
    const host = this.view(hostId);
    return host !== undefined && host.state !== 'connected';
  }

  /** Reads the list again; done when what is shown is no older than this call. */
  load(): Promise<void> {
    if (this.#reading !== null) {
      this.#again = true;
      return this.#reading;
    }
    this.#reading = this.#read().finally(() => (this.#reading = null));
    return this.#reading;
  }

  /** Throws what the backend refused; the list is then as it was. */
  async save(change: HostChange): Promise<void> {
    const { hosts } = await this.#port.saveHost(change);
    this.#changed(hosts);
  }

  async remove(hostId: string): Promise<void> {
    const { hosts } = await this.#port.removeHost({ hostId });
    this.#changed(hosts);
  }

  test(change: HostChange): Promise<HostCheck> {
    return this.#port.testHost(change);
  }

  /** Tries its connection now; how that goes is told by the list. */
  async retry(hostId: string): Promise<void> {
    await this.#port.retryHost({ hostId });
    await this.load();
  }

  async #read(): Promise<void> {
    do {
      this.#again = false;
      const version = this.#version;
      try {
        const { hosts } = await this.#port.listHosts();
        if (version === this.#version) {
          this.#take(hosts);
        }
      } catch {
        // The next change or sync asks again.
      }
    } while (this.#again);
  }

  #changed(hosts: readonly HostView[]): void {
    this.#version += 1;
    this.#take(hosts);
  }

  #take(hosts: readonly HostView[]): void {
    const now = this.#now();
    this.list = hosts.map((host) => ({
      ...host,
      retryAt: typeof host.retryInMs === 'number' ? now + host.retryInMs : null,
    }));
    this.loaded = true;
  }
}
