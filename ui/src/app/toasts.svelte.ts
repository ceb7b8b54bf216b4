// Short messages at the edge: what was refused, with the backend's own words.

import { portError } from '../port/port';

export interface Toast {
  id: number;
  kind: 'error' | 'note';
  text: string;
}

/** Notes go by themselves, errors stay until they are dismissed. */
const NOTE_MS = 4_000;
const MOST = 4;

export class Toasts {
  list = $state.raw<Toast[]>([]);
  #next = 1;

  error(cause: unknown): void {
    this.#add('error', portError(cause).message);
  }

  note(text: string): void {
    const id = this.#add('note', text);
    setTimeout(() => this.dismiss(id), NOTE_MS);
  }

  dismiss(id: number): void {
    this.list = this.list.filter((toast) => toast.id !== id);
  }

  #add(kind: Toast['kind'], text: string): number {
    const id = this.#next++;
    const others = this.list.filter((toast) => toast.text !== text);
    this.list = [...others, { id, kind, text }].slice(-MOST);
    return id;
  }
}
