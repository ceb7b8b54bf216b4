//! Why a tool call is refused or failed.
//!
//! Guarantee: a code never changes its meaning; a message says what happened, what is safe and
//! what to do, and can go to a model as it is.

use std::io;

use holdfast_domain::canonical::ArgumentError;

use crate::edit::EditFault;

/// What can go wrong before or while a tool runs.
#[derive(Debug, thiserror::Error)]
pub enum ToolError {
    /// The folder can't be a workspace.
    #[error("{path} can't be a workspace: {reason}; choose another folder")]
    WorkspaceInvalid {
        /// As given.
        path: String,
        /// Why.
        reason: String,
    },
    /// Another folder is now where the workspace was.
    #[error("the workspace folder was moved or replaced; nothing was touched; open it again")]
    WorkspaceMoved,
    /// No tool of that name.
    #[error("there is no tool {0:?}; nothing was run; use one of the listed tools")]
    UnknownTool(String),
    /// TR-04: the raw argument text was refused.
    #[error(transparent)]
    Arguments(#[from] ArgumentError),
    /// The arguments do not fit the tool's schema.
    #[error("the arguments of {tool} are wrong: {reason}; nothing was run; correct them")]
    Schema {
        /// Tool.
        tool: &'static str,
        /// Field and reason.
        reason: String,
    },
    /// The arguments do not fit a tool of the host's own.
    #[error("the arguments are wrong: {0}; nothing was run; correct them")]
    Brought(String),
    /// A path that means nothing here.
    #[error("the path {path:?} can't be used: {reason}; nothing was touched")]
    PathInvalid {
        /// As given.
        path: String,
        /// Why.
        reason: &'static str,
    },
    /// The path, or a link in it, leads out of the workspace.
    #[error(
        "{path:?} is outside the workspace; nothing was touched; use a path inside the workspace"
    )]
    PathOutside {
        /// As given.
        path: String,
    },
    /// The path is inside, and not for file tools.
    #[error("{path:?} is protected ({what}); nothing was touched; a person can change it")]
    PathProtected {
        /// As given.
        path: String,
        /// What it is.
        what: &'static str,
    },
    /// A link whose target does not exist.
    #[error("{path:?} goes through a link to nothing; nothing was written; remove the link first")]
    LinkDangling {
        /// As given.
        path: String,
    },
    /// It does not exist.
    #[error("{path:?} does not exist; look with list_dir or glob")]
    NotFound {
        /// As given.
        path: String,
    },
    /// A folder, socket, pipe or device, or a file that only looks like one.
    #[error("{path:?} is not a regular file; nothing was touched")]
    NotAFile {
        /// As given.
        path: String,
    },
    /// A file where a folder is needed.
    #[error("{path:?} is not a folder")]
    NotAFolder {
        /// As given.
        path: String,
    },
    /// More bytes than the tool handles.
    #[error("{path:?} has {bytes} bytes, and at most {limit} can be edited; use the shell tool")]
    FileTooLarge {
        /// As given.
        path: String,
        /// Size.
        bytes: u64,
        /// Bound.
        limit: u64,
    },
    /// Editing would damage what is not UTF-8.
    #[error(
        "{path:?} can't be edited as text ({reason}); nothing was written; convert it by a command first"
    )]
    FileNotText {
        /// As given.
        path: String,
        /// Why.
        reason: &'static str,
    },
    /// No permission bit for writing.
    #[error("{path:?} is read-only; nothing was written; make it writable first if that is meant")]
    FileReadOnly {
        /// As given.
        path: String,
    },
    /// The file is no longer as it was when the call was prepared.
    #[error("{path:?} changed meanwhile; nothing was written; read it again, then repeat the edit")]
    FileChanged {
        /// As given.
        path: String,
    },
    /// A recovering host has taken the publication over.
    #[error(
        "{path:?} was not written: another process has taken over this session and ruled the write out; look at the session there"
    )]
    PublicationFenced {
        /// As given.
        path: String,
    },
    /// One edit can't be applied, so none was.
    #[error("edit {number} of {count} in {path:?}: {fault}; nothing was written")]
    Edit {
        /// As given.
        path: String,
        /// From 1.
        number: usize,
        /// Edits in the call.
        count: usize,
        /// Why.
        fault: EditFault,
    },
    /// A glob or regular expression that can't be read.
    #[error("the pattern {pattern:?} is wrong: {reason}")]
    PatternInvalid {
        /// As given.
        pattern: String,
        /// Where and why.
        reason: String,
    },
    /// A URL that fetch does not open.
    #[error("the URL can't be fetched: {reason}; nothing was sent there")]
    UrlRefused {
        /// Why.
        reason: String,
    },
    /// The request failed on the way.
    #[error("the request failed: {reason}; a GET or HEAD can be repeated")]
    Request {
        /// Why.
        reason: String,
    },
    /// The effect-free sandbox (TR-21) is not there.
    #[error(
        "read-only commands need a sandbox, and there is none here: {0}; nothing was run; use read_file, list_dir, grep or glob, or call shell without read_only"
    )]
    SandboxUnavailable(String),
    /// A job could not be looked at or stopped.
    #[error("{0}")]
    Job(String),
    /// Commands can't run on this system.
    #[error("commands can't be run on this system yet; nothing was run; the file tools work")]
    UnsupportedPlatform,
    /// Stopped before any effect.
    #[error("stopped; nothing was done")]
    Cancelled,
    /// A system call failed and nothing was published.
    #[error("{doing} failed for {path:?}: {source}; {safe}")]
    Io {
        /// What was attempted.
        doing: &'static str,
        /// As given.
        path: String,
        /// What is safe.
        safe: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The new content is, or may be, in place, and its durability is not confirmed (TR-09).
    #[error("{path:?}: {reason}; look at the file before repeating the call")]
    EffectUnknown {
        /// As given.
        path: String,
        /// What is known.
        reason: String,
    },
    /// The supervisor could not be used, and the command did not start.
    #[error("the command was not started: {0}; nothing was run")]
    Supervisor(String),
    /// A bug in the call's preparation.
    #[error("the tool stopped unexpectedly: {0}; look at the outside state before repeating")]
    Internal(String),
}

impl ToolError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::WorkspaceInvalid { .. } => "workspace_invalid",
            Self::WorkspaceMoved => "workspace_moved",
            Self::UnknownTool(_) => "unknown_tool",
            Self::Arguments(error) => error.code(),
            Self::Schema { .. } | Self::Brought(_) => "arguments_wrong",
            Self::PathInvalid { .. } => "path_invalid",
            Self::PathOutside { .. } => "path_outside",
            Self::PathProtected { .. } => "path_protected",
            Self::LinkDangling { .. } => "link_dangling",
            Self::NotFound { .. } => "not_found",
            Self::NotAFile { .. } => "not_a_file",
            Self::NotAFolder { .. } => "not_a_folder",
            Self::FileTooLarge { .. } => "file_too_large",
            Self::FileNotText { .. } => "file_not_text",
            Self::FileReadOnly { .. } => "file_read_only",
            Self::FileChanged { .. } => "file_changed",
            Self::PublicationFenced { .. } => "publication_fenced",
            Self::Edit { fault, .. } => fault.code(),
            Self::PatternInvalid { .. } => "pattern_invalid",
            Self::UrlRefused { .. } => "url_refused",
            Self::Request { .. } => "request_failed",
            Self::SandboxUnavailable(_) => "sandbox_unavailable",
            Self::Job(_) => "job_unknown",
            Self::UnsupportedPlatform => "unsupported_platform",
            Self::Cancelled => "cancelled",
            Self::Io { .. } => "io_failed",
            Self::EffectUnknown { .. } => "effect_unknown",
            Self::Supervisor(_) => "supervisor_unavailable",
            Self::Internal(_) => "internal",
        }
    }

    /// A failed read, which changed nothing.
    pub(crate) fn reading(doing: &'static str, path: &str, source: io::Error) -> Self {
        Self::Io {
            doing,
            path: path.to_owned(),
            safe: "nothing was changed",
            source,
        }
    }

    /// A failed write that published nothing.
    pub(crate) fn writing(doing: &'static str, path: &str, source: io::Error) -> Self {
        Self::Io {
            doing,
            path: path.to_owned(),
            safe: "nothing was written",
            source,
        }
    }
}

/// TR-04: a call that never starts. It gets an ordinary result and no receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Stable code.
    pub code: &'static str,
    /// For the model and the person.
    pub message: String,
}

impl From<ToolError> for Refusal {
    fn from(error: ToolError) -> Self {
        Self {
            code: error.code(),
            message: error.to_string(),
        }
    }
}
