//! A call that passed its checks: what a person is asked about, and what will run.

use std::sync::Arc;

use holdfast_domain::recovery::file::FileIntent;
use serde_json::Value;

use crate::arguments::Method;
use crate::brought::BroughtTool;
use crate::search::{GlobSearch, GrepSearch};
use crate::workspace::Resolved;

/// For permission rules and cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolKind {
    /// Looks at the workspace.
    Read,
    /// Changes a file.
    Edit,
    /// Runs a command.
    Shell,
    /// Reads from the network.
    Network,
    /// Ends a job of this session.
    Job,
    /// A tool of the host's own.
    Brought,
}

/// A checked call (TR-04). It is bound to the state of the files at that moment: preparing again
/// after a while may give another `file` (TR-51).
#[derive(Debug, Clone)]
pub struct Prepared {
    /// TR-06: after aliases.
    pub canonical_tool: String,
    /// The parsed value that will run; what cards show.
    pub arguments: Value,
    /// TR-05: SHA-256 (hex) of the RFC 8785 form.
    pub argument_digest: String,
    /// No effect outside the session.
    pub read_only: bool,
    /// For permission rules.
    pub kind: ToolKind,
    /// TR-06: `file:<canonical path>` for file writers, `job:<id>` for the end of a job; `None` means `session:<id>`.
    pub resource_scope: Option<String>,
    /// One line for cards: a path, a command's first line, a URL.
    pub subject: String,
    /// What would change; unified, at most 64 KiB.
    pub diff: Option<String>,
    /// TR-17: recorded before anything is written.
    pub file: Option<FileIntent>,
    /// TR-11: the command hands work to a program that lives elsewhere; its name.
    pub hands_over: Option<String>,
    pub(crate) action: Action,
}

/// What runs.
#[derive(Debug, Clone)]
pub(crate) enum Action {
    ReadFile {
        place: Resolved,
        offset: u64,
        limit: u64,
    },
    ListDir {
        place: Resolved,
    },
    Glob(GlobSearch),
    Grep(GrepSearch),
    Publish {
        place: Resolved,
        content: Vec<u8>,
    },
    Fetch {
        url: String,
        method: Method,
    },
    Shell {
        command: String,
        timeout_s: Option<u64>,
        /// In the sandbox (TR-21).
        read_only: bool,
        /// As a job, from the start (TR-50).
        background: bool,
    },
    JobOutput {
        id: String,
        offset: Option<u64>,
    },
    JobStop {
        id: String,
    },
    Brought(Arc<dyn BroughtTool>),
}
