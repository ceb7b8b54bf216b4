// The browser tests: the system's Chromium against the real `holdfast web` and a scripted model.
//
// HOLDFAST_CHROMIUM names another browser; HOLDFAST_BIN, HOLDFAST_SUPERVISOR and
// HOLDFAST_MODEL_SERVER name the programs (`npm run e2e` does).
import { defineConfig } from '@playwright/test';

/** What a condition may take on a busy machine, milliseconds. */
const SOON = 20_000;

export default defineConfig({
  testDir: '.',
  testMatch: '*.spec.mjs',
  outputDir: '../../../target/e2e-web',
  fullyParallel: true,
  forbidOnly: true,
  retries: 0,
  workers: 2,
  timeout: 120_000,
  expect: { timeout: SOON },
  reporter: 'list',
  use: {
    actionTimeout: SOON,
    navigationTimeout: SOON,
    viewport: { width: 1280, height: 800 },
    locale: 'en-US',
    colorScheme: 'light',
    reducedMotion: 'reduce',
    screenshot: 'only-on-failure',
    launchOptions: {
      executablePath: process.env.HOLDFAST_CHROMIUM ?? '/usr/bin/chromium',
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-dev-shm-usage',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    },
  },
});
