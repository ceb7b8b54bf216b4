// `npm run dev`: the window on a development server, so that a change of the pages is seen at once.
import { spawn } from 'node:child_process';

import { buildDevelopmentWindow } from './build.mjs';
import { seeToPackages } from './packages.mjs';
import { root, run } from './programs.mjs';
import { setUp } from './setup.mjs';
import { Failure, heading, runMain } from './terminal.mjs';

/** As tauri.conf.json says. */
const PAGES = 'http://localhost:5173';

const READY_MS = 60_000;

async function ready(server) {
  const end = Date.now() + READY_MS;
  while (server.exitCode === null && Date.now() < end) {
    const answer = await fetch(PAGES).catch(() => null);
    if (answer?.ok) {
      return;
    }
    await new Promise((resolve) => {
      setTimeout(resolve, 100);
    });
  }
  throw new Failure(
    `The development server does not answer at ${PAGES}.`,
    'see what it wrote above; another program may use the port.',
  );
}

await runMain(async () => {
  await setUp({ window: true });
  await seeToPackages();
  heading('Building (the first time takes some minutes, later seconds)');
  const programs = await buildDevelopmentWindow();
  heading('The window, on a development server');
  const words = ['run', 'dev', '--workspace', 'ui', '--', '--port', '5173', '--strictPort'];
  const server = spawn('npm', words, {
    cwd: root,
    stdio: 'inherit',
    shell: process.platform === 'win32',
  });
  try {
    await ready(server);
    const code = await run(programs['holdfast-app'], [], {
      env: { HOLDFAST_SUPERVISOR: programs['holdfast-supervisor'] },
    });
    return typeof code === 'number' ? code : 0;
  } finally {
    server.kill();
  }
});
