//! What can go wrong with a session log, each with a stable code.
//!
//! Errors can be cloned: one failed write is the answer to everyone who waited for it.

use std::io;
use std::sync::Arc;

use holdfast_files::LockError;

use crate::lease::Holder;
use crate::line::Entry;

/// An error of the session log.
#[derive(Debug, Clone, thiserror::Error)]
pub enum JournalError {
    /// Nothing of the call is in the log; the log works again (TR-48).
    #[error(
        "Writing the session log failed ({source}). Nothing of this step was recorded or started, and what was recorded before is intact. Free disk space or check the disk, then try again."
    )]
    WriteFailed {
        /// What the system said.
        source: Arc<io::Error>,
        /// The `write_reset` record that is now the log's last.
        reset: Box<Entry>,
    },
    /// The log could not be brought back to a known state: read-only until it is reopened (TR-48).
    #[error(
        "The session log can't be written ({source}). The session is read-only; what was recorded is intact. Free disk space or check the disk, then reopen the session."
    )]
    StorageFailed {
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// An operation of the file system failed; the log is as it was.
    #[error(
        "The session's files can't be used: {operation} failed ({source}). What was recorded is intact. Check the disk and the folder's permissions, then try again."
    )]
    Io {
        /// What was tried.
        operation: &'static str,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// Another process has the session (C26).
    #[error("{}", held(.holder.as_ref()))]
    Held {
        /// Who, as far as it is recorded.
        holder: Option<Holder>,
    },
    /// The file system has no locks.
    #[error(
        "The file system of the session's folder has no file locks ({reason}). Nothing was changed. Move the data folder to a local disk, or open the session read-only."
    )]
    LockUnsupported {
        /// What the system said.
        reason: String,
    },
    /// The folder is on a network file system, where a lock proves nothing.
    #[error(
        "The session's folder is on a network file system ({kind}), where a lock proves nothing. Nothing was changed. Move the data folder to a local disk, or open the session read-only."
    )]
    NetworkFolder {
        /// The file system's name.
        kind: String,
    },
    /// There is no session log in the folder.
    #[error("There is no session log in this folder. Nothing was changed. Choose another session.")]
    NotFound,
    /// There is a session log in the folder already.
    #[error(
        "There is a session in this folder already. It was not touched. Choose another folder."
    )]
    Exists,
    /// The log's creation never ended: no record was ever acknowledged.
    #[error(
        "The session's creation never finished, so it holds no record. Nothing was changed. It is safe to delete it."
    )]
    Incomplete,
    /// No line verifies: another session's log, or a destroyed one.
    #[error(
        "No record of this session log verifies: it belongs to another session or is damaged as a whole. Nothing was changed. Keep the file, and restore it from a copy."
    )]
    Unreadable,
    /// Acknowledged records are no longer in place.
    #[error(
        "The session log was changed from outside: acknowledged records are no longer in place. Nothing was written. Close the session and open it again to see what is left."
    )]
    Changed,
    /// A record that can't become a line.
    #[error("A record of the session log was refused: {reason}. Nothing was written.")]
    RecordInvalid {
        /// Why.
        reason: String,
    },
    /// A record larger than a line may be.
    #[error(
        "A record of the session log has {bytes} bytes, more than {limit}. Nothing was written. Large output belongs in a spill file."
    )]
    RecordTooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// A name that is not allowed.
    #[error("This {what} is not allowed. Nothing was changed. Allowed: {allowed}.")]
    NameInvalid {
        /// What it names.
        what: &'static str,
        /// What it may be made of.
        allowed: &'static str,
    },
    /// A spill file of this name holds something else.
    #[error(
        "A spill file of this name holds other content. It was not touched. Choose another name."
    )]
    SpillExists,
    /// There is no spill file of this name.
    #[error(
        "The stored output is gone: there is no spill file of this name. The records are intact."
    )]
    SpillNotFound,
    /// The writer was closed.
    #[error("The session was closed. Nothing was written. Open it again.")]
    Closed,
}

fn held(holder: Option<&Holder>) -> String {
    let who = holder.map_or_else(
        || "another process, which left no name yet".to_owned(),
        |holder| format!("process {} on {}", holder.pid, holder.host),
    );
    format!(
        "The session is open in {who}. Nothing was changed. Close it there, or open it read-only or as a copy."
    )
}

impl JournalError {
    /// The stable name of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::WriteFailed { .. } => "write_failed",
            Self::StorageFailed { .. } => "storage_failed",
            Self::Io { .. } => "storage_error",
            Self::Held { .. } => "session_held",
            Self::LockUnsupported { .. } => "lock_unsupported",
            Self::NetworkFolder { .. } => "network_folder",
            Self::NotFound => "session_not_found",
            Self::Exists => "session_exists",
            Self::Incomplete => "log_incomplete",
            Self::Unreadable => "log_unreadable",
            Self::Changed => "log_changed",
            Self::RecordInvalid { .. } => "record_invalid",
            Self::RecordTooLarge { .. } => "record_too_large",
            Self::NameInvalid { .. } => "name_invalid",
            Self::SpillExists => "spill_exists",
            Self::SpillNotFound => "spill_not_found",
            Self::Closed => "log_closed",
        }
    }

    /// For `map_err`: an error of the file system, with what was tried.
    pub(crate) fn io(operation: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| Self::Io {
            operation,
            source: Arc::new(source),
        }
    }

    /// The same, where a missing file means that there is no session.
    pub(crate) fn io_or_not_found(operation: &'static str) -> impl Fn(io::Error) -> Self {
        move |source| match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            _ => Self::io(operation)(source),
        }
    }

    /// A refusal of the lock, with the holder when there is one.
    pub(crate) fn lock(error: LockError, holder: impl FnOnce() -> Option<Holder>) -> Self {
        match error {
            LockError::Held => Self::Held { holder: holder() },
            LockError::Unsupported { reason } => Self::LockUnsupported { reason },
            LockError::Network { kind } => Self::NetworkFolder { kind },
            LockError::Io(source) => Self::io_or_not_found("taking the lock")(source),
        }
    }
}
