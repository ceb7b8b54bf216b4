import { expect, test, vi } from 'vitest';

import type { TabEnqueue, TabKey, TabSubmit } from '../port/contract';
import { PortError, type Port } from '../port/port';
import { Outbox, type Keep } from './outbox.svelte';

/** What stays when a page goes. */
function storage(): Keep & { size: number } {
  const kept = new Map<string, string>();
  return {
    getItem: (name) => kept.get(name) ?? null,
    setItem: (name, value) => void kept.set(name, value),
    removeItem: (name) => void kept.delete(name),
    get size() {
      return kept.size;
    },
  };
}

function outboxOver(submit: (request: TabSubmit) => Promise<unknown>) {
  const saved: string[] = [];
  const port = {
    submit,
    saveDraft: ({ text }: { text: string }) => {
      saved.push(text);
      return Promise.resolve({});
    },
  } as unknown as Port;
  return { outbox: new Outbox(port), saved };
}

test('rs_16 a draft stays until the backend has it, and its retry carries the same key', async () => {
  const keys: string[] = [];
  let broken = true;
  const { outbox, saved } = outboxOver(({ submissionId }) => {
    keys.push(submissionId);
    return broken
      ? Promise.reject(new PortError('unreachable', 'lost'))
      : Promise.resolve({ turnId: 't', duplicate: true });
  });
  outbox.write('one', 'hello');
  await expect(outbox.send('one', 'hello')).rejects.toMatchObject({ code: 'unreachable' });
  expect(outbox.draft('one')).toBe('hello');
  broken = false;
  await outbox.send('one', 'hello');
  expect(keys[1]).toBe(keys[0]);
  expect(outbox.draft('one')).toBe('');
  expect(saved.at(-1)).toBe('');
});

test.each(['reply_lost', 'host_reply_invalid'])(
  'rs_16 after %s of another machine nobody knows whether it arrived, and the receipt is asked for',
  async (code) => {
    const receipts: string[] = [];
    const port = {
      submit: () => Promise.reject(new PortError(code, 'lost')),
      inboxReceipt: ({ key }: TabKey) => {
        receipts.push(key);
        return Promise.reject(new PortError('host_disconnected', 'away'));
      },
      saveDraft: () => Promise.resolve({}),
    } as unknown as Port;
    const outbox = new Outbox(port);
    await expect(outbox.send('one', 'hello')).rejects.toMatchObject({ code });
    expect(outbox.isUnanswered('one')).toBe(true);
    expect(receipts).toHaveLength(1);
  },
);

/** A port on which answers are lost and receipts are known, or not. */
function lossy(known: Set<string>) {
  const asked: string[] = [];
  const port = {
    submit: ({ submissionId }: TabSubmit) => {
      asked.push(`submit ${submissionId}`);
      return Promise.reject(new PortError('unreachable', 'lost'));
    },
    enqueue: ({ idempotencyKey }: TabEnqueue) => {
      asked.push(`enqueue ${idempotencyKey}`);
      return Promise.reject(new PortError('unreachable', 'lost'));
    },
    inboxReceipt: ({ key }: TabKey) => {
      asked.push(`receipt ${key}`);
      return known.has(key)
        ? Promise.resolve({ key, itemId: 'i', disposition: 'queued_followup', state: 'queued' })
        : Promise.reject(new PortError('receipt_unknown', 'unknown'));
    },
    saveDraft: () => Promise.resolve({}),
  } as unknown as Port;
  return { port, asked };
}

test('c24 after a lost answer the receipt is looked up, and nothing is sent again by itself', async () => {
  const known = new Set<string>();
  const { port, asked } = lossy(known);
  const kept = storage();
  const outbox = new Outbox(port, kept);
  outbox.write('one', 'next');
  await outbox.send('one', 'next', true).catch(() => undefined);
  await vi.waitFor(() => expect(asked).toHaveLength(2));
  const key = asked[0]!.replace('enqueue ', '');
  expect(asked).toEqual([`enqueue ${key}`, `receipt ${key}`]);
  expect(outbox.draft('one')).toBe('next');
  expect(outbox.isUnanswered('one')).toBe(true);

  // A page that is loaded anew knows the key, and asks before anything else.
  const again = new Outbox(port, kept);
  again.restore('one', 'next');
  await again.settle('one');
  await again.send('one', 'next', true).catch(() => undefined);
  await vi.waitFor(() => expect(asked).toHaveLength(5));
  expect(asked.slice(2)).toEqual([`receipt ${key}`, `enqueue ${key}`, `receipt ${key}`]);

  known.add(key);
  await again.settle('one');
  expect(again.draft('one')).toBe('');
  expect(again.isUnanswered('one')).toBe(false);
  expect(asked.filter((call) => !call.startsWith('receipt'))).toHaveLength(2);
});

test('rs_16 what a page did not know to be running is queued under the same key', async () => {
  const keys: string[] = [];
  const port = {
    submit: ({ submissionId }: TabSubmit) => {
      keys.push(submissionId);
      return Promise.reject(new PortError('session_busy', 'busy'));
    },
    enqueue: ({ idempotencyKey }: TabEnqueue) => {
      keys.push(idempotencyKey);
      return Promise.resolve({ itemId: 'i', disposition: 'queued_followup', position: 1 });
    },
    saveDraft: () => Promise.resolve({}),
  } as unknown as Port;
  const outbox = new Outbox(port);
  outbox.write('one', 'next');
  await outbox.send('one', 'next');
  expect(keys[1]).toBe(keys[0]);
  expect(outbox.draft('one')).toBe('');
});

test('another text is another message, with a key of its own', async () => {
  const keys: string[] = [];
  const { outbox } = outboxOver(({ submissionId }) => {
    keys.push(submissionId);
    return Promise.reject(new PortError('turn_running', 'busy'));
  });
  await outbox.send('one', 'a').catch(() => undefined);
  await outbox.send('one', 'b').catch(() => undefined);
  expect(new Set(keys).size).toBe(2);
});

test('what was typed while a message was sent is kept', async () => {
  let answer: (value: unknown) => void = () => undefined;
  const { outbox } = outboxOver(() => new Promise((done) => (answer = done)));
  outbox.write('one', 'first');
  const sending = outbox.send('one', 'first');
  outbox.write('one', 'first and more');
  answer({ turnId: 't', duplicate: false });
  await sending;
  expect(outbox.draft('one')).toBe('first and more');
});

test('drafts are saved a little later, or at once when the page goes', () => {
  vi.useFakeTimers();
  const { outbox, saved } = outboxOver(() => Promise.resolve({}));
  outbox.write('one', 'a');
  outbox.write('one', 'ab');
  expect(saved).toEqual([]);
  vi.runAllTimers();
  expect(saved).toEqual(['ab']);
  outbox.write('one', 'abc');
  outbox.flush();
  expect(saved).toEqual(['ab', 'abc']);
  vi.useRealTimers();
});

test('a restored draft never replaces what was typed', () => {
  const { outbox } = outboxOver(() => Promise.resolve({}));
  outbox.restore('one', 'kept');
  outbox.write('one', 'typed');
  outbox.restore('one', 'kept');
  expect(outbox.draft('one')).toBe('typed');
});

test('what was typed while the backend was gone is there after a reload, and is handed over', async () => {
  const kept = storage();
  let gone = true;
  const saved: string[] = [];
  const port = {
    saveDraft: ({ text }: { text: string }) => {
      if (gone) {
        return Promise.reject(new PortError('unreachable', 'gone'));
      }
      saved.push(text);
      return Promise.resolve({});
    },
  } as unknown as Port;
  const page = new Outbox(port, kept);
  page.restore('one', 'stored');
  page.restore('two', 'other');
  page.write('one', 'stored, and more');
  page.flush();
  await Promise.resolve();
  expect(kept.size).toBe(1);

  gone = false;
  const next = new Outbox(port, kept);
  next.restore('two', 'other');
  next.restore('one', 'stored');
  expect(next.draft('one')).toBe('stored, and more');
  expect(next.draft('two')).toBe('other');
  await vi.waitFor(() => expect(kept.size).toBe(0));
  expect(saved).toEqual(['stored, and more']);
});

test('a draft is held until the backend says that it has this very text', async () => {
  const kept = storage();
  const answers: (() => void)[] = [];
  const port = {
    saveDraft: () => new Promise((done) => answers.push(() => done({}))),
  } as unknown as Port;
  const outbox = new Outbox(port, kept);
  outbox.write('one', 'a');
  outbox.flush();
  outbox.write('one', 'ab');
  answers[0]?.();
  await Promise.resolve();
  expect(kept.size).toBe(1);
  outbox.flush();
  answers[1]?.();
  await vi.waitFor(() => expect(kept.size).toBe(0));
});

test('a page that may keep nothing still drafts, and a damaged store is no draft', () => {
  const port = { saveDraft: () => Promise.resolve({}) } as unknown as Port;
  const refusing: Keep = {
    getItem: () => 'not json',
    setItem: () => {
      throw new Error('quota');
    },
    removeItem: () => undefined,
  };
  const outbox = new Outbox(port, refusing);
  outbox.restore('one', 'stored');
  outbox.write('one', 'typed');
  expect(outbox.draft('one')).toBe('typed');
});
