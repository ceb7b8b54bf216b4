// `npm run bench:tool-recovery [-- rounds]`: builds what is missing and measures the recovery panel in
// a real browser, beside the same operations over bare HTTP.
import path from 'node:path';

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
  const { env } = browserTest(await buildForBrowser());
  heading('The recovery panel');
  const script = path.join('bench', 'web', 'tool-recovery.mjs');
  const code = await run(process.execPath, [script, ...process.argv.slice(2)], { env });
  return typeof code === 'number' ? code : 1;
});
