// The sample project, and a witness outside of it: every run of the check adds one line to a file of
// which neither the model nor the host knows. So what really ran is counted by nobody who could err.
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { Failure } from '../terminal.mjs';

/** How long each check takes, so that the host can be killed in the middle of one. */
export const CHECK_SECONDS = 3;

export class Sample {
  /** Writes the project into a new folder. */
  static create(holdfast) {
    const sample = new Sample();
    sample.folder = realpathSync(mkdtempSync(path.join(tmpdir(), 'holdfast-demo-')));
    sample.data = path.join(sample.folder, 'data');
    sample.project = path.join(sample.folder, 'project');
    sample.witness = path.join(sample.folder, 'runs');
    mkdirSync(sample.project);
    const done = spawnSync(holdfast, ['demo-project', sample.project], { encoding: 'utf8' });
    const check = path.join(sample.project, 'check.sh');
    if (done.status !== 0 || !existsSync(check)) {
      const words = done.error?.message ?? done.stderr.trim();
      throw new Failure(
        `The sample project could not be written: ${words || 'check.sh is missing'}`,
        `see that ${sample.folder} can be written to and has room, then run \`npm start\` again.`,
      );
    }
    const [first, ...rest] = readFileSync(check, 'utf8').split('\n');
    const lines = [`echo run >> '${sample.witness}'`, `sleep ${CHECK_SECONDS}`];
    writeFileSync(check, [first, ...lines, ...rest].join('\n'));
    return sample;
  }

  /** How often the check has been started so far, by anybody. */
  runs() {
    return existsSync(this.witness)
      ? readFileSync(this.witness, 'utf8').split('\n').filter(Boolean).length
      : 0;
  }

  /** Runs the check once more, without the agent, and answers its exit code. */
  check() {
    return spawnSync('sh', ['check.sh'], { cwd: this.project, encoding: 'utf8' }).status;
  }
}
