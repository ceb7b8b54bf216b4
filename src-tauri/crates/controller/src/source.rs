//! Time, ids and randomness, passed in so that a test decides them.

use std::time::{SystemTime, UNIX_EPOCH};

use holdfast_domain::canonical::hex;

/// Where the host gets time and randomness from.
pub trait Source: Send + Sync {
    /// Unix milliseconds.
    fn now(&self) -> u64;
    /// 16 random bytes.
    fn random(&self) -> [u8; 16];
    /// 16 random bytes as 32 hex digits.
    fn id(&self) -> String {
        hex(&self.random())
    }
}

/// The system's clock and random generator.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemSource;

impl Source for SystemSource {
    fn now(&self) -> u64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |passed| u64::try_from(passed.as_millis()).unwrap_or(0))
    }

    fn random(&self) -> [u8; 16] {
        rand::random()
    }
}
