// What may be read off a state that another host told: a snapshot with everything, or what a host
// without snapshots says (RS-14).
//
// Guarantee: what a state does not name is unknown here too; it is never taken for zero or for no.

import type { Observed, RuntimeState } from '../port/contract';

/** The snapshot, when it is one; a host without snapshots has none. */
export function snapshotOf(state: Observed | undefined): RuntimeState | undefined {
  return state !== undefined && state.schemaVersion !== 0 ? (state as RuntimeState) : undefined;
}

/** RS-14: the host tells less than a snapshot. */
export function isLegacy(state: Observed | undefined): boolean {
  return state?.schemaVersion === 0;
}

/** Stop was asked for and has not taken effect, as far as it is known. */
export function isStopping(state: Observed | undefined): boolean {
  return state?.cancelRequested === true;
}

/**
 * Stop would do something. A host that does not say whether it would is asked while a turn runs: it
 * answers for itself.
 */
export function canStop(state: Observed | undefined): boolean {
  if (state === undefined || isStopping(state)) {
    return false;
  }
  return isLegacy(state)
    ? state.running && state.cancellable !== false
    : state.cancellable === true;
}

/** The turn that Stop is meant for; empty where the host does not name it. */
export function turnOf(state: Observed | undefined): string {
  return snapshotOf(state)?.turnId ?? '';
}

/** Attempts behind the barrier; 0 also where the host does not say it: there is nothing to show. */
export function unresolvedOf(state: Observed | undefined): number {
  return snapshotOf(state)?.unresolved ?? 0;
}
