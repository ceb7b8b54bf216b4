// `npm run gallery:states -w ui`: how each state of a session looks in the project tree, one PNG each,
// into docs/pictures/states/. docs/RUNTIME_STATE.md shows them. It uses the system's Chromium.
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { chromium } from '@playwright/test';
import { createServer } from 'vite';

const ui = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const into = path.resolve(ui, '..', 'docs', 'pictures', 'states');

/** The rows of the scene, in their order. */
const STATES = [
  'idle',
  'finishing',
  'cancelling',
  'waiting_confirmation',
  'streaming',
  'thinking',
  'background_jobs',
  'error',
  'paused',
  'awaiting_delivery',
  'unresolved',
];

const server = await createServer({ root: ui, logLevel: 'error', server: { port: 0 } });
await server.listen();
const browser = await chromium.launch({
  executablePath: process.env.HOLDFAST_CHROMIUM ?? '/usr/bin/chromium',
  args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--disable-quic'],
});
try {
  await mkdir(into, { recursive: true });
  const page = await browser.newPage({
    viewport: { width: 1280, height: 800 },
    deviceScaleFactor: 2,
    reducedMotion: 'reduce',
  });
  const take = async (scene, names) => {
    await page.goto(`${server.resolvedUrls?.local[0]}gallery.html?scene=${scene}`);
    await page.waitForSelector('body[data-ready]', { timeout: 60_000 });
    await page.evaluate(() => document.fonts.ready);
    await page.mouse.move(900, 20);
    const rows = page.locator('nav li.row');
    for (const [state, name] of names) {
      const row = rows.nth(STATES.indexOf(state));
      await row.screenshot({ path: path.join(into, `${name}.png`) });
    }
    return rows.count();
  };
  const count = await take(
    'states',
    STATES.map((state) => [state, state]),
  );
  if (count !== STATES.length) {
    throw new Error(`The scene has ${count} rows, and ${STATES.length} are known here.`);
  }
  // A session in a tab: its state was confirmed once.
  await take('states-not-synced', [['streaming', 'not_synced']]);
} finally {
  await browser.close();
  await server.close();
}
