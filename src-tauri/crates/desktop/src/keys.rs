//! Keys of providers and tokens of hosts: in the system's keychain where there is one, else in a 0600 file.
//!
//! Guarantees: a key is in one place; it is never in an error, a log or a reply; the keychain is
//! asked only about keys that were put there, so that nobody is asked to unlock it for nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_controller::models::Keys;
use serde::{Deserialize, Serialize};

use crate::error::DesktopError;

const FILE: &str = "keys.json";
const MAX_BYTES: u64 = 1024 * 1024;
/// Longest wait for the keychain.
const PATIENCE: Duration = Duration::from_secs(10);

/// The name under which a data folder's keys are in the keychain: the same for every program, so
/// that a key saved in the window is found by the command line, and another for every folder.
pub fn keychain_service(data: &Path) -> String {
    let digest = holdfast_domain::canonical::sha256_hex(data.as_os_str().as_encoded_bytes());
    format!("holdfast.{}", digest.get(..16).unwrap_or(&digest))
}

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
    /// Forgets the key of that provider; one that is not there is forgotten already.
    ///
    /// # Errors
    /// What the system says, for a person.
    fn remove(&self, provider: &str) -> Result<(), String>;
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
    /// What the keychain gave in this run: it is asked once.
    known: Mutex<BTreeMap<String, String>>,
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
            known: Mutex::default(),
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
        let refused = self.keychain.as_ref().map(|keychain| {
            let (keychain, name, key) = (Arc::clone(keychain), provider.to_owned(), key.to_owned());
            patiently(move || keychain.store(&name, &key))
        });
        known(&self.known).remove(provider);
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
        self.write(&content).map_err(not_saved)?;
        Ok(kept)
    }

    /// A key is kept under that name. Does not ask the keychain. Blocking.
    pub fn holds(&self, name: &str) -> bool {
        self.content()
            .is_ok_and(|content| content.keychain.contains(name) || content.keys.contains_key(name))
    }

    /// Forgets a key. Blocking.
    ///
    /// # Errors
    /// `key_not_removed`: it is still there.
    pub fn remove(&self, name: &str) -> Result<(), DesktopError> {
        let _one = self.lock();
        let not_removed = |reason: String| DesktopError::KeyNotRemoved { reason };
        let mut content = self.content().map_err(not_removed)?;
        if content.keychain.contains(name)
            && let Some(keychain) = &self.keychain
        {
            let (keychain, name) = (Arc::clone(keychain), name.to_owned());
            patiently(move || keychain.remove(&name)).map_err(not_removed)?;
        }
        known(&self.known).remove(name);
        let there = content.keychain.remove(name);
        if content.keys.remove(name).is_some() || there {
            self.write(&content).map_err(not_removed)?;
        }
        Ok(())
    }

    fn write(&self, content: &Content) -> Result<(), String> {
        let text = serde_json::to_vec(content).map_err(|error| error.to_string())?;
        holdfast_files::write_private(&self.file, &text).map_err(|error| error.to_string())
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

fn known(known: &Mutex<BTreeMap<String, String>>) -> MutexGuard<'_, BTreeMap<String, String>> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Asks the keychain on a thread of its own: it may wait for a person, and it brings its own event
/// loop. After [`PATIENCE`] it counts as not to be reached.
fn patiently<T: Send + 'static>(
    ask: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let (sender, answer) = std::sync::mpsc::channel();
    std::thread::Builder::new()
        .name("keychain".to_owned())
        .spawn(move || {
            // Nobody waits any more after the time: the answer is dropped.
            let _ = sender.send(ask());
        })
        .map_err(|error| error.to_string())?;
    answer
        .recv_timeout(PATIENCE)
        .unwrap_or_else(|_| Err("the keychain does not answer".to_owned()))
}

impl Keys for StoredKeys {
    fn key(&self, provider: &str) -> Result<Option<String>, String> {
        let content = self.content()?;
        if let Some(key) = content.keys.get(provider) {
            return Ok(Some(key.clone()));
        }
        match &self.keychain {
            Some(keychain) if content.keychain.contains(provider) => {
                if let Some(key) = known(&self.known).get(provider) {
                    return Ok(Some(key.clone()));
                }
                let (keychain, name) = (Arc::clone(keychain), provider.to_owned());
                let key = patiently(move || keychain.read(&name))?;
                if let Some(key) = &key {
                    known(&self.known).insert(provider.to_owned(), key.clone());
                }
                Ok(key)
            }
            None if content.keychain.contains(provider) => {
                Err("it is in the system's keychain, which can't be reached from here".to_owned())
            }
            Some(_) | None => Ok(None),
        }
    }
}
