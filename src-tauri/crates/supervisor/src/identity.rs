//! Who is who: the boot, a process by pid and start time, the processes of an attempt.
//!
//! Guarantee: a pid alone is never an identity; it is one together with its start time and the
//! boot (SV-06).

use std::time::{SystemTime, UNIX_EPOCH};

use holdfast_domain::recovery::process::Straggler;

#[cfg(not(target_os = "linux"))]
use crate::SUPPORTED;
use crate::error::SupervisorError;

/// The id of this boot, as the kernel gives it; on Windows, which gives none, the moment of its
/// beginning.
///
/// # Errors
/// `supervisor_io`; `unsupported_platform` where commands are not supported.
pub fn boot_id() -> Result<String, SupervisorError> {
    #[cfg(target_os = "linux")]
    {
        std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
            .map(|id| id.trim().to_owned())
            .map_err(SupervisorError::io("reading the boot id"))
    }
    #[cfg(not(target_os = "linux"))]
    {
        if !SUPPORTED {
            return Err(SupervisorError::UnsupportedPlatform);
        }
        crate::process_table::boot_id().map_err(SupervisorError::io("reading the boot id"))
    }
}

/// When a process started, in clock ticks since the boot (Linux), microseconds since 1970 (macOS)
/// or 100 ns since 1601 (Windows); `None` when there is no such process.
///
/// # Errors
/// `unsupported_platform` where commands are not supported.
pub fn process_start_time(pid: u32) -> Result<Option<u64>, SupervisorError> {
    #[cfg(target_os = "linux")]
    {
        Ok(crate::process_table::entry(pid).map(|entry| entry.start_time))
    }
    #[cfg(not(target_os = "linux"))]
    {
        if !SUPPORTED {
            return Err(SupervisorError::UnsupportedPlatform);
        }
        Ok(crate::process_table::start_time(pid))
    }
}

/// The living processes that carry the attempt's id in their environment (SV-04): what is left of a
/// tree whose supervisor is gone. A process that cleared its environment, or belongs to another
/// user, is not found. On Windows there is none: the tree ends with its supervisor.
///
/// # Errors
/// `unsupported_platform` where commands are not supported.
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
        if !SUPPORTED {
            return Err(SupervisorError::UnsupportedPlatform);
        }
        Ok(crate::process_table::carrying(attempt_id))
    }
}

/// Unix milliseconds now.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(0))
}
