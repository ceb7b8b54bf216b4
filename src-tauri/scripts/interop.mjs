// `npm run test:interop`: installs one version of Reasonix beside the build, and has our remote client
// drive its serve against a scripted model, all on this machine. Not part of `npm test`: that
// program is somebody else's, and nothing of it is used anywhere else.
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { npm } from './packages.mjs';
import { executable, root, run } from './programs.mjs';
import { setUp } from './setup.mjs';
import { Tally } from './tally.mjs';
import { Failure, heading, runMain, say } from './terminal.mjs';

const PACKAGE = 'reasonix';
const VERSION = '1.38.11';
const FOLDER = path.join(root, 'target', 'interop');
const MODULES = path.join(FOLDER, 'node_modules');

/** The version of an installed package, or null. */
function installed(name) {
  const file = path.join(MODULES, name, 'package.json');
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).version : null;
}

/** Installs that version, and answers where its program lies. */
async function program() {
  const own = `@reasonix/cli-${process.platform}-${process.arch}`;
  const isThere = () => [PACKAGE, own].every((name) => installed(name) === VERSION);
  if (!isThere()) {
    mkdirSync(FOLDER, { recursive: true });
    // Without one, npm would look for it further up and change that.
    writeFileSync(path.join(FOLDER, 'package.json'), '{ "private": true }\n');
    await npm(
      [
        'install',
        '--prefix',
        FOLDER,
        '--no-audit',
        '--no-fund',
        '--ignore-scripts',
        '--save-exact',
        `${PACKAGE}@${VERSION}`,
      ],
      'see that the package registry can be reached, then run the same command again.',
    );
  }
  const found = path.join(MODULES, own, 'bin', executable('reasonix'));
  if (!isThere() || !existsSync(found)) {
    throw new Failure(
      `${PACKAGE} ${VERSION} has no program for ${process.platform} ${process.arch}.`,
      'run this on a system for which that package has one.',
    );
  }
  return found;
}

await runMain(async () => {
  await setUp({ tests: true, window: false });
  heading(`${PACKAGE} ${VERSION}`);
  const found = await program();
  say(`The tests use ${path.relative(root, found)}.`);

  heading('Our client and that host');
  const tally = new Tally();
  const proven = [];
  const args = ['test', '-p', 'holdfast-acceptance', '--features', 'interop', '--'];
  // One after the other, so that the lines of each stand together.
  const how = ['interop::', '--nocapture', '--test-threads=1'];
  const code = await run('cargo', [...args, ...how], {
    env: { HOLDFAST_REASONIX: found },
    onLine: (line) => {
      tally.rustLine(line);
      const said = /proven: (.*)$/.exec(line);
      if (said) {
        proven.push(said[1]);
      }
    },
  });
  tally.ended('cargo test', code, 0);
  if (tally.failed === 0 && proven.length === 0) {
    tally.ended('the tests', 'no proof', 0);
  }

  heading(`What was proven with ${PACKAGE} ${VERSION}`);
  proven.forEach((line) => say(line));
  tally.failures.forEach((name) => say(`failed: ${name}`));
  say(`\n${tally.passed} passed, ${tally.failed} failed`);
  return tally.failed === 0 ? 0 : 1;
});
