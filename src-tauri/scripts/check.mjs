// `npm run check`: formatting and lints, all of them, even when one fails. `--write` formats instead.
// Unused dependencies and the rules of style are tests (tests/acceptance/tidy.rs).
import path from 'node:path';

import { seeToPackages } from './packages.mjs';
import { root, run } from './programs.mjs';
import { setUp } from './setup.mjs';
import { green, heading, red, runMain, say } from './terminal.mjs';

const PRETTY = ['.', '!**/*.{html,css}', '--ignore-unknown', '--log-level', 'warn'];
// Tests that `npm test` does not run are looked at all the same.
const ALSO = ['--features', 'holdfast-acceptance/interop'];
const write = process.argv.includes('--write');

const checks = [
  ['rustfmt', 'cargo', ['fmt', '--all', ...(write ? [] : ['--check'])]],
  [
    'prettier',
    process.execPath,
    [tool('prettier', 'bin/prettier.cjs'), write ? '--write' : '--check', ...PRETTY],
  ],
  [
    'eslint',
    process.execPath,
    [
      tool('eslint', 'bin/eslint.js'),
      '--config',
      'src-tauri/scripts/eslint.config.mjs',
      '--max-warnings=0',
      ...(write ? ['--fix'] : []),
      'src-tauri/scripts',
      'tests/e2e',
      'bench/web',
    ],
  ],
  ...(write ? [] : [['pages', 'npm', ['run', '--silent', 'check', '-w', 'ui']]]),
  ...(write
    ? []
    : [
        [
          'clippy',
          'cargo',
          ['clippy', '--workspace', '--all-targets', ...ALSO, '--', '-D', 'warnings'],
        ],
      ]),
];

await runMain(async () => {
  await setUp({ tests: true });
  await seeToPackages();
  const failed = [];
  for (const [name, program, args] of checks) {
    heading(name);
    const code = await run(program, args);
    say(code === 0 ? green(`${name}: fine`) : red(`${name}: failed`));
    if (code !== 0) {
      failed.push(name);
    }
  }
  if (failed.length === 0) {
    say(`\n${green('All checks passed.')}`);
    return 0;
  }
  say(`\n${red(`Failed: ${failed.join(', ')}.`)}`);
  say('What to do: `npm run format` mends rustfmt and prettier; the rest is named above.');
  return 1;
});

function tool(name, file) {
  return path.join(root, 'node_modules', name, file);
}
