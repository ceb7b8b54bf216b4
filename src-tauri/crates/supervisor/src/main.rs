//! The supervisor's executable: `holdfast-supervisor <effect folder>`. Everything is in the
//! library's `keeper`; the exit status is 0 when a receipt was left, 1 when the command was not
//! started.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(folder), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: holdfast-supervisor <effect folder>");
        return ExitCode::from(2);
    };
    match holdfast_supervisor::keeper::run(folder.as_ref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Seen only when the standard streams are still open: before the isolation.
            eprintln!("holdfast-supervisor: {error}");
            ExitCode::FAILURE
        }
    }
}
