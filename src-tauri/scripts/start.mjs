// `npm start`: sees to what the machine needs, builds, and opens the window. Where there is no
// display the same pages are served to a browser. `npm start -- --demo-terminal` runs the demo in
// the terminal instead.
import path from 'node:path';

import { buildPages, buildPrograms, buildWindow } from './build.mjs';
import { demo } from './demo.mjs';
import { seeToPackages } from './packages.mjs';
import { root, run } from './programs.mjs';
import { setUp } from './setup.mjs';
import { bold, heading, runMain, say } from './terminal.mjs';

// The everyday build, not the optimised one: it is ready in a quarter of the time.
const BUILDING = 'Building (the first time takes some minutes, later seconds)';

/** Whether a window could be shown here. */
function hasDisplay() {
  return (
    process.platform !== 'linux' || Boolean(process.env.DISPLAY || process.env.WAYLAND_DISPLAY)
  );
}

async function inTerminal() {
  await setUp();
  heading(BUILDING);
  await demo(await buildPrograms());
  return 0;
}

async function inWindow() {
  await setUp({ window: true });
  await seeToPackages();
  heading(BUILDING);
  await buildPages();
  const programs = await buildWindow();
  heading('The window');
  say('Close the window, or press Ctrl+C here, to quit.');
  return untilEnd(programs, programs['holdfast-app'], []);
}

async function inBrowser() {
  await setUp();
  await seeToPackages();
  heading(BUILDING);
  await buildPages();
  const programs = await buildPrograms();
  heading('The browser');
  say(
    `There is no display here, so no window can open. ${bold('Open the link below in a browser')}; ` +
      'press Ctrl+C here to quit.',
  );
  return untilEnd(programs, programs.holdfast, ['web']);
}

/** Runs until the person quits it; a signal, as of Ctrl+C, is an ordinary way to quit. */
async function untilEnd(programs, program, args) {
  const code = await run(program, args, {
    env: {
      HOLDFAST_SUPERVISOR: programs['holdfast-supervisor'],
      // The programs may lie outside the checkout, where cargo was told so.
      HOLDFAST_UI: path.join(root, 'ui', 'dist'),
    },
  });
  return typeof code === 'number' ? code : 0;
}

await runMain(() => {
  if (process.argv.includes('--demo-terminal')) {
    return inTerminal();
  }
  return hasDisplay() ? inWindow() : inBrowser();
});
