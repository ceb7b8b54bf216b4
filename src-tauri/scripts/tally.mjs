// Counting tests from what the test programs print. What ended without a count is a failure, so a
// crashed test program never looks like a pass.

/** Counts over all test programs of a run. */
export class Tally {
  passed = 0;
  failed = 0;
  failures = [];

  /** One line of `cargo test`. */
  rustLine(line) {
    const result = /^test result: \w+\. (\d+) passed; (\d+) failed;/.exec(line);
    if (result) {
      this.passed += Number(result[1]);
      this.failed += Number(result[2]);
    }
    const test = /^test (.+?)(?: - should panic)? \.\.\. FAILED$/.exec(line);
    if (test) {
      this.failures.push(test[1]);
    }
  }

  /** One line of `node --test --test-reporter=tap`. */
  nodeLine(line) {
    const count = /^# (pass|fail|cancelled) (\d+)$/.exec(line);
    if (count) {
      this[count[1] === 'pass' ? 'passed' : 'failed'] += Number(count[2]);
    }
    const test = /^not ok \d+ - (.+)$/.exec(line);
    if (test) {
      this.failures.push(test[1]);
    }
  }

  /** One line of a flat TAP stream, where every test has its own line. */
  tapLine(line) {
    const test = /^(not )?ok \d+ - (.+?)(?: # (SKIP|TODO|time=).*)?$/.exec(line);
    if (test && test[3] !== 'SKIP' && test[3] !== 'TODO') {
      this[test[1] ? 'failed' : 'passed'] += 1;
      if (test[1]) {
        this.failures.push(test[2]);
      }
    }
  }

  /** One line of Playwright's list: the sums at its end, and below them the tests that failed. */
  playwrightLine(line) {
    const sum = /^ {2}(\d+) (passed|failed|flaky|interrupted|did not run)\b/.exec(line);
    if (sum) {
      this[sum[2] === 'passed' ? 'passed' : 'failed'] += Number(sum[1]);
    }
    const test = /^ {4}(\S+\.spec\.\S+:\d+:\d+ .+?) ?─*$/.exec(line);
    if (test) {
      this.failures.push(test[1]);
    }
  }

  /** The end of one command: `before` is the number of failures when it began. */
  ended(name, code, before) {
    if (code !== 0 && this.failed === before) {
      this.failed += 1;
      this.failures.push(`${name} ended with ${code} without naming a failed test`);
    }
  }
}
