// A host as a child process: started, killed as by a power cut, started again, ended in order.
import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';

import { Failure } from '../terminal.mjs';
import { Client } from './client.mjs';

const READY_MS = 30_000;
const END_MS = 15_000;

export class Host {
  /** Starts a host and waits for the one line that says that it is ready. */
  static async start(programs, data, workspace) {
    const host = new Host();
    host.errors = '';
    host.child = spawn(programs.holdfast, ['serve', '--data', data, '--workspace', workspace], {
      env: { ...process.env, HOLDFAST_SUPERVISOR: programs['holdfast-supervisor'] },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    host.ended = new Promise((resolve) => {
      host.child.on('close', (code, signal) => resolve(signal ?? code));
      host.child.on('error', (error) => resolve(error.message));
    });
    host.child.stderr.setEncoding('utf8').on('data', (text) => (host.errors += text));
    // A demo that ends early leaves no host behind.
    const reap = () => host.child.kill('SIGKILL');
    process.once('exit', reap);
    host.ended.then(() => process.removeListener('exit', reap));
    const ready = await host.#readyLine();
    host.pid = ready.pid ?? host.child.pid;
    host.client = new Client(ready.url, readFileSync(ready.tokenFile, 'utf8').trim());
    return host;
  }

  async #readyLine() {
    const lines = createInterface({ input: this.child.stdout });
    const line = await within(
      READY_MS,
      new Promise((resolve) => {
        lines.once('line', resolve);
        this.ended.then(() => resolve(null));
      }),
    );
    let ready = null;
    try {
      ready = JSON.parse(line ?? 'null');
    } catch {
      ready = null;
    }
    if (!ready?.url || !ready.tokenFile) {
      this.child.kill('SIGKILL');
      throw new Failure(
        `The host did not become ready. It wrote:\n${this.errors.trimEnd() || '(nothing)'}`,
        'run `npm start` again; if it fails again, report the lines above.',
      );
    }
    return ready;
  }

  /** Ends the process at once; what it started lives on. */
  async kill() {
    this.child.kill('SIGKILL');
    await this.ended;
  }

  /** Asks the host to end, and waits until it has. */
  async end() {
    this.child.kill('SIGTERM');
    const how = await within(END_MS, this.ended, 'still running');
    if (how === 'still running') {
      await this.kill();
      throw new Failure(
        'The host did not end when it was asked to, so it was killed.',
        'this is a fault of the host; please report it.',
      );
    }
    return how;
  }
}

/** The promise's value, or `otherwise` when it takes longer. */
export async function within(ms, promise, otherwise = null) {
  let timer;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, ms, otherwise);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
