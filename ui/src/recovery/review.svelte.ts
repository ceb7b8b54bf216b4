// The recovery of one tab: what is unknown, what an inspection found, what the person decides.
//
// Guarantees: a reply that comes after the person switched to another session is dropped; an action
// always carries the path, epoch and revision of the snapshot that was on screen (TR-29); a refused
// one changes nothing here but what the refusal itself brought.

import { SvelteMap, SvelteSet } from 'svelte/reactivity';

import type { Action, CallRecord, Value, ToolRecoverySnapshot } from '../port/contract';
import { portError, type Port } from '../port/port';
import { isAlive } from './evidence';

/** The evidence shows that the effect is there. */
export function isVerified(call: CallRecord): boolean {
  return (
    call.inspection_id !== '' &&
    (call.inspection_state === 'present' || call.inspection_state === 'postcondition_satisfied')
  );
}

/** Why a retry is not offered, as a code, with the host's words for one that is new; null when it is. */
export interface RetryRefusal {
  code: string;
  reason: string;
}

/** TR-35, TR-36: what speaks against running this call again now. */
export function retryRefusal(call: CallRecord, turnRuns: boolean): RetryRefusal | null {
  const own = (code: string): RetryRefusal => ({ code, reason: '' });
  if (turnRuns) {
    return own('turn_running');
  }
  if (call.inspection_id === '') {
    return own('not_inspected');
  }
  if (isAlive(call.inspection_evidence)) {
    return own('executor_alive');
  }
  if (call.retry) {
    return call.retry.allowed ? null : { code: call.retry.code, reason: call.retry.reason };
  }
  // A host that doesn't say it.
  return call.inspection_state === 'absent_fenced' || call.read_only ? null : own('not_fenced');
}

export class Review {
  snapshot = $state.raw<ToolRecoverySnapshot | null>(null);
  loading = $state(false);
  problem = $state('');
  /** Attempts of which something lives, as a refusal said. */
  readonly living = new SvelteSet<string>();
  /** Attempts that were told to stop, and not inspected since. */
  readonly stopping = new SvelteSet<string>();
  /** Attempts with an action under way. */
  readonly busy = new SvelteSet<string>();
  /** Stored arguments, as inspections brought them (TR-27). */
  readonly argumentsOf = new SvelteMap<string, Value>();

  readonly #port: Port;
  #tabId = '';
  #generation = 0;

  constructor(port: Port) {
    this.#port = port;
  }

  /** Shows another tab. What is under way for the earlier one no longer counts. */
  show(tabId: string): Promise<void> {
    this.#generation += 1;
    this.#tabId = tabId;
    this.snapshot = null;
    this.problem = '';
    this.busy.clear();
    this.living.clear();
    this.stopping.clear();
    this.argumentsOf.clear();
    return this.refresh();
  }

  async refresh(): Promise<void> {
    if (this.#tabId === '') {
      return;
    }
    const own = this.#generation;
    this.loading = true;
    try {
      const snapshot = await this.#port.getToolRecoveryForTab({ tabId: this.#tabId });
      if (own === this.#generation) {
        this.#take(snapshot);
      }
    } catch (error) {
      if (own === this.#generation) {
        this.problem = portError(error).message;
      }
    } finally {
      if (own === this.#generation) {
        this.loading = false;
      }
    }
  }

  /** One decision; false when it was refused or no longer counts. */
  async act(call: CallRecord, action: Action): Promise<boolean> {
    const shown = this.snapshot;
    const attemptId = call.identity.attempt_id;
    if (shown === null || this.busy.has(attemptId)) {
      return false;
    }
    const own = this.#generation;
    this.busy.add(attemptId);
    try {
      const next = await this.#port.resolveToolRecoveryForTab({
        tabId: this.#tabId,
        request: {
          sessionPath: shown.sessionPath,
          runtimeEpoch: shown.runtimeEpoch,
          revision: shown.revision,
          attemptId,
          inspectionId: action === 'inspect' ? '' : call.inspection_id,
          action,
        },
      });
      if (own !== this.#generation) {
        return false;
      }
      this.#take(next);
      if (action === 'inspect') {
        this.living.delete(attemptId);
        this.stopping.delete(attemptId);
      }
      return true;
    } catch (cause) {
      if (own !== this.#generation) {
        return false;
      }
      const error = portError(cause);
      this.problem = error.message;
      if (error.code === 'executor_alive') {
        this.living.add(attemptId);
      }
      if (error.snapshot !== null) {
        this.snapshot = error.snapshot;
      } else if (error.code === 'snapshot_changed' || error.code === 'attempt_resolved') {
        const said = error.message;
        await this.refresh();
        if (own === this.#generation) {
          this.problem = said;
        }
      }
      return false;
    } finally {
      if (own === this.#generation) {
        this.busy.delete(attemptId);
      }
    }
  }

  /** Something of the attempt lives, as far as was seen. */
  isLiving(call: CallRecord): boolean {
    return this.living.has(call.identity.attempt_id) || isAlive(call.inspection_evidence);
  }

  /** Stops what is left of an attempt. Whether it has ended is for the next inspection to say. */
  async stop(call: CallRecord): Promise<void> {
    const attemptId = call.identity.attempt_id;
    if (this.busy.has(attemptId)) {
      return;
    }
    const own = this.#generation;
    this.busy.add(attemptId);
    try {
      await this.#port.cancelJob({ tabId: this.#tabId, id: attemptId });
      if (own === this.#generation) {
        this.problem = '';
        this.stopping.add(attemptId);
      }
    } catch (cause) {
      if (own === this.#generation) {
        this.problem = portError(cause).message;
      }
    } finally {
      if (own === this.#generation) {
        this.busy.delete(attemptId);
      }
    }
  }

  get verified(): CallRecord[] {
    return this.snapshot?.calls.filter(isVerified) ?? [];
  }

  /** Confirms one by one, each on the snapshot that the one before it brought; ends at a refusal. */
  async confirmVerified(): Promise<void> {
    const own = this.#generation;
    for (const { identity } of this.verified) {
      const call = this.verified.find((c) => c.identity.attempt_id === identity.attempt_id);
      if (call === undefined || own !== this.#generation || !(await this.act(call, 'confirm'))) {
        return;
      }
    }
  }

  #take(snapshot: ToolRecoverySnapshot): void {
    this.snapshot = snapshot;
    this.problem = '';
    for (const call of snapshot.calls) {
      if (call.arguments !== undefined && call.arguments !== null) {
        this.argumentsOf.set(call.identity.attempt_id, call.arguments);
      }
    }
  }
}
