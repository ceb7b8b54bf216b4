//! The system's keychain, for the keys of providers.

use holdfast_desktop::KeyStore;
use keyring::{Entry, Error};

/// Entries of one app in the keychain.
pub(crate) struct Keychain {
    /// Under which name the system keeps and shows them.
    pub(crate) service: String,
}

impl Keychain {
    /// The keychain may wait for a person, and its client may bring a runtime of its own: it gets a
    /// thread of its own.
    fn ask<T: Send>(
        &self,
        provider: &str,
        question: impl FnOnce(&Entry) -> Result<T, Error> + Send,
    ) -> Result<T, String> {
        std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    let entry = Entry::new(&self.service, provider).map_err(words)?;
                    question(&entry).map_err(words)
                })
                .join()
                .unwrap_or_else(|_| Err("the keychain's client failed by a defect".to_owned()))
        })
    }
}

impl KeyStore for Keychain {
    fn read(&self, provider: &str) -> Result<Option<String>, String> {
        self.ask(provider, |entry| match entry.get_password() {
            Ok(key) => Ok(Some(key)),
            Err(Error::NoEntry) => Ok(None),
            Err(error) => Err(error),
        })
    }

    fn store(&self, provider: &str, key: &str) -> Result<(), String> {
        self.ask(provider, |entry| entry.set_password(key))
    }

    fn remove(&self, provider: &str) -> Result<(), String> {
        self.ask(provider, |entry| match entry.delete_credential() {
            Ok(()) | Err(Error::NoEntry) => Ok(()),
            Err(error) => Err(error),
        })
    }
}

/// What the system says. An error about a key's bytes carries them, so it is not shown.
fn words(error: Error) -> String {
    match error {
        Error::BadEncoding(_) => "the stored key is not text".to_owned(),
        other => other.to_string(),
    }
}
