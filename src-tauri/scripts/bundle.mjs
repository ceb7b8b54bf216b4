// `npm run build`: the optimised window with its pages, and the supervisor beside it, in
// target/release. `npm run bundle` makes this system's installers of them.
import { copyFileSync, mkdirSync } from 'node:fs';
import path from 'node:path';

import { buildPages, buildRelease, shown } from './build.mjs';
import { seeToPackages } from './packages.mjs';
import { executable, mustRun, root, textOf } from './programs.mjs';
import { setUp } from './setup.mjs';
import { Failure, heading, runMain, say } from './terminal.mjs';

/** What can be built where; other formats need the system that they are for. */
const FORMATS = { linux: 'deb,rpm', darwin: 'dmg', win32: 'msi,nsis' };

function target() {
  const host = /^host: (.+)$/m.exec(textOf('rustc', ['-vV']) ?? '');
  if (!host) {
    throw new Failure('rustc does not say for which machine it builds.', 'run `rustc -vV`.');
  }
  return host[1].trim();
}

/** Puts the supervisor where the bundler looks for programs that lie beside the window. */
function placeSupervisor(program) {
  const folder = path.join(root, 'src-tauri', 'binaries');
  mkdirSync(folder, { recursive: true });
  copyFileSync(program, path.join(folder, executable(`holdfast-supervisor-${target()}`)));
}

await runMain(async () => {
  await setUp({ window: true });
  await seeToPackages();
  heading('Building (the first time takes about ten minutes)');
  await buildPages();
  const programs = await buildRelease();
  say(`Built ${shown(programs['holdfast-app'])}.`);
  if (process.argv.includes('--program')) {
    return;
  }
  heading('Installers');
  placeSupervisor(programs['holdfast-supervisor']);
  await mustRun(
    process.execPath,
    [
      path.join(root, 'node_modules', '@tauri-apps', 'cli', 'tauri.js'),
      'build',
      ...['--config', path.join('src-tauri', 'tauri.bundle.conf.json')],
      ...['--bundles', FORMATS[process.platform]],
      '--ci',
    ],
    "look at the bundler's first error above; the programs themselves are built.",
  );
});
