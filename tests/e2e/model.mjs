// The scripted model that the tests of browser and window talk to, and what they let it ask for.
//
// HOLDFAST_MODEL_SERVER names its program.
import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** The checkout. */
export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');

/** A program as the environment names it, else that of the everyday build. */
export function program(variable, name) {
  const target = process.env.CARGO_TARGET_DIR ?? path.join(root, 'target');
  return process.env[variable] ?? path.join(target, 'debug', name);
}

/** A child process whose first line of output is JSON. */
export class Child {
  static async start(file, words, env) {
    const child = new Child();
    child.process = spawn(file, words, {
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    child.said = '';
    child.process.stderr.on('data', (text) => {
      child.said += text;
    });
    child.ended = new Promise((resolve) => {
      child.process.on('close', resolve);
      child.process.on('error', resolve);
    });
    const lines = createInterface({ input: child.process.stdout });
    const line = await Promise.race([
      new Promise((resolve) => {
        lines.once('line', resolve);
      }),
      child.ended.then((code) => {
        throw new Error(`${file} ended with ${code} before it was ready: ${child.said}`);
      }),
    ]);
    child.ready = JSON.parse(line);
    return child;
  }

  async kill() {
    this.process.kill('SIGKILL');
    await this.ended;
  }
}

/** A scripted model. A step that was pushed answers one request; without one it says `done`. */
export class Model {
  static async start(folder) {
    const model = new Model();
    const script = path.join(folder, 'script.json');
    writeFileSync(script, '{}');
    model.child = await Child.start(
      program('HOLDFAST_MODEL_SERVER', 'holdfast-model-server'),
      ['--script', script],
      {},
    );
    model.url = model.child.ready.url;
    return model;
  }

  /** Makes it the default model of the programs on this data folder. */
  configure(data) {
    const words = [
      'default_model = "scripted/m"',
      '[providers.scripted]',
      'kind = "openai"',
      `base_url = "${this.url}"`,
      'models = ["m"]',
      '',
    ];
    writeFileSync(path.join(data, 'config.toml'), words.join('\n'));
  }

  async push(...steps) {
    for (const step of steps) {
      await this.#control('push', step);
    }
  }

  /** Lets the reply that waits at this gate go on. */
  release(gate) {
    return this.#control(`release/${gate}`, {});
  }

  /** The requests so far. */
  async requests() {
    return (await fetch(new URL('/control/requests', this.url))).json();
  }

  async #control(what, body) {
    const reply = await fetch(new URL(`/control/${what}`, this.url), {
      method: 'POST',
      body: JSON.stringify(body),
    });
    const answer = await reply.json();
    if (!answer.ok) {
      throw new Error(`The model server refused ${what}: ${answer.error}`);
    }
  }
}

let calls = 0;

/** A reply that calls a tool, with words before it. */
export function callStep(name, args, text = []) {
  calls += 1;
  const call = { id: `call_${calls}`, name, pieces: [JSON.stringify(args)] };
  return { text, calls: [call] };
}

/**
 * A command that makes `<name>-began`, waits for `<name>-gate` and makes `<name>-effect`, all beside
 * the projects. It ends by itself when the test's folder is gone.
 */
export function gatedCommand(stage, name) {
  const at = (what) => stage.beside(`${name}-${what}`);
  return (
    `echo at work; touch '${at('began')}'; ` +
    `until [ -e '${at('gate')}' ] || [ ! -d '${stage.data}' ]; do sleep 0.05; done; ` +
    `echo happened >> '${at('effect')}'; echo over`
  );
}
