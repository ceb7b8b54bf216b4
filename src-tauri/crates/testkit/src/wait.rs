//! Waiting for a condition, with a deadline: the only way in which a test waits.

use std::time::{Duration, Instant};

/// The deadline for what normally takes milliseconds: long enough for a busy machine.
pub const SOON: Duration = Duration::from_secs(20);

const PAUSE: Duration = Duration::from_millis(5);

/// Calls `probe` until it yields something. For threads; inside a runtime use [`until`].
///
/// # Panics
/// At the deadline, saying what was waited for.
#[track_caller]
pub fn wait_until<T>(what: &str, limit: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(
            Instant::now() < deadline,
            "waited {limit:?} in vain for: {what}"
        );
        std::thread::sleep(PAUSE);
    }
}

/// Calls `probe` until it yields something, letting other tasks run in between.
///
/// # Panics
/// At the deadline, saying what was waited for.
pub async fn until<T>(what: &str, limit: Duration, mut probe: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = probe() {
            return value;
        }
        assert!(
            Instant::now() < deadline,
            "waited {limit:?} in vain for: {what}"
        );
        tokio::time::sleep(PAUSE).await;
    }
}

/// [`until`] for a probe that has to wait itself, such as a request to a host.
///
/// # Panics
/// At the deadline, saying what was waited for.
pub async fn until_asked<T>(
    what: &str,
    limit: Duration,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(value) = probe().await {
            return value;
        }
        assert!(
            Instant::now() < deadline,
            "waited {limit:?} in vain for: {what}"
        );
        tokio::time::sleep(PAUSE).await;
    }
}

/// A loop count scaled by `HOLDFAST_TEST_SCALE` (a number, default 1), at least 1.
#[must_use]
pub fn scaled(count: usize) -> usize {
    let scale = std::env::var("HOLDFAST_TEST_SCALE")
        .ok()
        .and_then(|text| text.parse::<f64>().ok())
        .filter(|scale| *scale > 0.0)
        .unwrap_or(1.0);
    // A count of a test loop is far below 2^52, where this is exact.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss
    )]
    let scaled = (count as f64 * scale).round() as usize;
    scaled.max(1)
}
