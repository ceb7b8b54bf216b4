// From a status word of the projection, or of a connection, to its mark on screen.

import type { Mark } from '../kit/StateMark.svelte';
import type { ConnectionState, TopicStatus } from '../port/contract';

export const STATUS_MARK: Record<TopicStatus, Mark> = {
  finishing: 'finishing',
  cancelling: 'stopping',
  waiting_confirmation: 'asks',
  streaming: 'streaming',
  thinking: 'thinking',
  background_jobs: 'jobs',
  error: 'failed',
  paused: 'paused',
  awaiting_delivery: 'delivery',
  idle: 'none',
};

/** How the connection to another machine stands. */
export const HOST_MARK: Record<ConnectionState, Mark> = {
  connected: 'done',
  connecting: 'running',
  waiting: 'waiting',
  refused: 'failed',
};
