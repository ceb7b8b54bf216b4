// `npm run stop-points`: builds the programs that the crash tests kill, as `npm test` does, and says
// how to run one such test by itself.
import { buildPages, buildStoppablePrograms, shown } from './build.mjs';
import { seeToPackages } from './packages.mjs';
import { runMain, say } from './terminal.mjs';

await runMain(async () => {
  await seeToPackages();
  await buildPages();
  const { holdfast } = await buildStoppablePrograms();
  say(`\nBuilt ${shown(holdfast)}. One test:`);
  say(`HOLDFAST_BIN="$PWD/${shown(holdfast)}" cargo test -p holdfast-acceptance NAME`);
});
