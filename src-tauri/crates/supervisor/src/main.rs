//! The supervisor's executable. `holdfast-supervisor <effect folder>`: everything is in the
//! library's `keeper`; the exit status is 0 when a receipt was left, 1 when the command was not
//! started. It also serves inside the effect-free sandbox, so that one file is all that has to be
//! seen there: `confine …` becomes a command with less rights, `try-effects …` reports what it could
//! change.

use std::ffi::OsString;
use std::process::ExitCode;

use holdfast_supervisor::{Confinement, SupervisorError, Targets, confinement, effects, keeper};

/// As shells answer for a command that was found and can't be executed.
const NOT_EXECUTED: u8 = 126;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next() {
        Some(first) if first == confinement::CONFINE => confine(arguments),
        Some(first) if first == effects::TRY_EFFECTS => try_effects(arguments),
        Some(folder) if arguments.next().is_none() => match keeper::run(folder.as_ref()) {
            Ok(()) => ExitCode::SUCCESS,
            // Seen only when the standard streams are still open: before the isolation.
            Err(error) => failed(&error, ExitCode::FAILURE),
        },
        Some(_) | None => usage(),
    }
}

fn confine(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match Confinement::parse(arguments) {
        Some(confinement) => failed(&confinement.enter(), ExitCode::from(NOT_EXECUTED)),
        None => usage(),
    }
}

fn try_effects(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    match Targets::parse(arguments) {
        Some(targets) => {
            print!("{}", effects::try_all(&targets));
            ExitCode::SUCCESS
        }
        None => usage(),
    }
}

fn failed(error: &SupervisorError, code: ExitCode) -> ExitCode {
    eprintln!("holdfast-supervisor: {error}");
    code
}

fn usage() -> ExitCode {
    eprintln!("usage: holdfast-supervisor <effect folder>");
    ExitCode::from(2)
}
