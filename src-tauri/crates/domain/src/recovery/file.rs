//! What a file tool says before it publishes, and what a later look at the file means (TR-17).
//!
//! Guarantee: verification speaks of the file as it is now, never of what happened then.

use serde::{Deserialize, Serialize};

/// TR-17: recorded with the receipt, before anything is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIntent {
    /// Format of this record, 1.
    pub version: u32,
    /// Path as the model gave it.
    pub path: String,
    /// Absolute path after resolving links.
    pub resolved_path: String,
    /// SHA-256 (hex) of the content before; empty when the file did not exist.
    pub before: String,
    /// SHA-256 (hex) of the content that will be published.
    pub after: String,
    /// `utf-8`, or `binary` when the content before was not UTF-8.
    pub encoding: String,
    /// The file existed.
    pub existed: bool,
}

/// TR-17: a file's present content against an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileVerdict {
    /// It has the content that was to be written (or before = after).
    Satisfied,
    /// It has the content from before.
    Unchanged,
    /// It has some other content.
    Conflict,
    /// It could not be read.
    Unknown,
}

/// Compares the digest of a file's content now with the intent. `now` is `Ok(None)` when the file
/// does not exist and `Err(())` when it could not be read.
pub fn verify(intent: &FileIntent, now: Result<Option<&str>, ()>) -> FileVerdict {
    match now {
        Err(()) => FileVerdict::Unknown,
        Ok(Some(digest)) if digest == intent.after => FileVerdict::Satisfied,
        Ok(Some(digest)) if intent.existed && digest == intent.before => FileVerdict::Unchanged,
        Ok(None) if !intent.existed => FileVerdict::Unchanged,
        Ok(_) => FileVerdict::Conflict,
    }
}
