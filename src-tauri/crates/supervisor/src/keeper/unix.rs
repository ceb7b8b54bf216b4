//! What the Unix sides of the supervisor share.

use std::time::{Duration, Instant};

pub(super) mod isolation;
pub(super) mod signals;
pub(super) mod socket;

/// Time awake since the supervisor's first look at it: the monotonic clock of Linux
/// (CLOCK_MONOTONIC) and macOS (CLOCK_UPTIME_RAW) stands still while the system sleeps.
pub(super) fn awake() -> Duration {
    static BEGAN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    BEGAN.get_or_init(Instant::now).elapsed()
}
