// The browser tests: Playwright with the system's Chromium against the real `holdfast web`.
import path from 'node:path';

import { root, which } from './programs.mjs';

/** Names of browsers that the tests can drive, the first that is there. */
const BROWSERS = ['chromium', 'chromium-browser', 'google-chrome'];

/** The browser for the tests, or null: as the environment says, else the system's. */
export function chromium() {
  return (
    process.env.HOLDFAST_CHROMIUM ??
    BROWSERS.map((name) => which(name)).find((file) => file !== null) ??
    null
  );
}

/** The words after `node`, and the environment, for these programs. */
export function browserTest(programs, words = []) {
  return {
    args: [
      path.join(root, 'node_modules', '@playwright', 'test', 'cli.js'),
      'test',
      '--config',
      path.join('tests', 'e2e', 'web', 'playwright.config.mjs'),
      ...words,
    ],
    env: {
      HOLDFAST_BIN: programs.holdfast,
      HOLDFAST_SUPERVISOR: programs['holdfast-supervisor'],
      HOLDFAST_MODEL_SERVER: programs['holdfast-model-server'],
      HOLDFAST_CHROMIUM: chromium(),
    },
  };
}
