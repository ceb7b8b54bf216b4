//! Processes of an attempt whose supervisor is gone: found by the attempt's id in their
//! environment, and told to end (SV-04).
//!
//! Guarantee: a signal goes only to a process of this boot that was matched by its start time
//! (SV-06), and never to the calling process.

use std::time::Duration;

use holdfast_domain::recovery::process::Straggler;

use crate::error::SupervisorError;

/// Ends what is left of an attempt's tree: TERM, `grace`, then KILL until the bound of 5 s. Answers
/// who is still there; empty when nothing is left that can be found. A start record of another boot
/// has nothing left by nature, so nobody is signalled.
///
/// Blocks up to `grace` and the bound. A process that cleared its environment, or belongs to
/// another user, is not found.
///
/// # Errors
/// `supervisor_io`; `unsupported_platform` elsewhere than on Linux.
pub fn end_stragglers(
    attempt_id: &str,
    boot_of_start_record: &str,
    grace: Duration,
) -> Result<Vec<Straggler>, SupervisorError> {
    #[cfg(target_os = "linux")]
    {
        linux::end(attempt_id, boot_of_start_record, grace)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (attempt_id, boot_of_start_record, grace);
        Err(SupervisorError::UnsupportedPlatform)
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::collections::HashSet;
    use std::time::{Duration, Instant};

    use holdfast_domain::recovery::process::Straggler;
    use rustix::process::Signal;

    use crate::error::SupervisorError;
    use crate::identity::boot_id;
    use crate::process_table::{Entry, carrying, descendants, send};

    /// From the first KILL until those that are left are named and given up.
    const KILL_LIMIT: Duration = Duration::from_secs(5);
    /// Between two looks: each reads the environment of all processes.
    const PAUSE: Duration = Duration::from_millis(25);

    pub(super) fn end(
        attempt_id: &str,
        boot_of_start_record: &str,
        grace: Duration,
    ) -> Result<Vec<Straggler>, SupervisorError> {
        if boot_id()? != boot_of_start_record {
            return Ok(Vec::new());
        }
        let kill_from = Instant::now() + grace;
        let mut told = HashSet::new();
        loop {
            let left = tree(attempt_id);
            let now = Instant::now();
            if left.is_empty() || now >= kill_from + KILL_LIMIT {
                return Ok(left.iter().map(Entry::straggler).collect());
            }
            if now < kill_from {
                for process in &left {
                    if told.insert((process.pid, process.start_time)) {
                        send(process, Signal::TERM);
                        if process.state == 'T' {
                            send(process, Signal::CONT);
                        }
                    }
                }
            } else {
                // Stopped first, so that nothing gives birth while it is killed.
                for process in &left {
                    send(process, Signal::STOP);
                }
                for process in tree(attempt_id) {
                    send(&process, Signal::KILL);
                }
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Those that carry the id, and their descendants, which may have cleared it.
    fn tree(attempt_id: &str) -> Vec<Entry> {
        let mut seen = HashSet::from([std::process::id()]);
        let mut found = Vec::new();
        for process in carrying(attempt_id) {
            let below = descendants(process.pid).into_iter().filter(Entry::lives);
            for process in std::iter::once(process.clone()).chain(below) {
                if seen.insert(process.pid) {
                    found.push(process);
                }
            }
        }
        found
    }
}
