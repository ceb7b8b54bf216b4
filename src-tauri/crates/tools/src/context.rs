//! What an execution gets from its caller: identity, stop signal, where to report, where to run.

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_supervisor::OnHostLoss;
use tokio_util::sync::CancellationToken;

use crate::jobs::Jobs;

type Listener = Arc<dyn Fn(&str) + Send + Sync>;

/// Receives provisional output while a command runs. Called from the runtime's threads; must not
/// block.
#[derive(Clone, Default)]
pub struct Progress(Option<Listener>);

impl Progress {
    /// Reports to a function. Pieces are valid text, never split inside a character.
    pub fn to(report: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(report)))
    }

    /// Reports this piece.
    pub fn send(&self, text: &str) {
        if let Some(report) = &self.0 {
            report(text);
        }
    }
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Progress").field(&self.0.is_some()).finish()
    }
}

/// Is told the name of each step of a file's publication, so that a test can stop there; and
/// `request_written` before a command's supervisor is started. Names:
/// `before_temp`, `after_create`, `after_temp`, `after_sync`, `after_claim`, `after_rename`,
/// `after_folder_sync`; `before_withdrawal` when the last check or the rename failed.
#[derive(Clone, Default)]
pub struct Checkpoint(Option<Listener>);

impl Checkpoint {
    /// Calls a function between the steps; it may block.
    pub fn at(reached: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(reached)))
    }

    pub(crate) fn reach(&self, name: &str) {
        if let Some(reached) = &self.0 {
            reached(name);
        }
    }
}

impl fmt::Debug for Checkpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Checkpoint")
            .field(&self.0.is_some())
            .finish()
    }
}

/// One execution's surroundings.
#[derive(Debug, Clone)]
pub struct Context {
    /// TR-06: 32 hex digits.
    pub attempt_id: String,
    /// TR-06.
    pub argument_digest: String,
    /// TR-07: given to commands as `HOLDFAST_IDEMPOTENCY_KEY`.
    pub idempotency_key: String,
    /// This machine's boot, as in the attempt's start record.
    pub boot_id: String,
    /// Stop.
    pub cancel: CancellationToken,
    /// TR-50: a person moves the command to the background.
    pub detach: CancellationToken,
    /// The jobs of the session.
    pub jobs: Arc<dyn Jobs>,
    /// Output while it comes.
    pub progress: Progress,
    /// Stops for tests; the default does nothing.
    pub checkpoint: Checkpoint,
    /// `<session>/effects`.
    pub effects_root: PathBuf,
    /// Short private folder for sockets (SV-07); without one a command is followed by its files.
    pub runtime_folder: Option<PathBuf>,
    /// The supervisor's binary (SV-08).
    pub supervisor_binary: PathBuf,
    /// What commands get, as [`crate::command_environment`] chose it.
    pub environment: Vec<(OsString, OsString)>,
    /// For commands without `timeout_s`; time awake.
    pub shell_timeout: Duration,
    /// Between TERM and KILL (SV-03).
    pub shell_grace: Duration,
    /// Bytes of a command's output that are kept.
    pub output_cap: u64,
    /// What a running command does when this process dies.
    pub on_host_loss: OnHostLoss,
}
