//! Keys of providers: in the system's keychain where there is one, else in a 0600 file.
//!
//! Guarantees: a key is in one place; it is never in an error, a log or a reply; the keychain is
//! asked only about keys that were put there, so that nobody is asked to unlock it for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_controller::models::Keys;
use serde::{Deserialize, Serialize};

use crate::error::DesktopError;

const FILE: &str = "keys.json";
const MAX_BYTES: u64 = 1024 * 1024;

/// A keychain of the system; the binaries bring it.
pub trait KeyStore: Send + Sync {
    /// The key of that provider.
    ///
    /// # Errors
    /// What the system says, for a person; without the key.
    fn read(&self, provider: &str) -> Result<Option<String>, String>;
    /// Keeps the key of that provider.
    ///
    /// # Errors
    /// What the system says, for a person; without the key.
    fn store(&self, provider: &str, key: &str) -> Result<(), String>;
}

/// Where a key went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Into the system's keychain.
    Keychain,
    /// Into the file, 0600.
    File,
}

/// Both places as one.
pub struct StoredKeys {
    file: PathBuf,
    keychain: Option<Arc<dyn KeyStore>>,
    /// One change at a time.
    changing: Mutex<()>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Content {
    /// Providers whose key is in the keychain.
    keychain: BTreeSet<String>,
    keys: BTreeMap<String, String>,
}

impl std::fmt::Debug for StoredKeys {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("StoredKeys").finish_non_exhaustive()
    }
}

impl StoredKeys {
    /// The keys of that data folder; without a keychain all are in the file.
    pub fn new(data: &Path, keychain: Option<Arc<dyn KeyStore>>) -> Self {
        Self {
            file: data.join(FILE),
            keychain,
            changing: Mutex::default(),
        }
    }

    /// Keeps a key: in the keychain, or in the file when there is none or it refuses. Blocking.
    ///
    /// # Errors
    /// `key_not_saved`: the key is kept nowhere, an earlier one is still there.
    pub fn store(&self, provider: &str, key: &str) -> Result<Kept, DesktopError> {
        let _one = self.lock();
        let not_saved = |reason: String| DesktopError::KeyNotSaved { reason };
        let mut content = self.content().map_err(not_saved)?;
        let refused = self
            .keychain
            .as_ref()
            .map(|keychain| keychain.store(provider, key));
        let kept = match refused {
            Some(Ok(())) => {
                content.keychain.insert(provider.to_owned());
                content.keys.remove(provider);
                Kept::Keychain
            }
            Some(Err(reason)) => {
                tracing::warn!("the keychain refused a key, which goes into a file: {reason}");
                content.keychain.remove(provider);
                content.keys.insert(provider.to_owned(), key.to_owned());
                Kept::File
            }
            None => {
                content.keychain.remove(provider);
                content.keys.insert(provider.to_owned(), key.to_owned());
                Kept::File
            }
        };
        let text = serde_json::to_vec(&content).map_err(|error| not_saved(error.to_string()))?;
        holdfast_files::write_private(&self.file, &text)
            .map_err(|error| not_saved(error.to_string()))?;
        Ok(kept)
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn content(&self) -> Result<Content, String> {
        match holdfast_files::read_bounded(&self.file, MAX_BYTES) {
            // The parser's words could quote a key.
            Ok(bytes) => serde_json::from_slice(&bytes)
                .map_err(|_| format!("{FILE} is damaged; correct or remove it")),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Content::default()),
            Err(error) => Err(format!("{FILE}: {error}")),
        }
    }
}

impl Keys for StoredKeys {
    fn key(&self, provider: &str) -> Result<Option<String>, String> {
        let content = self.content()?;
        if let Some(key) = content.keys.get(provider) {
            return Ok(Some(key.clone()));
        }
        match &self.keychain {
            Some(keychain) if content.keychain.contains(provider) => keychain.read(provider),
            None if content.keychain.contains(provider) => {
                Err("it is in the system's keychain, which can't be reached from here".to_owned())
            }
            Some(_) | None => Ok(None),
        }
    }
}
