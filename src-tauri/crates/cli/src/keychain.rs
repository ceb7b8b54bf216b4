//! The system's keychain.
//!
//! Guarantee: blocking, and never with a key in an error.

use std::path::Path;
use std::sync::Arc;

use holdfast_desktop::{KeyStore, keychain_service};
use keyring::Entry;

/// The keychain of this system.
#[derive(Debug)]
struct Keychain {
    /// Name under which the data folder's keys are kept.
    service: String,
}

/// The keychain; what can't be reached is said by each use of it.
pub(crate) fn keychain(data: &Path) -> Arc<dyn KeyStore> {
    Arc::new(Keychain {
        service: keychain_service(data),
    })
}

impl Keychain {
    fn entry(&self, provider: &str) -> Result<Entry, String> {
        Entry::new(&self.service, provider).map_err(|error| error.to_string())
    }
}

impl KeyStore for Keychain {
    fn read(&self, provider: &str) -> Result<Option<String>, String> {
        match self.entry(provider)?.get_password() {
            Ok(key) => Ok(Some(key)),
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn store(&self, provider: &str, key: &str) -> Result<(), String> {
        self.entry(provider)?
            .set_password(key)
            .map_err(|error| error.to_string())
    }

    fn remove(&self, provider: &str) -> Result<(), String> {
        match self.entry(provider)?.delete_credential() {
            Ok(()) | Err(keyring::Error::NoEntry) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }
}
