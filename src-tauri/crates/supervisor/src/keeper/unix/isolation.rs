//! What the supervisor leaves behind of its launcher (SV-01).
//!
//! Guarantees: own session without a terminal, working folder `/`, standard streams on the null
//! device, no inherited descriptor. Umask and limits stay: they are the user's, and the command's.

use std::fs::OpenOptions;
use std::io;

use rustix::process::{getpid, getsid, setsid};

use crate::error::SupervisorError;

/// Isolates the process. First thing of all, before anything is opened. `close_inherited` closes
/// every descriptor above the standard streams.
pub(in crate::keeper) fn isolate(
    close_inherited: impl FnOnce() -> io::Result<()>,
) -> Result<(), SupervisorError> {
    close_inherited().map_err(SupervisorError::io("closing inherited descriptors"))?;
    if let Err(error) = setsid() {
        // The leader of a group can't make a session; the leader of a session has its own already.
        if getsid(None) != Ok(getpid()) {
            return Err(SupervisorError::io("making an own session")(error.into()));
        }
    }
    std::env::set_current_dir("/").map_err(SupervisorError::io("changing to the folder /"))?;
    let null = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null")
        .map_err(SupervisorError::io("opening the null device"))?;
    rustix::stdio::dup2_stdin(&null)
        .and_then(|()| rustix::stdio::dup2_stdout(&null))
        .and_then(|()| rustix::stdio::dup2_stderr(&null))
        .map_err(|error| SupervisorError::io("silencing the standard streams")(error.into()))
}
