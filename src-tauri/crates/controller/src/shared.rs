//! What the sessions of a host share: where things are, what they are made with, and the bounds.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_domain::transcript::outbound::ToolSpec;
use holdfast_domain::transcript::record::ProposedCall;
use holdfast_files::Storage;
use holdfast_journal::Holder;
use holdfast_supervisor::OnHostLoss;
use holdfast_tools::{MUTATING_TOOLS, Registry};

use crate::config::{Config, HostLoss};
use crate::hub::Hub;
use crate::models::Models;
use crate::source::Source;

/// SV-03: between TERM and KILL.
pub(crate) const SHELL_GRACE: Duration = Duration::from_secs(2);
/// Bytes of one command's output that are kept.
pub(crate) const OUTPUT_CAP: u64 = 64 * 1024 * 1024;

/// What all sessions of a host share.
pub(crate) struct Shared {
    pub(crate) data: PathBuf,
    pub(crate) workspace: Option<PathBuf>,
    /// Somebody can be asked.
    pub(crate) attended: bool,
    pub(crate) config: Config,
    pub(crate) source: Arc<dyn Source>,
    pub(crate) models: Arc<dyn Models>,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) tool_specs: Vec<ToolSpec>,
    pub(crate) boot_id: String,
    pub(crate) supervisor_binary: PathBuf,
    pub(crate) runtime_folder: Option<PathBuf>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) holder: Holder,
    /// TR-35.
    pub(crate) retry_enabled: bool,
    /// TR-32: longest time of an inspection.
    pub(crate) inspection_time: Duration,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Shared")
            .field("data", &self.data)
            .finish_non_exhaustive()
    }
}

impl Shared {
    /// The call may have effects. An unknown tool is refused before it could have any, and a
    /// command that asks for the sandbox gets nothing else (TR-21).
    pub(crate) fn is_mutating(&self, call: &ProposedCall) -> bool {
        holdfast_tools::may_have_effects(&call.name, &call.arguments)
            || self.registry.brings_mutating(&call.name)
    }

    pub(crate) fn mutating_tools(&self) -> BTreeSet<String> {
        self.tool_specs
            .iter()
            .map(|spec| spec.name.clone())
            .filter(|name| {
                MUTATING_TOOLS.contains(&name.as_str()) || self.registry.brings_mutating(name)
            })
            .collect()
    }

    pub(crate) fn shell_timeout(&self) -> Duration {
        Duration::from_secs(self.config.agent.shell_timeout_s)
    }

    pub(crate) fn on_host_loss(&self) -> OnHostLoss {
        match self.config.agent.on_host_loss {
            HostLoss::Finish => OnHostLoss::Finish,
            HostLoss::Stop => OnHostLoss::Stop,
        }
    }
}
