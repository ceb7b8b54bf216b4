// Building the programs with cargo, and where they end up.
import { copyFileSync, mkdirSync, renameSync, utimesSync } from 'node:fs';
import path from 'node:path';

import { npm } from './packages.mjs';
import { executable, mustRun, root } from './programs.mjs';
import { Failure } from './terminal.mjs';

/** Makes the window carry the pages of ui/dist instead of asking a development server for them. */
export const PAGES_INSIDE = ['--features', 'holdfast-app/custom-protocol'];

const ADVICE = "look at the compiler's first error above; nothing was started.";

/** Runs `cargo build` and answers where each built program lies: `{ name: path }`. */
async function cargoBuild(args) {
  const programs = {};
  await mustRun('cargo', ['build', ...args, '--message-format=json-render-diagnostics'], ADVICE, {
    quiet: true,
    onLine(line) {
      const message = line.startsWith('{') ? JSON.parse(line) : {};
      if (message.reason === 'compiler-artifact' && message.executable) {
        programs[message.target.name] = message.executable;
      }
    },
  });
  for (const name of ['holdfast', 'holdfast-supervisor']) {
    if (!programs[name]) {
      throw new Failure(
        `The build named no program ${name}.`,
        'run `cargo build -p holdfast-cli -p holdfast-supervisor` and look at what it says.',
      );
    }
  }
  return programs;
}

/** The pages that the window and the browser show; they end up in ui/dist. */
export async function buildPages() {
  await npm(
    ['run', 'build', '--workspace', 'ui'],
    "look at the bundler's first error above; nothing was started.",
  );
}

const WINDOW = ['holdfast-app', 'holdfast-cli', 'holdfast-supervisor'].flatMap((name) => [
  '-p',
  name,
]);

/** The window with the pages inside, and the supervisor beside it. Needs the pages. */
export function buildWindow() {
  return cargoBuild([...WINDOW, ...PAGES_INSIDE]);
}

/** The window as `npm run dev` uses it: its pages come from a development server. */
export function buildDevelopmentWindow() {
  return cargoBuild(WINDOW);
}

/** The optimised window with the pages inside, and the supervisor beside it. Needs the pages. */
export function buildRelease() {
  return cargoBuild([...WINDOW, ...PAGES_INSIDE, '--release']);
}

/** The programs as a person uses them. */
export function buildPrograms() {
  return cargoBuild(['-p', 'holdfast-cli', '-p', 'holdfast-supervisor']);
}

/** The programs as a person uses them, and the scripted model that the browser tests talk to. */
export function buildForBrowser() {
  const crates = ['holdfast-cli', 'holdfast-supervisor', 'holdfast-testkit'];
  return cargoBuild([...crates.flatMap((name) => ['-p', name]), '--bins']);
}

/**
 * The programs with stop points, which the acceptance tests kill at chosen places, copied aside; and
 * the window, an ordinary one. Needs the pages.
 *
 * They are built in the ordinary target folder, since only three of our own crates know the
 * feature: a second target folder would compile every library twice. The copy is what the tests
 * use, and the ordinary programs are built again afterwards, so that a program with stop points
 * never lies where a plain build would have put one without.
 */
export async function buildStoppablePrograms() {
  const built = await cargoBuild([
    '--workspace',
    '--bins',
    '--features',
    'holdfast-cli/stop-points',
    ...PAGES_INSIDE,
  ]);
  const folder = path.join(path.dirname(path.dirname(built.holdfast)), 'stop-points');
  mkdirSync(folder, { recursive: true });
  const copies = {};
  for (const name of ['holdfast', 'holdfast-supervisor']) {
    const copy = path.join(folder, executable(name));
    // A program that still runs can't be written over, but it can be replaced.
    copyFileSync(built[name], `${copy}.new`);
    renameSync(`${copy}.new`, copy);
    copies[name] = copy;
  }
  const plain = await cargoBuild(['--workspace', '--bins', ...PAGES_INSIDE]);
  // Tests take whichever was built last: these, until the plain ones are built of later code.
  const now = new Date();
  for (const copy of Object.values(copies)) utimesSync(copy, now, now);
  return {
    ...copies,
    'holdfast-app': plain['holdfast-app'],
    'holdfast-model-server': plain['holdfast-model-server'],
  };
}

/** A path as a person wants to read it. */
export const shown = (file) => path.relative(root, file) || file;
