//! The system's keychain.
//!
//! Guarantee: blocking, and never with a key in an error.

use std::sync::Arc;

use holdfast_desktop::KeyStore;
use keyring::Entry;

/// Name under which keys are kept.
const SERVICE: &str = "dev.holdfast.provider-key";

/// The keychain of this system.
#[derive(Debug)]
struct Keychain;

/// The keychain; what can't be reached is said by each use of it.
pub(crate) fn keychain() -> Arc<dyn KeyStore> {
    Arc::new(Keychain)
}

fn entry(provider: &str) -> Result<Entry, String> {
    Entry::new(SERVICE, provider).map_err(|error| error.to_string())
}

impl KeyStore for Keychain {
    fn read(&self, provider: &str) -> Result<Option<String>, String> {
        match entry(provider)?.get_password() {
            Ok(key) => Ok(Some(key)),
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn store(&self, provider: &str, key: &str) -> Result<(), String> {
        entry(provider)?
            .set_password(key)
            .map_err(|error| error.to_string())
    }
}
