//! A host of sessions on this machine: opens, lists, creates and hands requests to the actors.
//!
//! Guarantees: one actor for each open session; a session that another process holds is refused
//! with its holder; a request that names no session means the current one, and one that asserts a
//! session is refused when another would answer (TR-41).

mod check;
mod fork;
mod list;
mod open;
mod operations;
mod reading;

pub use check::{Check, Finding};

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use holdfast_api::ApiError;
use holdfast_files::{Disk, Storage};
use holdfast_journal::Holder;
use holdfast_supervisor::SupervisorError;
use holdfast_tools::{BroughtTool, Registry, RegistryConfig, SandboxConfig, command_environment};
use tokio::sync::{Mutex, OnceCell};

use crate::actor::SessionHandle;
use crate::config::Config;
use crate::hub::Hub;
use crate::models::Models;
use crate::shared::Shared;
use crate::source::Source;

/// Longest time that a host waits for its sessions to end.
const CLOSE_TIME: Duration = Duration::from_secs(12);

/// TR-32: longest time of an inspection.
const INSPECTION_TIME: Duration = Duration::from_secs(5);

/// What a host is made of.
pub struct HostOptions {
    /// Where everything is kept.
    pub data: PathBuf,
    /// Workspace of sessions that name none.
    pub workspace: Option<PathBuf>,
    /// Somebody can be asked. Where nobody can, a call that may repeat an earlier effect is refused
    /// with `repeat_refused` (TR-46); ordinary questions wait.
    pub attended: bool,
    /// The configuration.
    pub config: Config,
    /// Time and randomness.
    pub source: Arc<dyn Source>,
    /// Finds models.
    pub models: Arc<dyn Models>,
    /// The layer under the session logs; the disk, but in tests of faults.
    pub storage: Arc<dyn Storage>,
    /// TR-35: a person may have an attempt run again that is proven absent and fenced. Off by
    /// default; the programs read it from their environment (docs/ENVIRONMENT.md) once, at the start.
    pub retry_enabled: bool,
    /// TR-32: longest time of an inspection, after which it is `unknown`; 5 s by default.
    pub inspection_time: Duration,
    /// Tools besides the built-in ones; none by default.
    pub tools: Vec<Arc<dyn BroughtTool>>,
    /// The local socket at which this host is asked about sessions that it holds.
    pub local_socket: Option<PathBuf>,
}

impl HostOptions {
    /// On the real disk.
    pub fn new(
        data: PathBuf,
        config: Config,
        source: Arc<dyn Source>,
        models: Arc<dyn Models>,
    ) -> Self {
        Self {
            data,
            workspace: None,
            attended: true,
            config,
            source,
            models,
            storage: Arc::new(Disk),
            retry_enabled: false,
            inspection_time: INSPECTION_TIME,
            tools: Vec::new(),
            local_socket: None,
        }
    }
}

/// A host of sessions. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Host {
    shared: Arc<Shared>,
    /// A place is there before its session is opened, and stays empty when that fails.
    sessions: Arc<Mutex<HashMap<String, Arc<OnceCell<SessionHandle>>>>>,
    /// It gives its sessions back, or has, and opens none any more.
    ended: Arc<AtomicBool>,
}

impl Host {
    /// Makes a host; opens no session.
    ///
    /// # Errors
    /// The data folder can't be made, or the tools have a defect.
    pub fn new(options: HostOptions) -> Result<Self, ApiError> {
        let failed = |what: &str, error: &dyn std::fmt::Display| {
            ApiError::internal(
                "host_start_failed",
                format!("{what}: {error}; nothing was changed; check the data folder"),
            )
        };
        let sessions = options.data.join("sessions");
        holdfast_files::create_private_folder(&sessions)
            .map_err(|error| failed("the data folder can't be made", &error))?;
        let data = options
            .data
            .canonicalize()
            .map_err(|error| failed("the data folder can't be read", &error))?;
        let supervisor_binary = supervisor_binary(&data);
        let registry = Registry::new(RegistryConfig {
            sandbox: Some(SandboxConfig {
                supervisor: supervisor_binary.clone(),
                probe_folder: data.clone(),
                program: None,
            }),
            brought: options.tools,
            ..RegistryConfig::default()
        })
        .map_err(|error| failed("the tools can't be set up", &error))?;
        let tool_specs = registry.specs().to_vec();
        let boot_id = holdfast_supervisor::boot_id().unwrap_or_else(|error| {
            tracing::warn!(code = error.code(), "this machine's boot can't be told");
            String::new()
        });
        let environment = command_environment(
            std::env::vars_os(),
            &options.config.key_names(),
            &options.config.agent.env_keep,
        );
        let holder = Holder {
            pid: std::process::id(),
            host: host_name(),
            since: options.source.now(),
            socket: options.local_socket,
        };
        Ok(Self {
            shared: Arc::new(Shared {
                supervisor_binary,
                runtime_folder: socket_folder(),
                hub: Arc::new(Hub::new(options.source.id())),
                data,
                workspace: options.workspace,
                attended: options.attended,
                config: options.config,
                source: options.source,
                models: options.models,
                storage: options.storage,
                registry: Arc::new(registry),
                tool_specs,
                boot_id,
                environment,
                holder,
                retry_enabled: options.retry_enabled,
                inspection_time: options.inspection_time,
            }),
            sessions: Arc::default(),
            ended: Arc::default(),
        })
    }

    /// The event stream.
    pub fn hub(&self) -> &Arc<Hub> {
        &self.shared.hub
    }

    /// Opens every session that has something running or open, so that lists and states tell the
    /// truth without being asked about each (TR-18, TR-47). Meant to run in the background.
    pub async fn recover_all(&self) {
        let folder = self.shared.sessions_folder();
        let found = tokio::task::spawn_blocking(move || {
            let mut ids = list::session_ids(&folder);
            ids.retain(|id| list::needs_look(&folder.join(id), id));
            ids
        })
        .await;
        for id in found.unwrap_or_default() {
            if let Err(error) = self.session(&id).await {
                tracing::info!(code = %error.code, "a session with open effects was not opened");
            }
        }
    }

    /// The local socket of the host that holds a session, as it recorded it.
    pub fn holder_socket(&self, session_id: &str) -> Option<PathBuf> {
        let folder = self.shared.sessions_folder().join(session_id);
        holdfast_journal::holder(&folder)?.socket
    }

    async fn open_ids(&self) -> HashSet<String> {
        let sessions = self.sessions.lock().await;
        sessions
            .iter()
            .filter(|(_, place)| place.get().is_some_and(|handle| !handle.is_gone()))
            .map(|(id, _)| id.clone())
            .collect()
    }

    /// Stops what runs, stores it, and gives all sessions back. Open questions are kept.
    pub async fn close(&self) {
        self.end(false).await;
    }

    /// As [`Host::close`], but jobs go on under their supervisors (SV-09).
    pub async fn release(&self) {
        self.end(true).await;
    }

    async fn end(&self, keep_jobs: bool) {
        let mut sessions = self.sessions.lock().await;
        self.ended.store(true, Ordering::SeqCst);
        let handles: Vec<SessionHandle> = sessions
            .drain()
            .filter_map(|(_, place)| place.get().cloned())
            .collect();
        drop(sessions);
        let closing = handles
            .iter()
            .map(|handle| open::close_session(handle, keep_jobs));
        let all = futures_util::future::join_all(closing);
        if tokio::time::timeout(CLOSE_TIME, all).await.is_err() {
            tracing::warn!("some sessions did not end in time; their commands go on");
        }
    }
}

fn host_name() -> String {
    holdfast_files::read_bounded(std::path::Path::new("/proc/sys/kernel/hostname"), 256)
        .ok()
        .map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
        .or_else(|| std::env::var("COMPUTERNAME").ok())
        .or_else(|| std::env::var("HOSTNAME").ok())
        .unwrap_or_default()
}

/// SV-08: the installed copy, so that an update of the program can't break a running command. What
/// is missing is said by the command that needs it.
fn supervisor_binary(data: &std::path::Path) -> PathBuf {
    let found = holdfast_supervisor::find_binary().and_then(|binary| {
        holdfast_supervisor::install_binary(&binary, data).or_else(|error| {
            tracing::warn!(code = error.code(), "the supervisor runs from where it is");
            Ok::<_, SupervisorError>(binary)
        })
    });
    found.unwrap_or_else(|error| {
        tracing::warn!(code = error.code(), "commands can't be run: {error}");
        PathBuf::from("holdfast-supervisor")
    })
}

/// The short private folder for this user's sockets. Without one, files alone are used (SV-07).
pub fn socket_folder() -> Option<PathBuf> {
    holdfast_supervisor::private_runtime_folder()
        .inspect_err(|error| tracing::info!(code = error.code(), "no private folder for sockets"))
        .ok()
}
