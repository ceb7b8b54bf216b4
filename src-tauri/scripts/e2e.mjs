// `npm run e2e [-- words for Playwright]`: builds what is missing and runs the browser tests.
import { browserTest } from './browser.mjs';
import { buildForBrowser, buildPages } from './build.mjs';
import { seeToPackages } from './packages.mjs';
import { run } from './programs.mjs';
import { setUp } from './setup.mjs';
import { heading, runMain } from './terminal.mjs';

await runMain(async () => {
  await setUp({ browser: true });
  await seeToPackages();
  heading('Building (the first time takes some minutes)');
  await buildPages();
  const { args, env } = browserTest(await buildForBrowser(), process.argv.slice(2));
  heading('The browser');
  const code = await run(process.execPath, args, { env });
  return typeof code === 'number' ? code : 1;
});
