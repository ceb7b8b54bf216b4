import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

import { afterEach, expect, test, vi } from 'vitest';

import type { AppEvent } from './contract';
import { createHttpPort, type HttpWorld } from './http';
import { camel, OPERATIONS, operationsOver, PortError, type Link } from './port';

type Handler = (request: IncomingMessage, body: string, response: ServerResponse) => void;

let server: Server | undefined;
afterEach(() => {
  server?.closeAllConnections();
  server?.close();
});

async function serve(handler: Handler): Promise<string> {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (part: Buffer) => (body += part.toString()));
    request.on('end', () => handler(request, body, response));
  });
  await new Promise<void>((done) => server?.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(JSON.stringify(body));
}

function world(
  base: string,
  hash = '',
): HttpWorld & { stored: Map<string, string>; cleared: number } {
  const stored = new Map<string, string>();
  return {
    stored,
    cleared: 0,
    fetch: (path, init) => fetch(base + String(path), init),
    storage: {
      getItem: (key) => stored.get(key) ?? null,
      setItem: (key, value) => void stored.set(key, value),
      removeItem: (key) => void stored.delete(key),
    },
    hash,
    clearHash() {
      this.cleared += 1;
    },
    open: () => undefined,
  };
}

test('the code in the address is exchanged once, leaves the address, and the bearer is used', async () => {
  const seen: string[] = [];
  const base = await serve((request, body, response) => {
    seen.push(`${request.method} ${request.url} ${request.headers.authorization ?? '-'} ${body}`);
    json(
      response,
      200,
      request.url === '/app-login' ? { token: 'bearer-1' } : { tabs: [], active: '' },
    );
  });
  const page = world(base, '#code=abc');
  const port = await createHttpPort(page);
  expect(page.cleared).toBe(1);
  expect(await port.getLayout()).toEqual({ tabs: [], active: '' });
  expect(seen).toEqual([
    'POST /app-login - {"code":"abc"}',
    'POST /app/get_layout Bearer bearer-1 {}',
  ]);
  // A reload has no code, and the bearer of this browser tab.
  const again = await createHttpPort({ ...page, hash: '' });
  await again.getLayout();
  expect(seen.at(-1)).toBe('POST /app/get_layout Bearer bearer-1 {}');
});

test('a page without code and bearer says that it needs its link', async () => {
  await expect(createHttpPort(world('http://127.0.0.1:9'))).rejects.toMatchObject({
    code: 'login_needed',
  });
});

test('a refusal keeps the code, the words and the snapshot of the backend', async () => {
  const base = await serve((_request, _body, response) =>
    json(response, 409, {
      code: 'snapshot_changed',
      message: 'refresh',
      snapshot: { revision: 'r2' },
    }),
  );
  const page = world(base);
  page.stored.set('holdfast.token', 't');
  const port = await createHttpPort(page);
  const refusal = await port.getToolRecoveryForTab({ tabId: 'x' }).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(PortError);
  expect(refusal).toMatchObject({
    code: 'snapshot_changed',
    message: 'refresh',
    snapshot: { revision: 'r2' },
  });
});

test('a server that is gone is told as unreachable', async () => {
  const base = await serve((_request, _body, response) => json(response, 200, {}));
  server?.close();
  const page = world(base);
  page.stored.set('holdfast.token', 't');
  const port = await createHttpPort(page);
  await expect(port.getLayout()).rejects.toMatchObject({ code: 'unreachable' });
});

test('rs_29 a broken stream is opened again with its last id, and everything is read again', async () => {
  const opened: string[] = [];
  const base = await serve((request, _body, response) => {
    opened.push(`${request.headers.authorization} ${request.headers['last-event-id'] ?? '-'}`);
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const event = { event: 'remote-tab:updated', payload: { tabId: `tab-${opened.length}` } };
    response.write(`: hello\n\nid: e.${opened.length}\ndata: ${JSON.stringify(event)}\n\n`);
    if (opened.length === 1) {
      response.end();
    }
  });
  const page = world(base);
  page.stored.set('holdfast.token', 't');
  const port = await createHttpPort(page);
  const events: AppEvent[] = [];
  const links: Link[] = [];
  const stop = await port.events(
    (event) => events.push(event),
    (link) => links.push(link),
  );
  await vi.waitFor(() => expect(events).toHaveLength(3), { timeout: 10_000 });
  expect(opened).toEqual(['Bearer t -', 'Bearer t e.1']);
  expect(events.map(({ event }) => event)).toEqual([
    'remote-tab:updated',
    'desktop:resync',
    'remote-tab:updated',
  ]);
  expect(links).toEqual(['up', 'down', 'up']);
  stop();
});

test('a bearer that is not known is forgotten, and the page says that it needs its link', async () => {
  const base = await serve((_request, _body, response) =>
    json(response, 401, { code: 'token_wrong', message: 'log in again' }),
  );
  const page = world(base);
  page.stored.set('holdfast.token', 'old');
  const port = await createHttpPort(page);
  await expect(
    port.events(
      () => undefined,
      () => undefined,
    ),
  ).rejects.toMatchObject({ code: 'login_needed' });
  expect(page.stored.size).toBe(0);
});

test('a stream that the next program refuses is not tried again', async () => {
  let streams = 0;
  const base = await serve((_request, _body, response) => {
    streams += 1;
    if (streams === 1) {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(': hello\n\n');
    } else {
      json(response, 401, { code: 'token_wrong', message: 'log in again' });
    }
  });
  const page = world(base);
  page.stored.set('holdfast.token', 'old');
  const port = await createHttpPort(page);
  const links: Link[] = [];
  await port.events(
    () => undefined,
    (link) => links.push(link),
  );
  await vi.waitFor(() => expect(links).toEqual(['up', 'down', 'refused']), { timeout: 10_000 });
  expect(streams).toBe(2);
  expect(page.stored.size).toBe(0);
});

test('every operation of the table is sent under its own name', async () => {
  const sent: string[] = [];
  const operations = operationsOver((operation) => {
    sent.push(operation);
    return Promise.resolve({});
  }) as unknown as Record<string, (request?: unknown) => Promise<unknown>>;
  for (const operation of OPERATIONS) {
    await operations[camel(operation)]?.({});
  }
  expect(sent).toEqual([...OPERATIONS]);
});
