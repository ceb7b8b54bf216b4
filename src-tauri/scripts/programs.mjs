// Other programs, run from the checkout: with their output shown, or taken in as text.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { Failure, dim, say } from './terminal.mjs';

/** The checkout. */
export const root = fileURLToPath(new URL('../..', import.meta.url));

const windows = process.platform === 'win32';
export const executable = (name) => (windows ? `${name}.exe` : name);

// A Rust that was installed a moment ago is not yet in this process's PATH.
const cargoHome = process.env.CARGO_HOME ?? path.join(homedir(), '.cargo');
if (existsSync(path.join(cargoHome, 'bin'))) {
  addToPath();
}

/** Makes the programs of Rust's own folder visible to everything that is started from here. */
export function addToPath() {
  const folder = path.join(cargoHome, 'bin');
  const parts = (process.env.PATH ?? '').split(path.delimiter);
  if (!parts.includes(folder)) {
    process.env.PATH = [...parts, folder].join(path.delimiter);
  }
}

/** Where a program lies, or null. */
export function which(name) {
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    const file = path.join(folder, executable(name));
    if (folder && existsSync(file)) {
      return file;
    }
  }
  return null;
}

/** A program's standard output, or null when it can't be run or fails. */
export function textOf(program, args) {
  const done = spawnSync(program, args, { cwd: root, encoding: 'utf8' });
  return done.status === 0 ? done.stdout : null;
}

/**
 * Runs a program with its output shown. `onLine`, when given, gets each line of standard output
 * after it was shown, `quiet` keeps standard output to `onLine` alone. Answers the exit code.
 */
export function run(program, args, { env, onLine, quiet = false } = {}) {
  say(dim(`$ ${[program, ...args].join(' ')}`));
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: ['ignore', onLine ? 'pipe' : 'inherit', 'inherit'],
    });
    let rest = '';
    child.stdout?.setEncoding('utf8');
    child.stdout?.on('data', (text) => {
      if (!quiet) {
        process.stdout.write(text);
      }
      const lines = (rest + text).split('\n');
      rest = lines.pop();
      lines.forEach(onLine);
    });
    child.on('error', (error) =>
      reject(
        new Failure(
          `${program} can't be started (${error.message}).`,
          `see that ${program} is installed and in PATH, then run the same command again.`,
        ),
      ),
    );
    child.on('close', (code, signal) => {
      if (rest && onLine) {
        onLine(rest);
      }
      resolve(code ?? `killed by ${signal}`);
    });
  });
}

/** As `run`, but anything other than success is a failure with this advice. */
export async function mustRun(program, args, advice, options) {
  const code = await run(program, args, options);
  if (code !== 0) {
    throw new Failure(`${program} ${args[0] ?? ''} ended with ${code}.`, advice);
  }
}
