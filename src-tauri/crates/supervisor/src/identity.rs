//! Who is who: the boot, a process by pid and start time, the processes of an attempt.
//!
//! Guarantee: a pid alone is never an identity; it is one together with its start time and the
//! boot (SV-06).

use std::time::{SystemTime, UNIX_EPOCH};

use holdfast_domain::recovery::process::Straggler;

use crate::error::SupervisorError;

/// The id of this boot, as the kernel gives it.
///
/// # Errors
/// `supervisor_io`; `unsupported_platform` elsewhere than on Linux.
pub fn boot_id() -> Result<String, SupervisorError> {
    #[cfg(target_os = "linux")]
    {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map(|id| id.trim().to_owned())
            .map_err(SupervisorError::io("reading the boot id"))
    }
    #[cfg(not(target_os = "linux"))]
    Err(SupervisorError::UnsupportedPlatform)
}

/// When a process started, in clock ticks since the boot; `None` when there is no such process.
///
/// # Errors
/// `unsupported_platform` elsewhere than on Linux.
pub fn process_start_time(pid: u32) -> Result<Option<u64>, SupervisorError> {
    #[cfg(target_os = "linux")]
    {
        Ok(crate::process_table::entry(pid).map(|entry| entry.start_time))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = pid;
        Err(SupervisorError::UnsupportedPlatform)
    }
}

/// The living processes that carry the attempt's id in their environment (SV-04): what is left of a
/// tree whose supervisor is gone. A process that cleared its environment, or belongs to another
/// user, is not found.
///
/// # Errors
/// `unsupported_platform` elsewhere than on Linux.
pub fn stragglers(attempt_id: &str) -> Result<Vec<Straggler>, SupervisorError> {
    #[cfg(target_os = "linux")]
    {
        Ok(crate::process_table::carrying(attempt_id)
            .iter()
            .map(crate::process_table::Entry::straggler)
            .collect())
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = attempt_id;
        Err(SupervisorError::UnsupportedPlatform)
    }
}

/// Unix milliseconds now.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}
