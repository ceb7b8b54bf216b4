//! The sample project on which the demo model works: a greeting program with one bug.

/// What to ask the demo model in the sample project.
pub const TASK: &str =
    "The greeting is wrong: `sh check.sh` fails. Find the bug, fix it and run the check again.";

/// The program with the bug.
pub(crate) const PROGRAM: &str = "greet.sh";
/// The check that fails because of it.
pub(crate) const CHECK: &str = "check.sh";
/// How the check is run.
pub(crate) const CHECK_COMMAND: &str = "sh check.sh";
/// The line with the bug.
pub(crate) const BUG: &str = r#"echo "Hello, $nmae!""#;
/// The line without it.
pub(crate) const FIX: &str = r#"echo "Hello, $name!""#;

const GREET_SH: &str = r#"#!/bin/sh
# Greets the person whose name is given, or the world.
name=${1:-world}
echo "Hello, $nmae!"
"#;

const CHECK_SH: &str = r#"#!/bin/sh
# Checks the greeting program. Ends with status 0 when every greeting is right.
status=0

check() {
  expected=$1
  shift
  found=$(sh greet.sh "$@")
  if [ "$found" = "$expected" ]; then
    echo "ok:   $expected"
  else
    echo "FAIL: expected '$expected', found '$found'"
    status=1
  fi
}

check 'Hello, world!'
check 'Hello, Ada!' Ada
check 'Hello, Grace Hopper!' 'Grace Hopper'
exit $status
"#;

const README_MD: &str = "# Greeting

A very small program that greets.

    sh greet.sh          # Hello, world!
    sh greet.sh Ada      # Hello, Ada!

`sh check.sh` checks it.
";

const AGENTS_MD: &str = "# For agents

- Plain POSIX sh, no other tools.
- After a change, run `sh check.sh`: it must end with status 0.
- Change `greet.sh` only; the check is right.
";

/// Path and content of each file of the sample project.
#[must_use]
pub fn sample_project() -> Vec<(&'static str, &'static str)> {
    vec![
        (PROGRAM, GREET_SH),
        (CHECK, CHECK_SH),
        ("README.md", README_MD),
        ("AGENTS.md", AGENTS_MD),
    ]
}
