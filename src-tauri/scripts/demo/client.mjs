// Requests to a host: JSON in, JSON out, with the token and a limit on time. A refusal becomes a
// failure that carries the host's own words and its code.
import { Failure } from '../terminal.mjs';

const LIMIT_MS = 15_000;

export class Client {
  constructor(url, token) {
    this.url = url.replace(/\/$/, '');
    this.token = token;
  }

  /** The address of a route, with its query. */
  address(route, query = {}) {
    const address = new URL(this.url + route);
    for (const [name, value] of Object.entries(query)) {
      address.searchParams.set(name, value);
    }
    return address;
  }

  get headers() {
    return { authorization: `Bearer ${this.token}` };
  }

  get(route, query) {
    return this.#send('GET', route, query);
  }

  post(route, query, body) {
    return this.#send('POST', route, query, body);
  }

  async #send(method, route, query, body) {
    let reply;
    let text;
    try {
      reply = await fetch(this.address(route, query), {
        method,
        headers: { ...this.headers, ...(body && { 'content-type': 'application/json' }) },
        body: body && JSON.stringify(body),
        signal: AbortSignal.timeout(LIMIT_MS),
      });
      text = await reply.text();
    } catch (error) {
      // A request whose outcome is unknown is not sent again.
      throw new Failure(
        `${method} ${route} got no answer (${error.cause?.code ?? error.message}).`,
        'run `npm start` again; if it fails again, report what the host wrote above.',
      );
    }
    const value = parsed(text);
    if (!reply.ok) {
      const words = value?.message ?? (text || 'no message');
      throw new Failure(
        `${method} ${route} was refused with ${reply.status} ${value?.code ?? ''}: ${words}`,
        'this is a fault of the demo or of the host; please report it with the lines above.',
      );
    }
    return value;
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
