//! Times of the same thing, and what is read off them.

use std::time::Duration;

/// Times of the same thing.
#[derive(Debug, Clone, Default)]
pub struct Samples(Vec<Duration>);

impl Samples {
    /// One more.
    pub fn push(&mut self, time: Duration) {
        self.0.push(time);
    }

    /// All of others too.
    pub fn extend(&mut self, others: Self) {
        self.0.extend(others.0);
    }

    /// How many.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The middle one; zero when there is none.
    pub fn median(&self) -> Duration {
        self.quantile(0.5)
    }

    /// The one that 99 of 100 don't exceed.
    pub fn p99(&self) -> Duration {
        self.quantile(0.99)
    }

    /// The sample at this share of the sorted ones, `share` from 0 to 1.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "counts of samples are small"
    )]
    fn quantile(&self, share: f64) -> Duration {
        let mut sorted = self.0.clone();
        sorted.sort();
        let last = sorted.len().saturating_sub(1);
        let at = (last as f64 * share).round() as usize;
        sorted.get(at).copied().unwrap_or_default()
    }
}
