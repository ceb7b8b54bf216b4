//! The right to write one session: a lock of the operating system on the file `lock` beside the
//! log, and the holder's name in `holder.json`.
//!
//! Guarantees: at most one lease per session folder, over all processes of this machine (C26); it
//! ends with its process, and what a crashed one left behind blocks nobody (C25). The lock is the
//! truth; `holder.json` only tells whom to ask.

use std::path::{Path, PathBuf};

use holdfast_files::{FileLock, create_private_folder, read_bounded, sync_folder, write_private};
use serde::{Deserialize, Serialize};

use crate::error::JournalError;

const LOCK_FILE: &str = "lock";
const HOLDER_FILE: &str = "holder.json";
const MAX_HOLDER_BYTES: u64 = 4096;

/// Who holds a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its process id. For display only: pids are used again.
    pub pid: u32,
    /// The machine's name.
    pub host: String,
    /// Since when, in milliseconds since the Unix epoch.
    pub since: u64,
    /// Its local socket, through which this user's other programs reach what it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket: Option<PathBuf>,
}

/// A held session. Dropping it gives the session back.
#[derive(Debug)]
pub struct Lease {
    folder: PathBuf,
    /// Held for its `Drop`, after `holder.json` is gone.
    _lock: FileLock,
}

impl Lease {
    /// Takes an existing session's lease without waiting, and writes the holder's name beside it.
    ///
    /// # Errors
    /// `session_held` names the holder; `lock_unsupported` and `network_folder` say why a lock
    /// would prove nothing; `session_not_found` when there is no such folder.
    pub fn acquire(folder: &Path, holder: &Holder) -> Result<Self, JournalError> {
        if !folder.is_dir() {
            return Err(JournalError::NotFound);
        }
        let lock = FileLock::acquire(&folder.join(LOCK_FILE))
            .map_err(|error| JournalError::lock(error, || self::holder(folder)))?;
        let lease = Self {
            folder: folder.to_path_buf(),
            _lock: lock,
        };
        lease.write_holder(holder);
        Ok(lease)
    }

    /// Creates a session's folder (0700 on Unix, durable) when it is missing, and takes its lease.
    ///
    /// # Errors
    /// As [`Lease::acquire`]; `storage_error` when the folder can't be created.
    pub fn create(folder: &Path, holder: &Holder) -> Result<Self, JournalError> {
        let failed = JournalError::io("creating the session's folder");
        let folder = &std::path::absolute(folder).map_err(&failed)?;
        let missing: Vec<&Path> = folder
            .ancestors()
            .take_while(|path| !path.exists())
            .collect();
        create_private_folder(folder).map_err(&failed)?;
        for created in missing {
            if let Some(parent) = created.parent().filter(|parent| parent.is_dir()) {
                sync_folder(parent).map_err(&failed)?;
            }
        }
        Self::acquire(folder, holder)
    }

    /// The session's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// A name that can't be written is no reason to refuse the session (the disk may be full, and
    /// reading must go on), but an old one must not stand for it.
    fn write_holder(&self, holder: &Holder) {
        let path = self.folder.join(HOLDER_FILE);
        let written = serde_json::to_vec(holder)
            .map_err(std::io::Error::other)
            .and_then(|text| write_private(&path, &text));
        if let Err(error) = written {
            tracing::warn!(%error, "the session's holder could not be written");
            let _ = std::fs::remove_file(&path);
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(self.folder.join(HOLDER_FILE));
    }
}

/// Who is recorded as the holder of a session. Says nothing about whether it still is.
pub fn holder(folder: &Path) -> Option<Holder> {
    let text = read_bounded(&folder.join(HOLDER_FILE), MAX_HOLDER_BYTES).ok()?;
    serde_json::from_slice(&text).ok()
}
