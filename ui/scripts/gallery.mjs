// `npm run gallery [name…]`: a PNG of every scene, light and dark, in English and Chinese, into
// ui/gallery/. It uses the system's Chromium.
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { chromium } from '@playwright/test';
import { createServer } from 'vite';

const ui = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..');
const into = path.join(ui, 'gallery');
const LOOKS = [
  { theme: 'light', language: 'en' },
  { theme: 'dark', language: 'zh-CN' },
  { theme: 'dark', language: 'en' },
  { theme: 'light', language: 'zh-CN' },
];
const wanted = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const looks = process.argv.includes('--quick') ? LOOKS.slice(0, 2) : LOOKS;

const server = await createServer({ root: ui, logLevel: 'error', server: { port: 0 } });
await server.listen();
const address = server.resolvedUrls?.local[0];
const browser = await chromium.launch({
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
});
let failed = 0;
try {
  await mkdir(into, { recursive: true });
  const page = await browser.newPage({
    viewport: { width: 1280, height: 800 },
    reducedMotion: 'reduce',
  });
  page.setDefaultTimeout(10_000);
  let problems = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (line) => line.type() === 'error' && problems.push(line.text()));
  await page.goto(`${address}gallery.html?scene=empty`);
  await page.waitForSelector('body[data-ready]', { timeout: 60_000 });
  const scenes = await page.evaluate(() => window.gallery);
  const names = Object.keys(scenes).filter((name) => wanted.length === 0 || wanted.includes(name));
  for (const name of names) {
    for (const { theme, language } of looks) {
      const file = `${name}.${theme}.${language}.png`;
      problems = [];
      try {
        await page.goto(
          `${address}gallery.html?${new URLSearchParams({ scene: name, theme, language })}`,
        );
        await page.waitForSelector('body[data-ready]');
        await page.evaluate(() => document.fonts.ready);
        await page.waitForLoadState('networkidle');
        const { press, keys } = scenes[name];
        for (const key of keys) {
          await page.keyboard.press(key);
        }
        for (const selector of press) {
          await page.locator(selector).first().click();
        }
        await page.mouse.move(900, 20);
        await page.evaluate(
          () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))),
        );
        await page.screenshot({ path: path.join(into, file) });
      } catch (error) {
        problems.push(String(error).split('\n')[0]);
      }
      if (problems.length > 0) {
        failed += 1;
        console.error(`${file}: ${problems.join('; ')}`);
      }
    }
    console.log(name);
  }
} finally {
  await browser.close();
  await server.close();
}
process.exitCode = failed === 0 ? 0 : 1;
