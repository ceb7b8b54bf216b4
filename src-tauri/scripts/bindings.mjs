// `npm run bindings`: writes ui/src/bindings/bindings.ts from the backend's commands, events and
// types. A test fails when the committed file is another.
import { mustRun } from './programs.mjs';
import { setUp } from './setup.mjs';
import { runMain } from './terminal.mjs';

await runMain(async () => {
  await setUp({ window: true });
  await mustRun(
    'cargo',
    ['test', '-p', 'holdfast-app', '--test', 'it', 'bindings'],
    "look at the compiler's first error above; the file was not changed.",
    { env: { HOLDFAST_BINDINGS: 'write' } },
  );
});
