//! The effect-free sandbox of read-only commands (TR-21): diagnosis by shell that can change nothing.
//!
//! Guarantees: a command is run in it only after a probe, once per host start, has tried every effect
//! there and each was prevented; otherwise nothing is run and the reason is told. What it hides: the
//! program's own data, and the places where keys are kept.
//!
//! Linux: bubblewrap for mounts and namespaces, and inside of it the supervisor's inner stage for what
//! those let through. macOS: sandbox-exec. Windows has none.

#[cfg(any(target_os = "linux", test))]
mod bubblewrap;
mod hidden;
#[cfg(unix)]
mod probe;
#[cfg(any(target_os = "macos", test))]
mod seatbelt;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use holdfast_supervisor::Targets;

use crate::error::ToolError;
use crate::shell::environment::set;
use crate::workspace::Workspace;
use hidden::Hidden;

/// What makes the sandbox.
const PROGRAM: &str = if cfg!(target_os = "macos") {
    "sandbox-exec"
} else {
    "bwrap"
};

/// Variables that lead to programs of outside, which a command in the sandbox can't reach.
const LEADING_OUT: [&str; 8] = [
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DOCKER_HOST",
];

/// Where the sandbox finds what it needs.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// The supervisor's executable, which is also the sandbox's inner stage.
    pub supervisor: PathBuf,
    /// A folder in which the probe may make a folder of its own, which it removes.
    pub probe_folder: PathBuf,
    /// The program that makes the sandbox; `None`: it is looked for in PATH.
    pub program: Option<PathBuf>,
}

/// The sandbox of a host. Probed at first use.
#[derive(Debug)]
pub(crate) struct Sandbox {
    config: Option<SandboxConfig>,
    /// What the probe found. A missing program is looked for again each time: installing it helps
    /// at once.
    probed: Mutex<Option<Result<PathBuf, String>>>,
}

/// A command, as it is started to run in the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<OsString>,
    /// The private folder for temporary files, where there is one.
    pub(crate) scratch: Option<PathBuf>,
}

/// Where something runs in the sandbox.
struct Place<'a> {
    /// The working folder, which stays visible whatever is hidden around it.
    folder: &'a Path,
    hidden: &'a Hidden,
    /// The executable of the inner stage, as it is called outside.
    supervisor: &'a Path,
}

/// What runs there.
#[derive(Clone, Copy)]
enum Task<'a> {
    /// Program and arguments.
    Command(&'a [OsString]),
    /// The probe.
    Probe(&'a Targets),
}

impl Task<'_> {
    /// Program and arguments, where the supervisor's executable has this name.
    fn words(self, supervisor: &Path) -> Vec<OsString> {
        match self {
            Task::Command(command) => command.to_vec(),
            Task::Probe(targets) => {
                let mut words = vec![supervisor.into()];
                words.extend(targets.arguments());
                words
            }
        }
    }
}

impl Sandbox {
    pub(crate) fn new(config: Option<SandboxConfig>) -> Self {
        Self {
            config,
            probed: Mutex::default(),
        }
    }

    /// The program that makes the sandbox, once the probe has passed. Blocking.
    ///
    /// # Errors
    /// `sandbox_unavailable` with the reason.
    pub(crate) fn ready(&self) -> Result<PathBuf, ToolError> {
        let config = self.config.as_ref().ok_or_else(|| {
            ToolError::SandboxUnavailable("this host was started without one".to_owned())
        })?;
        // Held while the probe runs: whoever comes meanwhile waits for its verdict.
        let mut probed = self.probed.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = &*probed {
            return found.clone().map_err(ToolError::SandboxUnavailable);
        }
        let program = find(config).map_err(ToolError::SandboxUnavailable)?;
        let found = examine(&program, config).map(|()| program);
        probed
            .insert(found)
            .clone()
            .map_err(ToolError::SandboxUnavailable)
    }

    /// How a command is started in the sandbox, in the workspace. Blocking.
    ///
    /// # Errors
    /// `sandbox_unavailable` with the reason.
    pub(crate) fn launch(
        &self,
        workspace: &Workspace,
        command: &[OsString],
    ) -> Result<Launch, ToolError> {
        let program = self.ready()?;
        let hidden = Hidden::here(workspace.root(), &workspace.forbidden_paths());
        let supervisor = self
            .config
            .as_ref()
            .map(|config| config.supervisor.as_path());
        let place = Place {
            folder: workspace.root(),
            hidden: &hidden,
            supervisor: supervisor.unwrap_or(Path::new("")),
        };
        Ok(launch(program, &place, Task::Command(command)))
    }
}

/// What a command in the sandbox gets of its environment: nothing that leads out, and git without
/// the locks that it takes to write its index anew.
pub(crate) fn quiet_environment(environment: &mut Vec<(OsString, OsString)>, launch: &Launch) {
    environment.retain(|(name, _)| LEADING_OUT.iter().all(|other| name != other));
    set(environment, "GIT_OPTIONAL_LOCKS", OsStr::new("0"));
    if let Some(scratch) = &launch.scratch {
        set(environment, "TMPDIR", scratch.as_os_str());
    }
}

fn launch(program: PathBuf, place: &Place<'_>, task: Task<'_>) -> Launch {
    #[cfg(target_os = "linux")]
    {
        bubblewrap::launch(program, place, task)
    }
    #[cfg(target_os = "macos")]
    {
        seatbelt::launch(program, place, task)
    }
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    {
        // Never reached: `find` refuses there.
        let _ = place.folder;
        Launch {
            program,
            arguments: task.words(place.supervisor),
            scratch: None,
        }
    }
}

fn find(config: &SandboxConfig) -> Result<PathBuf, String> {
    if cfg!(not(any(target_os = "linux", target_os = "macos"))) {
        return Err("no sandbox is written for this system".to_owned());
    }
    let found = match &config.program {
        Some(program) => program.is_file().then(|| program.clone()),
        // A relative entry of PATH would mean another program in each folder.
        None => std::env::var_os("PATH").and_then(|path| {
            std::env::split_paths(&path)
                .filter(|folder| folder.is_absolute())
                .map(|folder| folder.join(PROGRAM))
                .find(|program| program.is_file())
        }),
    };
    found.ok_or_else(|| {
        if cfg!(target_os = "macos") {
            format!("{PROGRAM}, which comes with macOS, is not in PATH")
        } else {
            format!(
                "bubblewrap (the program {PROGRAM}) is not installed; a person can install it: the \
                 package is called bubblewrap"
            )
        }
    })
}

#[cfg(unix)]
fn examine(program: &Path, config: &SandboxConfig) -> Result<(), String> {
    probe::run(program, config)
}

#[cfg(not(unix))]
fn examine(_program: &Path, _config: &SandboxConfig) -> Result<(), String> {
    Err("no sandbox is written for this system".to_owned())
}
