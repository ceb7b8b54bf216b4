//! Every bound of a model request, and the schedule of its retries.

use std::sync::Arc;
use std::time::Duration;

/// A source of numbers from 0 to 1 that spreads retries of many clients; passed in, so that a test
/// decides them.
pub type Jitter = Arc<dyn Fn() -> f64 + Send + Sync>;

/// Bounds of one model request.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Longest wait for a connection.
    pub connect: Duration,
    /// Longest wait for the first byte, and then for the next one.
    pub idle: Duration,
    /// Longest wait for the next event while only keep-alive comments come.
    pub silence: Duration,
    /// Longest time of one attempt, however lively it is.
    pub total: Duration,
    /// Longest wait for what may follow the finish reason (the usage).
    pub tail: Duration,
    /// Largest reply: text, reasoning and arguments together, in bytes.
    pub reply_bytes: usize,
    /// Most calls in one reply.
    pub calls: usize,
    /// Most attempts, the first one included; at least one is made.
    pub attempts: u32,
    /// Wait before the second attempt; it doubles with each further one.
    pub backoff: Duration,
    /// Longest wait between attempts. A provider that asks for more is not asked again.
    pub retry_after: Duration,
}

impl Default for Limits {
    /// 10 s, 120 s, 600 s, 3600 s, 5 s; 16 MiB, 256 calls; 4 attempts, 0.5 s, 60 s.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(120),
            silence: Duration::from_secs(600),
            total: Duration::from_secs(3600),
            tail: Duration::from_secs(5),
            reply_bytes: 16 << 20,
            calls: 256,
            attempts: 4,
            backoff: Duration::from_millis(500),
            retry_after: Duration::from_secs(60),
        }
    }
}

impl Limits {
    /// The wait after the failed attempt `attempt` (1 is the first): `backoff · 2^(attempt-1)`, up
    /// to a quarter longer by `jitter` (0 to 1), not shorter than what the provider asked for.
    /// `None` when it must not be asked again: no attempt is left, or it asked for too long a wait.
    #[must_use]
    pub fn wait_after(
        &self,
        attempt: u32,
        asked: Option<Duration>,
        jitter: f64,
    ) -> Option<Duration> {
        if attempt >= self.attempts || asked.is_some_and(|asked| asked > self.retry_after) {
            return None;
        }
        let doubled = self
            .backoff
            .saturating_mul(2_u32.saturating_pow(attempt.saturating_sub(1)));
        let own = doubled
            .min(self.retry_after)
            .mul_f64(1.0 + jitter.clamp(0.0, 1.0) / 4.0);
        Some(own.max(asked.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_are_spread_and_end() {
        let limits = Limits::default();
        let waits: Vec<Option<u128>> = (1..=4)
            .map(|attempt| {
                limits
                    .wait_after(attempt, None, 0.0)
                    .map(|wait| wait.as_millis())
            })
            .collect();
        assert_eq!(waits, [Some(500), Some(1000), Some(2000), None]);
        let spread = limits.wait_after(1, None, 1.0);
        assert_eq!(spread, Some(Duration::from_millis(625)));
    }

    #[test]
    fn retry_after_is_honoured_up_to_its_bound() {
        let limits = Limits::default();
        let wait = |asked| limits.wait_after(1, Some(Duration::from_secs(asked)), 0.0);
        assert_eq!(wait(0), Some(Duration::from_millis(500)));
        assert_eq!(wait(60), Some(Duration::from_secs(60)));
        assert_eq!(wait(61), None);
    }

    #[test]
    fn absurd_counts_do_not_overflow() {
        let limits = Limits {
            attempts: u32::MAX,
            ..Limits::default()
        };
        let wait = limits.wait_after(u32::MAX - 1, None, f64::INFINITY);
        assert_eq!(wait, Some(Duration::from_secs(75)));
    }
}
