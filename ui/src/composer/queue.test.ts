import { expect, test } from 'vitest';

import type { InboxView } from '../port/contract';
import type { Port } from '../port/port';
import { Queues } from './queue.svelte';

function view(...inputs: string[]): InboxView {
  return {
    revision: inputs.length,
    paused: false,
    recovered: false,
    reason: '',
    capacity: 64,
    items: inputs.map((input, index) => ({
      itemId: input,
      input,
      intent: 'followup',
      position: index + 1,
      queuedAt: 0,
      idempotencyKey: input,
      recovered: false,
    })),
  };
}

test('rs_16 a late read never replaces a later one, and a change is done when its outcome is shown', async () => {
  const answers: ((view: InboxView) => void)[] = [];
  const port = {
    inbox: () => new Promise<InboxView>((done) => answers.push(done)),
    deleteItem: () => Promise.resolve({}),
  } as unknown as Port;
  const queues = new Queues(port);
  let done = false;
  const change = queues.remove('one', 'a').then(() => (done = true));
  await Promise.resolve();
  await Promise.resolve();
  // The event of the change asks too.
  const event = queues.load('one');
  expect(answers).toHaveLength(2);
  answers[0]!(view('a', 'b'));
  await Promise.resolve();
  await Promise.resolve();
  expect(done).toBe(false);
  expect(queues.view('one')).toBeUndefined();
  answers[1]!(view('b'));
  await Promise.all([change, event]);
  expect(queues.view('one')?.items.map((item) => item.itemId)).toEqual(['b']);
});

test('rs_16 a refused change is thrown, and what waits is read anew', async () => {
  const port = {
    inbox: () => Promise.resolve(view('b')),
    moveItem: () => Promise.reject(new Error('it runs')),
  } as unknown as Port;
  const queues = new Queues(port);
  await expect(queues.move('one', 'a', 1)).rejects.toThrow('it runs');
  expect(queues.view('one')?.items).toHaveLength(1);
  queues.forget('one');
  expect(queues.view('one')).toBeUndefined();
});
