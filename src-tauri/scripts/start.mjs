// `npm start`: sees to what the machine needs, builds the programs, and runs the demo in the terminal.
import { buildPrograms } from './build.mjs';
import { demo } from './demo.mjs';
import { setUp } from './setup.mjs';
import { heading, runMain } from './terminal.mjs';

await runMain(async () => {
  await setUp();
  // The everyday build, not the optimised one: it is ready in a quarter of the time.
  heading('Building (the first time takes some minutes, later seconds)');
  await demo(await buildPrograms());
});
