//! Verifiers: what is known of an effect now, without executing anything (TR-32, TR-37).
//!
//! Guarantees: a verifier reads and never writes; it speaks of what is there now, never of what
//! happened then; "it is not there" is a fence only when it says so. A tool without a verifier is
//! never run again. Each verifier walks the suite of acceptance 4 (controller/tests/it/walk.rs)
//! before it counts; a test compares the tools that have one with those that walk it.

use std::fmt;

use async_trait::async_trait;
use holdfast_domain::recovery::attempt::Evidence;
use holdfast_domain::recovery::file::{FileIntent, FileVerdict, verify};
use holdfast_domain::recovery::retry::Presence;
use serde_json::Value;

use crate::digest::digest_of;
use crate::error::ToolError;
use crate::workspace::Workspace;

/// What a verifier found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Of the effect.
    pub presence: Presence,
    /// Proven that the earlier attempt can no longer commit.
    pub fenced: bool,
    /// What that proves and what not, in words for a person.
    pub summary: String,
    /// What it rests on.
    pub evidence: Evidence,
}

impl Verdict {
    /// Nothing is proven; why.
    pub fn unknown(summary: &str) -> Self {
        Self {
            presence: Presence::Unknown,
            fenced: false,
            summary: summary.to_owned(),
            evidence: Evidence::None,
        }
    }
}

/// TR-37. It is asked only while the session's lock is held and no executor of the attempt lives in
/// this host. The caller bounds the time of an inspection; what takes longer is `unknown`.
#[async_trait]
pub trait Verifier: fmt::Debug + Send + Sync {
    /// TR-06: the resource that these arguments act on now, spelled as in the attempt's identity;
    /// `None` when it can't be told.
    async fn scope(&self, arguments: &Value) -> Option<String>;

    /// Whether the effect with this key and these arguments is there, and whether the attempt can
    /// still have it. Executes nothing.
    async fn inspect(&self, key: &str, arguments: &Value) -> Verdict;
}

/// The verifier of the tools that write a file, for one write as it was recorded (TR-17).
#[derive(Debug, Clone)]
pub(crate) struct FileVerifier {
    pub(crate) intent: FileIntent,
    pub(crate) workspace: Workspace,
}

#[async_trait]
impl Verifier for FileVerifier {
    /// The path as the model gave it may lead elsewhere by now.
    async fn scope(&self, _arguments: &Value) -> Option<String> {
        let own = self.clone();
        let resolve = move || {
            let place = own.workspace.resolve_for_writing(&own.intent.path).ok()?;
            Some(format!("file:{}", place.text()))
        };
        tokio::task::spawn_blocking(resolve).await.ok().flatten()
    }

    async fn inspect(&self, _key: &str, _arguments: &Value) -> Verdict {
        let own = self.clone();
        let look = tokio::task::spawn_blocking(move || inspect_file(&own.intent, &own.workspace));
        match look.await {
            Ok(found) => self.verdict(&found),
            Err(_) => Verdict::unknown("looking at the file failed by a defect"),
        }
    }
}

impl FileVerifier {
    fn verdict(&self, found: &FileInspection) -> Verdict {
        let (presence, fenced, summary) = match found.verdict {
            FileVerdict::Satisfied => (
                Presence::Present,
                false,
                "the file has the content that was to be written; that says what it is now, not \
                 who wrote it",
            ),
            // The lock is held, the earlier executor is dead, and a write is published over the
            // content from before only: nothing of the earlier one can still come.
            FileVerdict::Unchanged => (
                Presence::Absent,
                true,
                "the file is as it was before; the write did not happen, and nothing is left that \
                 could still do it",
            ),
            FileVerdict::Conflict => (
                Presence::Unknown,
                false,
                "the file has another content: neither that from before nor that which was to be \
                 written",
            ),
            FileVerdict::Unknown => (Presence::Unknown, false, "the file can't be read now"),
        };
        Verdict {
            presence,
            fenced,
            summary: summary.to_owned(),
            evidence: Evidence::File {
                path: self.intent.path.clone(),
                before: self.intent.before.clone(),
                after: self.intent.after.clone(),
                now: match found.verdict {
                    FileVerdict::Unknown => None,
                    FileVerdict::Satisfied | FileVerdict::Unchanged | FileVerdict::Conflict => {
                        Some(found.now.clone().unwrap_or_default())
                    }
                },
            },
        }
    }
}

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
