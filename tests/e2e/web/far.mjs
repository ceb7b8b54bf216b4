// A machine over there: `holdfast serve` on a data folder of its own, and a way to it that a test can
// cut, or hold up so that nothing comes through and nothing ends.
//
// Guarantee: `close` ends the program and every connection.
import { mkdirSync, readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import path from 'node:path';

import { Child, program } from '../model.mjs';
import { freePort } from './stage.mjs';

/** The program knows itself by its port on any loopback address. */
const ADDRESS = '127.0.0.4';

export class Far {
  #pairs = new Set();
  #held = false;

  static async start(stage, name = 'far') {
    const far = new Far();
    far.stage = stage;
    far.data = path.join(stage.folder, name);
    mkdirSync(far.data, { mode: 0o700 });
    stage.model.configure(far.data);
    far.port = await freePort();
    far.url = `http://${ADDRESS}:${far.port}`;
    await far.begin();
    await far.mend();
    return far;
  }

  /** Starts the program, on the same port and data each time. */
  async begin() {
    this.serve = await Child.start(
      program('HOLDFAST_BIN', 'holdfast'),
      ['serve', '--addr', `127.0.0.1:${this.port}`, '--data', this.data],
      { HOLDFAST_SUPERVISOR: program('HOLDFAST_SUPERVISOR', 'holdfast-supervisor') },
    );
    this.token = readFileSync(this.serve.ready.tokenFile, 'utf8').trim();
  }

  kill() {
    return this.serve.kill();
  }

  /** Lets connections through again. */
  mend() {
    this.server = createServer((near) => this.#pass(near));
    return new Promise((resolve, reject) => {
      this.server.on('error', reject);
      this.server.listen(this.port, ADDRESS, resolve);
    });
  }

  #pass(near) {
    const far = connect(this.port, '127.0.0.1');
    const pair = { near, far };
    this.#pairs.add(pair);
    for (const [socket, other] of [
      [near, far],
      [far, near],
    ]) {
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.#pairs.delete(pair);
        // A way that is held up tells neither end of anything.
        if (!this.#held) {
          other.destroy();
        }
      });
    }
    if (!this.#held) {
      this.#join(pair);
    }
  }

  #join({ near, far }) {
    near.pipe(far);
    far.pipe(near);
  }

  /** Nothing comes through in either direction, and nothing ends. */
  hold() {
    this.#held = true;
    for (const { near, far } of this.#pairs) {
      near.unpipe(far).pause();
      far.unpipe(near).pause();
    }
  }

  /** What was held comes through. */
  release() {
    this.#held = false;
    this.#pairs.forEach((pair) => this.#join(pair));
  }

  /** Ends every connection and lets none begin. */
  async cut() {
    const closed = new Promise((resolve) => {
      this.server.close(resolve);
    });
    for (const { near, far } of this.#pairs) {
      near.destroy();
      far.destroy();
    }
    await closed;
  }

  async close() {
    this.#held = false;
    await this.cut();
    await this.kill();
  }
}
