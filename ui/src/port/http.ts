// The port of the browser: operations by POST, events by SSE, both with a bearer.
//
// Guarantees: the login code leaves the address bar before anything else happens; the bearer is
// kept for this browser tab only; a broken stream is opened again with its last id, and every new
// stream makes the app read everything again.

import { createParser } from 'eventsource-parser';

import type { AppEvent } from './contract';
import { PortError, operationsOver, portError, type Port } from './port';

const TOKEN = 'holdfast.token';
/** Pauses between tries, milliseconds; the last one stays. */
const PAUSES = [500, 1_000, 2_000, 5_000, 10_000];
/** RS-29: silence after which a stream counts as broken, milliseconds. */
const SILENCE = 45_000;

export interface HttpWorld {
  fetch: typeof fetch;
  storage: Pick<Storage, 'getItem' | 'setItem' | 'removeItem'>;
  /** The part of the address behind `#`. */
  hash: string;
  /** Takes the hash out of the address bar and the history. */
  clearHash(): void;
  open(url: string): void;
}

/** Logs in when the address carries a code, and gives the port. */
export async function createHttpPort(world: HttpWorld): Promise<Port> {
  let token = world.storage.getItem(TOKEN) ?? '';
  const fragment = world.hash.replace(/^#/, '');
  const code = new URLSearchParams(fragment).get('code') ?? fragment;
  if (code !== '') {
    world.clearHash();
    token = await login(world, code).catch((error: unknown) => {
      // A page that is reloaded with an old link still has its bearer.
      if (token === '') {
        throw error;
      }
      return token;
    });
    world.storage.setItem(TOKEN, token);
  }
  if (token === '') {
    throw new PortError('login_needed', 'this page was opened without its link');
  }

  async function post(operation: string, request: unknown): Promise<unknown> {
    const response = await send(world, `/app/${operation}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(request),
    });
    return admitted(world, response);
  }

  return {
    ...operationsOver(post),
    native: false,
    events: (listener, link) => listen(world, token, listener, link),
    pickFolder: () => Promise.resolve(null),
    quits: () => Promise.resolve(() => undefined),
    quit: () => Promise.resolve(),
    openLink(url) {
      world.open(url);
      return Promise.resolve();
    },
  };
}

async function login(world: HttpWorld, code: string): Promise<string> {
  const response = await send(world, '/app-login', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  const body = (await bodyOf(response)) as { token?: unknown };
  if (typeof body.token !== 'string' || body.token === '') {
    throw new PortError('internal', 'the login was answered without a token');
  }
  return body.token;
}

async function send(world: HttpWorld, path: string, init: RequestInit): Promise<Response> {
  try {
    return await world.fetch(path, { ...init, credentials: 'omit', cache: 'no-store' });
  } catch (error) {
    throw new PortError('unreachable', error instanceof Error ? error.message : String(error));
  }
}

/** The body of a reply; a bearer that is not known (any more) is forgotten. */
async function admitted(world: HttpWorld, response: Response): Promise<unknown> {
  if (response.status === 401) {
    // It ended with the program that gave it.
    world.storage.removeItem(TOKEN);
    throw new PortError('login_needed', 'the program behind this page does not know it any more');
  }
  return bodyOf(response);
}

async function bodyOf(response: Response): Promise<unknown> {
  let body: unknown;
  try {
    body = await response.json();
  } catch {
    throw new PortError('internal', `the reply could not be read (HTTP ${response.status})`);
  }
  if (!response.ok) {
    throw portError(body);
  }
  return body;
}

/** Keeps a stream open until it is stopped; resolves with the first one open. */
function listen(
  world: HttpWorld,
  token: string,
  listener: (event: AppEvent) => void,
  link: Parameters<Port['events']>[1],
): Promise<() => void> {
  const stopped = new AbortController();
  let lastId = '';
  let version = 0;

  async function once(opened: () => void): Promise<void> {
    const broken = new AbortController();
    const abort = () => broken.abort();
    stopped.signal.addEventListener('abort', abort);
    let timer = setTimeout(abort, SILENCE);
    try {
      const headers: Record<string, string> = {
        authorization: `Bearer ${token}`,
        accept: 'text/event-stream',
      };
      if (lastId !== '') {
        headers['last-event-id'] = lastId;
      }
      const response = await send(world, '/app/events', { headers, signal: broken.signal });
      if (!response.ok || response.body === null) {
        await admitted(world, response);
        return;
      }
      opened();
      const parser = createParser({
        onEvent(message) {
          lastId = message.id ?? lastId;
          const event = appEvent(message.data);
          if (event !== null) {
            listener(event);
          }
        },
      });
      const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) {
          return;
        }
        clearTimeout(timer);
        timer = setTimeout(abort, SILENCE);
        parser.feed(value);
      }
    } finally {
      clearTimeout(timer);
      stopped.signal.removeEventListener('abort', abort);
    }
  }

  return new Promise((resolve, reject) => {
    let first = true;
    let tries = 0;
    const opened = () => {
      tries = 0;
      link('up');
      if (first) {
        first = false;
        resolve(() => stopped.abort());
      } else {
        // What was sent between the streams is not known: everything is read again.
        version += 1;
        listener({ event: 'desktop:resync', payload: { recoveryVersion: version } });
      }
    };
    const run = async () => {
      while (!stopped.signal.aborted) {
        try {
          await once(opened);
        } catch (error) {
          const refused = portError(error);
          if (first && refused.code !== 'unreachable') {
            reject(refused);
            return;
          }
          if (refused.code === 'login_needed') {
            link('refused');
            return;
          }
        }
        if (stopped.signal.aborted) {
          return;
        }
        link('down');
        const pause = PAUSES[Math.min(tries, PAUSES.length - 1)] ?? 0;
        tries += 1;
        await new Promise((next) => setTimeout(next, pause));
      }
    };
    void run();
  });
}

function appEvent(data: string): AppEvent | null {
  try {
    const value = JSON.parse(data) as Partial<AppEvent>;
    return typeof value.event === 'string' && 'payload' in value ? (value as AppEvent) : null;
  } catch {
    return null;
  }
}
