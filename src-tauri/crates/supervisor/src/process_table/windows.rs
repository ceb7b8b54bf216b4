//! The system's processes, by handle.

use holdfast_domain::recovery::process::Straggler;

use crate::win32::{Process, booted_at};

/// The id of this boot: when it began. Windows has no name for a boot; this moment does not move
/// when the clock is set.
pub(crate) fn boot_id() -> std::io::Result<String> {
    booted_at().map(|at| format!("windows-{at}"))
}

/// When a process was created, in 100 ns since 1601.
pub(crate) fn start_time(pid: u32) -> Option<u64> {
    // The handle of an ended process lives on while somebody has it open.
    Process::open(pid)
        .filter(|process| !process.has_ended())?
        .created_at()
}

/// Nobody: the job object ends with its supervisor, and everything in it.
pub(crate) fn carrying(_attempt_id: &str) -> Vec<Straggler> {
    Vec::new()
}

/// A process by its id, for display.
pub(crate) fn straggler(pid: u32) -> Straggler {
    let name = Process::open(pid)
        .and_then(|process| process.name())
        .unwrap_or_else(|| "a process without a name".to_owned());
    Straggler {
        pid,
        name: name
            .chars()
            .map(|c| if c.is_control() { '?' } else { c })
            .take(64)
            .collect(),
    }
}
