//! The crate's one error: what happened, what is safe, what to do.

use std::io;

use thiserror::Error;

/// What can go wrong beside a command itself; a command's own failure is in its receipt.
#[derive(Debug, Error)]
pub enum SupervisorError {
    /// Supervised commands are not written for this system.
    #[error(
        "supervised commands work on Linux, macOS and Windows only; nothing was started, and nothing on this system changed"
    )]
    UnsupportedPlatform,
    /// The system refused something.
    #[error("{action} failed: {source}; the effect folder is left as it is, look at it again")]
    Io {
        /// What was being done, as a noun phrase.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// The request can't be accepted as it is.
    #[error("the request was refused: {reason}; nothing was started")]
    RequestRefused {
        /// Why.
        reason: String,
    },
    /// A file of the effect folder is not what its owner left there.
    #[error("`{name}` in the effect folder was refused: {reason}; its content was not used")]
    ForeignFile {
        /// The file's name.
        name: String,
        /// Why.
        reason: String,
    },
    /// An exit receipt that is not this attempt's.
    #[error("the exit receipt was refused: {reason}; the command's end stays unknown")]
    ForeignReceipt {
        /// Why.
        reason: String,
    },
    /// The attempt already has an effect folder.
    #[error(
        "an effect folder of this attempt exists already; nothing was started, look at the attempt's recovery"
    )]
    FolderExists,
    /// The supervisor's executable was not found.
    #[error(
        "the supervisor's executable was not found at {looked_at}; nothing was started: install it beside the program or set HOLDFAST_SUPERVISOR"
    )]
    BinaryMissing {
        /// Where it was looked for.
        looked_at: String,
    },
    /// Another supervisor holds `alive`.
    #[error("another supervisor holds this effect folder; nothing was started twice")]
    AlreadySupervised,
    /// The claim for `start` was lost.
    #[error("the start was claimed by somebody else; this supervisor started nothing")]
    StartLost,
    /// The host was gone before the start, and the request says that its loss ends the command.
    #[error("the host was gone before the start; nothing was started")]
    HostGone,
    /// The stop came before the start.
    #[error("the command was stopped before it started; nothing was started")]
    StoppedBeforeStart,
    /// The folder can't go while its supervisor works in it.
    #[error("the command's supervisor is alive; the folder was kept: stop the command first")]
    StillRunning,
    /// The inner stage of the sandbox can't keep its promises.
    #[error("the sandbox is not free of effects: {reason}; nothing was run")]
    Unconfined {
        /// Why.
        reason: String,
    },
    /// The runtime folder is not private.
    #[error(
        "the runtime folder was refused: {reason}; commands work without it, only less promptly"
    )]
    RuntimeFolder {
        /// Why.
        reason: String,
    },
}

impl SupervisorError {
    /// The stable code; messages may change, codes don't.
    pub fn code(&self) -> &'static str {
        match self {
            Self::UnsupportedPlatform => "unsupported_platform",
            Self::Io { .. } => "supervisor_io",
            Self::RequestRefused { .. } => "request_refused",
            Self::ForeignFile { .. } => "foreign_file",
            Self::ForeignReceipt { .. } => "foreign_receipt",
            Self::FolderExists => "effect_folder_exists",
            Self::BinaryMissing { .. } => "supervisor_missing",
            Self::AlreadySupervised => "already_supervised",
            Self::StartLost => "start_lost",
            Self::HostGone => "host_gone",
            Self::StoppedBeforeStart => "stopped_before_start",
            Self::StillRunning => "still_running",
            Self::Unconfined { .. } => "unconfined",
            Self::RuntimeFolder { .. } => "runtime_folder_refused",
        }
    }

    /// An I/O error with the name of what was being done.
    pub(crate) fn io(action: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, source }
    }
}
