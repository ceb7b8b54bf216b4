// A way between page and program on which a test decides what the page hears: it passes everything
// on, and can hold the event stream back, or say something of its own about the runtime state.
//
// Guarantee: what it says of its own takes a revision of its own. Later ones of the program are
// numbered behind it, in events and in reads alike, so the page sees one history.
import { createServer, request } from 'node:http';
import { performance } from 'node:perf_hooks';

/** The same port on another loopback address: the program knows itself by it too. */
const ADDRESS = '127.0.0.3';
const CHANGED = 'runtime-state:changed';
const READS = ['/app/sync_runtime_state', '/app/get_runtime_state_snapshot'];

/** Wall clock in milliseconds, finer than `Date.now`. */
export const clock = () => performance.timeOrigin + performance.now();

/** A projection that can be changed without changing another one. */
export const copyOf = (projection) => JSON.parse(JSON.stringify(projection));

export class FrameWire {
  /** What the page was told last, as the program or the test said it. */
  told = null;
  /** `{ at, projection }` of each state that came from the program. */
  heard = [];
  /** How often the page read. */
  reads = 0;
  #ahead = 0;
  #own = false;
  #silent = false;
  #streams = new Set();

  static async to(port) {
    const wire = new FrameWire();
    wire.port = port;
    wire.host = ADDRESS;
    wire.server = createServer((incoming, reply) => wire.#pass(incoming, reply));
    await new Promise((resolve, reject) => {
      wire.server.on('error', reject);
      wire.server.listen(port, ADDRESS, resolve);
    });
    return wire;
  }

  /** The event streams say nothing any more and stay open; new ones too. */
  silence() {
    this.#silent = true;
  }

  /** Streams that are opened from now on speak again. */
  speak() {
    this.#silent = false;
  }

  /** Ends the open streams; new ones are let through. */
  breakStreams() {
    this.#streams.forEach((stream) => stream.destroy());
  }

  /** The program's state with a change of the test's; answers when it was written. */
  insert(change) {
    const next = copyOf(this.told);
    change(next);
    next.revision = this.told.revision + 1;
    this.#ahead += 1;
    this.#own = true;
    this.told = next;
    return this.send(next);
  }

  /** Exactly this, whatever it does to the history. */
  send(projection) {
    const at = clock();
    this.#write(`data: ${JSON.stringify({ event: CHANGED, payload: projection })}\n\n`);
    return at;
  }

  async close() {
    this.breakStreams();
    this.server.closeAllConnections();
    await new Promise((resolve) => {
      this.server.close(resolve);
    });
  }

  #write(text) {
    if (!this.#silent) {
      this.#streams.forEach((stream) => stream.write(text));
    }
  }

  #pass(incoming, reply) {
    const onward = request(
      {
        host: '127.0.0.1',
        port: this.port,
        path: incoming.url,
        method: incoming.method,
        headers: incoming.headers,
      },
      (answer) => {
        if (incoming.url === '/app/events' && answer.statusCode === 200) {
          this.#stream(answer, reply);
        } else if (READS.includes(incoming.url) && answer.statusCode === 200) {
          this.#read(answer, reply);
        } else {
          reply.writeHead(answer.statusCode, answer.headers);
          answer.pipe(reply);
        }
      },
    );
    onward.on('error', () => reply.destroy());
    reply.on('close', () => onward.destroy());
    incoming.pipe(onward);
  }

  #stream(answer, reply) {
    if (this.#silent) {
      // Accepted, and nothing is ever said on it: not even that it is open.
      answer.resume();
      return;
    }
    reply.writeHead(answer.statusCode, answer.headers);
    reply.flushHeaders();
    this.#streams.add(reply);
    reply.on('close', () => this.#streams.delete(reply));
    answer.setEncoding('utf8');
    let rest = '';
    answer.on('data', (text) => {
      const at = clock();
      const parts = (rest + text).split('\n\n');
      rest = parts.pop();
      const words = parts.map((part) => this.#renumbered(part, at));
      if (!this.#silent && reply.writable) {
        reply.write(words.map((part) => `${part}\n\n`).join(''));
      }
    });
    answer.on('end', () => reply.end());
    answer.on('error', () => reply.destroy());
  }

  /** One event of the program, with its revision behind all that the test said. */
  #renumbered(part, at) {
    if (!part.startsWith('data: ') || !part.includes(CHANGED)) {
      return part;
    }
    const event = JSON.parse(part.slice('data: '.length));
    event.payload.revision += this.#ahead;
    this.heard.push({ at, projection: event.payload });
    this.told = event.payload;
    this.#own = false;
    return `data: ${JSON.stringify(event)}`;
  }

  #read(answer, reply) {
    answer.setEncoding('utf8');
    let text = '';
    answer.on('data', (piece) => {
      text += piece;
    });
    answer.on('end', () => {
      this.reads += 1;
      const real = JSON.parse(text);
      real.revision += this.#ahead;
      if (!this.#own) {
        this.told = real;
      }
      // While the test's own word is the latest one, a read says the same.
      const body = Buffer.from(JSON.stringify(this.#own ? this.told : real));
      reply.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length });
      reply.end(body);
    });
  }
}
