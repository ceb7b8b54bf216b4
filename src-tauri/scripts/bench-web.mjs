// `npm run bench:tool-recovery`, `bench:runtime-state`, `bench:remote-tabs` [-- rounds]: builds what is
// missing and makes a measurement in a real browser, bench/web/NAME.mjs.
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
  const [name, ...words] = process.argv.slice(2);
  heading(`Measuring: ${name}`);
  const script = path.join('bench', 'web', `${name}.mjs`);
  const code = await run(process.execPath, [script, ...words], { env });
  return typeof code === 'number' ? code : 1;
});
