// Server-sent events: bytes in, frames out. Comments and unknown fields are skipped, a frame that is
// cut off by the end of the stream is dropped, as the format asks.

/** Takes pieces of text, gives whole events: `{ id, data }`. */
export class FrameParser {
  #rest = '';
  #data = [];
  #id = '';

  /** The events that this piece completes. */
  push(piece) {
    const lines = (this.#rest + piece).split(/\r\n|\n|\r(?=.)/s);
    this.#rest = lines.pop();
    return lines.flatMap((line) => this.#line(line));
  }

  #line(line) {
    if (line === '') {
      const data = this.#data.join('\n');
      const complete = this.#data.length > 0;
      this.#data = [];
      return complete ? [{ id: this.#id, data }] : [];
    }
    const [, field, value] = /^([^:]*):? ?(.*)$/s.exec(line);
    if (field === 'data') {
      this.#data.push(value);
    } else if (field === 'id') {
      this.#id = value;
    }
    return [];
  }
}

/**
 * The frames of a host's stream, as values. Ends when the stream ends or breaks, or when `signal`
 * says so: a host that was killed is an ending like any other.
 */
export async function* frames(client, query, signal) {
  const parser = new FrameParser();
  const decoder = new TextDecoder();
  try {
    const reply = await fetch(client.address('/events', query), {
      headers: { ...client.headers, accept: 'text/event-stream' },
      signal,
    });
    if (!reply.ok || !reply.body) {
      return;
    }
    // The first value tells that the stream is open: whatever happens from now on will be seen.
    yield { kind: 'open' };
    for await (const bytes of reply.body) {
      for (const { data } of parser.push(decoder.decode(bytes, { stream: true }))) {
        yield JSON.parse(data);
      }
    }
  } catch (error) {
    if (error instanceof SyntaxError) {
      throw error;
    }
  }
}
