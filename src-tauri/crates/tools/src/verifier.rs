//! The file verifier: what a file is now, against what a write intended (TR-17, TR-32, TR-37).
//!
//! Guarantee: it reads and never writes, and speaks of the file as it is now, never of what
//! happened then.

use holdfast_domain::recovery::file::{FileIntent, FileVerdict, verify};

use crate::digest::digest_of;
use crate::error::ToolError;
use crate::workspace::Workspace;

/// What a look at the file found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileInspection {
    /// Against the intent.
    pub verdict: FileVerdict,
    /// SHA-256 (hex) of the content now; `None` when there is no file or it can't be read.
    pub now: Option<String>,
    /// The path that was looked at: the intent's resolved one.
    pub path: String,
    /// The path as the model gave it still means that place. If not, the sink has changed
    /// (TR-32) and nothing may be run again.
    pub same_target: bool,
}

/// Looks at a file. Blocking; the time of reading the file once.
pub fn inspect_file(intent: &FileIntent, workspace: &Workspace) -> FileInspection {
    let same_target = workspace
        .resolve_for_writing(&intent.path)
        .is_ok_and(|place| place.text() == intent.resolved_path);
    let now = content_now(intent, workspace);
    let verdict = match &now {
        Ok(digest) => verify(intent, Ok(digest.as_deref())),
        Err(_) => FileVerdict::Unknown,
    };
    FileInspection {
        verdict,
        now: now.unwrap_or_default(),
        path: intent.resolved_path.clone(),
        same_target,
    }
}

fn content_now(intent: &FileIntent, workspace: &Workspace) -> Result<Option<String>, ToolError> {
    let place = workspace.resolve_for_writing(&intent.resolved_path)?;
    // A link now stands in the recorded path: that place itself can't be looked at any more.
    if place.text() != intent.resolved_path {
        return Err(ToolError::PathOutside {
            path: intent.resolved_path.clone(),
        });
    }
    if !place.exists {
        return Ok(None);
    }
    let file = workspace.open_file(&place)?;
    digest_of(file)
        .map(Some)
        .map_err(|error| ToolError::reading("reading", &intent.path, error))
}
