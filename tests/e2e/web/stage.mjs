// What a test stands on: a folder of its own with data and projects, a scripted model, and
// `holdfast web`, which can be killed and started again on the same address and data.
//
// Guarantee: `close` ends every process that was started here and removes the folder.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { connect, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { Child, Model, program, root } from '../model.mjs';
import { FrameWire } from './frames.mjs';

const SOON = 20_000;

/** Waits until `found` answers something; says what was awaited when it never does. */
export async function until(what, found) {
  const end = Date.now() + SOON;
  for (;;) {
    const answer = await found();
    if (answer) {
      return answer;
    }
    if (Date.now() > end) {
      throw new Error(`After ${SOON / 1000} s still waiting for ${what}.`);
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
}

/** A free port, so that a second start has the same address as the first. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** A way to a port that can be cut while the program behind it goes on. */
class Wire {
  #open = new Set();

  /** The same port on another loopback address: the program knows itself by it too. */
  static async to(port) {
    const wire = new Wire();
    wire.port = port;
    wire.host = '127.0.0.2';
    await wire.mend();
    return wire;
  }

  /** Ends every connection and lets none begin. */
  async cut() {
    const closed = new Promise((resolve) => {
      this.server.close(resolve);
    });
    this.#open.forEach((socket) => socket.destroy());
    await closed;
  }

  mend() {
    this.server = createServer((near) => {
      const far = connect(this.port, '127.0.0.1');
      for (const [socket, other] of [
        [near, far],
        [far, near],
      ]) {
        this.#open.add(socket);
        socket.on('error', () => other.destroy());
        socket.on('close', () => {
          this.#open.delete(socket);
          other.destroy();
        });
        socket.pipe(other);
      }
    });
    return new Promise((resolve, reject) => {
      this.server.on('error', reject);
      this.server.listen(this.port, this.host, resolve);
    });
  }
}

export class Stage {
  /** `configured: false`: a machine on which nothing was set up; `env`: more for the program. */
  static async create({ configured = true, env = {} } = {}) {
    const stage = new Stage();
    stage.env = env;
    stage.folder = mkdtempSync(path.join(tmpdir(), 'holdfast-web-'));
    stage.data = path.join(stage.folder, 'data');
    mkdirSync(stage.data, { mode: 0o700 });
    stage.port = await freePort();
    stage.model = await Model.start(stage.folder);
    if (configured) {
      stage.model.configure(stage.data);
    }
    await stage.start();
    return stage;
  }

  async start() {
    this.web = await Child.start(
      program('HOLDFAST_BIN', 'holdfast'),
      ['web', '--addr', `127.0.0.1:${this.port}`, '--data', this.data],
      {
        // The demo's project goes to the person's home, which is here the test's folder.
        ...this.env,
        HOME: this.folder,
        HOLDFAST_UI: path.join(root, 'ui', 'dist'),
        HOLDFAST_SUPERVISOR: program('HOLDFAST_SUPERVISOR', 'holdfast-supervisor'),
      },
    );
    this.link = this.web.ready.link;
    this.token = readFileSync(this.web.ready.tokenFile, 'utf8').trim();
  }

  /** Puts a wire between page and program that can be cut; the link leads through it. */
  async throughWire() {
    this.wire = await Wire.to(this.port);
    this.link = this.link.replace('127.0.0.1', this.wire.host);
  }

  /** Puts a way between page and program on which a test decides what the page hears. */
  async throughFrames() {
    this.frames = await FrameWire.to(this.port);
    this.link = this.link.replace('127.0.0.1', this.frames.host);
  }

  /** kill -9: nothing is said goodbye to. */
  kill() {
    return this.web.kill();
  }

  /** A project with these files. */
  project(name, files = {}) {
    const folder = path.join(this.folder, name);
    mkdirSync(folder);
    for (const [file, content] of Object.entries(files)) {
      writeFileSync(path.join(folder, file), content);
    }
    return folder;
  }

  /** A path outside of every project. */
  beside(name) {
    return path.join(this.folder, name);
  }

  write(name) {
    writeFileSync(this.beside(name), '');
  }

  /** Waits for a file that a command makes. */
  untilThere(name) {
    return until(name, () => existsSync(this.beside(name)));
  }

  /** An operation as another client asks for it: its reply, or `{code, message}`. */
  async call(operation, request = {}) {
    const reply = await fetch(`http://127.0.0.1:${this.port}/app/${operation}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${this.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(request),
    });
    return reply.json();
  }

  /** Ends the supervisors that claimed an attempt here, so that nothing is left to ask. */
  killSupervisors() {
    const sessions = path.join(this.data, 'sessions');
    for (const session of readdirSync(sessions)) {
      const effects = path.join(sessions, session, 'effects');
      for (const attempt of existsSync(effects) ? readdirSync(effects) : []) {
        const claim = path.join(effects, attempt, 'start');
        if (existsSync(claim)) {
          const { pid, by } = JSON.parse(readFileSync(claim, 'utf8'));
          if (by === 'supervisor') {
            endProcess(pid);
          }
        }
      }
    }
  }

  async close() {
    await this.wire?.cut();
    await this.frames?.close();
    await this.web.kill();
    if (existsSync(path.join(this.data, 'sessions'))) {
      this.killSupervisors();
    }
    await this.model.child.kill();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

function endProcess(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') {
      throw error;
    }
  }
}
