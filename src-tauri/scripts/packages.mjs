// The Node packages of the checkout, as package-lock.json names them.
import { existsSync, statSync } from 'node:fs';
import path from 'node:path';

import { mustRun, root } from './programs.mjs';
import { heading } from './terminal.mjs';

/** Runs npm; the one that started this script, where there is one. */
export function npm(args, advice) {
  const own = process.env.npm_execpath;
  return mustRun(own ? process.execPath : 'npm', [...(own ? [own] : []), ...args], advice);
}

/** Installs the packages when they are missing or older than package-lock.json. */
export async function seeToPackages() {
  // npm writes this file last, so it is there only after a whole installation.
  const installed = path.join(root, 'node_modules', '.package-lock.json');
  const wanted = path.join(root, 'package-lock.json');
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(wanted).mtimeMs) {
    return;
  }
  heading('Node packages');
  await npm(
    ['ci', '--no-audit', '--no-fund'],
    'see that the package registry can be reached, then run the same command again.',
  );
}
