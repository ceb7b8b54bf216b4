// The real window under WebDriver: a folder of its own, the driver, one session, and what was seen
// when something went wrong.
import { spawn } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  readlinkSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { remote } from 'webdriverio';

import { Model } from '../model.mjs';

const READY_MS = 60_000;

/** Longest time for a turn of the demo. */
export const TURN_MS = 180_000;

/** Waits until `found` answers something; says what was awaited when it never does. */
export async function until(what, found, ms = READY_MS) {
  const end = Date.now() + ms;
  for (;;) {
    const answer = await found();
    if (answer) {
      return answer;
    }
    if (Date.now() > end) {
      throw new Error(`After ${ms / 1000} s still waiting for ${what}.`);
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 50);
    });
  }
}

/** A free port; the driver takes a number, not a socket. */
function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** The driver, and the windows that it opens on one data folder. */
export class Desk {
  /** `scripted`: with a scripted model, `desk.model`, in place of the demo. */
  static async create(app, { scripted = false } = {}) {
    const desk = new Desk();
    desk.app = app;
    desk.folder = mkdtempSync(path.join(tmpdir(), 'holdfast-window-'));
    desk.data = path.join(desk.folder, 'data');
    mkdirSync(desk.data, { mode: 0o700 });
    if (scripted) {
      desk.model = await Model.start(desk.folder);
      desk.model.configure(desk.data);
    }
    desk.port = await freePort();
    const native = await freePort();
    /** An address that answers, for proving that the page can't reach it. */
    desk.address = `http://127.0.0.1:${desk.port}/status`;
    const words = ['--port', desk.port, '--native-port', native];
    desk.driver = spawn('tauri-driver', words.map(String), {
      // The demo's project goes to the person's home, which is here the test's folder.
      env: { ...process.env, HOME: desk.folder, HOLDFAST_HOME: desk.data, LANG: 'en_US.UTF-8' },
      stdio: ['ignore', 'inherit', 'inherit'],
    });
    desk.ended = new Promise((resolve, reject) => {
      desk.driver.on('close', resolve);
      desk.driver.on('error', reject);
    });
    desk.ended.catch(() => {});
    await until('the driver', () =>
      fetch(desk.address).then(
        (reply) => reply.ok,
        () => false,
      ),
    );
    return desk;
  }

  /** Opens the app and waits until its page has drawn something. */
  async open() {
    const browser = await remote({
      hostname: '127.0.0.1',
      port: this.port,
      logLevel: 'warn',
      connectionRetryCount: 0,
      capabilities: {
        'tauri:options': { application: this.app },
        'wdio:enforceWebDriverClassic': true,
      },
    });
    await until('the page', () =>
      browser.execute(() => document.querySelector('#app')?.childElementCount > 0),
    );
    return browser;
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

  /** SIGKILL to the app alone: its page and its driver are left behind, as after a crash. */
  kill() {
    for (const pid of this.#pids()) {
      process.kill(pid, 'SIGKILL');
    }
  }

  /** Whether the app is there. */
  runs() {
    return this.#pids().length > 0;
  }

  #pids() {
    const program = realpathSync(this.app);
    const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
    return all.map(Number).filter((pid) => {
      try {
        return (
          readlinkSync(`/proc/${pid}/exe`) === program &&
          readFileSync(`/proc/${pid}/environ`, 'utf8').includes(`HOLDFAST_HOME=${this.data}`)
        );
      } catch {
        // Gone meanwhile, or another person's.
        return false;
      }
    });
  }

  async close() {
    this.driver.kill('SIGTERM');
    await this.ended;
    // The driver forgets an app whose page it lost; left alone it would hold the tests' output open.
    this.kill();
    await this.model?.child.kill();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
