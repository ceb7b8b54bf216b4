// `npm test`: sets up the machine, builds everything once, runs all tests, and ends with one line
// `N passed, N failed` counted over all of them. Exit code 0 only when none failed.
//
// Plain `cargo test` is used on purpose: another runner would first have to be compiled, which costs
// more on a fresh machine than it saves.
import path from 'node:path';

import { browserTest } from './browser.mjs';
import { PAGES_INSIDE, buildPages, buildStoppablePrograms, shown } from './build.mjs';
import { seeToPackages } from './packages.mjs';
import { files } from './proofs.mjs';
import { root, run } from './programs.mjs';
import { setUp } from './setup.mjs';
import { Tally } from './tally.mjs';
import { bold, heading, red, runMain, say } from './terminal.mjs';

await runMain(async () => {
  const started = process.hrtime.bigint();
  await setUp({ tests: true, driver: true });
  await seeToPackages();

  heading('Building (the first time takes some minutes)');
  await buildPages();
  const programs = await buildStoppablePrograms();
  say(`The tests use ${shown(programs.holdfast)}.`);

  const tally = new Tally();
  heading('Tests of the scripts');
  const scripts = files(root, ['src-tauri/scripts'], '.test.mjs');
  await count(tally, process.execPath, ['--test', '--test-reporter=tap', ...scripts], {
    onLine: (line) => tally.nodeLine(line),
    quiet: true,
  });

  heading('Tests of the pages');
  const vitest = path.join(root, 'node_modules', 'vitest', 'vitest.mjs');
  await count(tally, process.execPath, [vitest, 'run', '--root', 'ui', '--reporter=tap-flat'], {
    onLine: (line) => tally.tapLine(line),
    quiet: true,
  });

  heading('Tests of the crates, and the acceptance tests');
  await count(tally, 'cargo', ['test', '--workspace', '--no-fail-fast', ...PAGES_INSIDE], {
    onLine: (line) => tally.rustLine(line),
    env: { HOLDFAST_BIN: programs.holdfast, HOLDFAST_SUPERVISOR: programs['holdfast-supervisor'] },
  });

  if (process.platform === 'linux') {
    heading('The browser');
    const { args, env } = browserTest(programs);
    await count(tally, process.execPath, args, {
      onLine: (line) => tally.playwrightLine(line),
      env,
    });

    heading('The window, without a screen');
    await count(tally, 'xvfb-run', windowTest(), {
      onLine: (line) => tally.nodeLine(line),
      quiet: true,
      env: {
        HOLDFAST_APP: programs['holdfast-app'],
        HOLDFAST_SUPERVISOR: programs['holdfast-supervisor'],
        HOLDFAST_MODEL_SERVER: programs['holdfast-model-server'],
      },
    });
  }

  heading('Result');
  tally.failures.forEach((name) => say(`${red('failed')} ${name}`));
  const seconds = Number((process.hrtime.bigint() - started) / 1_000_000_000n);
  say(`After ${seconds} s:`);
  say(bold(`${tally.passed} passed, ${tally.failed} failed`));
  return tally.failed === 0 && tally.passed > 0 ? 0 : 1;
});

/** The words after `xvfb-run`: a screen, a message bus of its own, and the tests in both. */
function windowTest() {
  const tests = files(root, ['tests/e2e/window'], '.test.mjs');
  return [
    ...['-a', '-s', '-screen 0 1280x800x24', 'dbus-run-session', '--'],
    // One window at a time: they share the screen, and one of the tests takes its picture.
    ...[process.execPath, '--test', '--test-concurrency=1', '--test-reporter=tap', ...tests],
  ];
}

async function count(tally, program, args, options) {
  const before = tally.failed;
  const code = await run(program, args, options);
  tally.ended(`${program} ${args[0]}`, code, before);
}
