//! Starting the supervisor's process.
//!
//! Guarantees: it gets no environment, no standard streams and no terminal of the host's; its
//! command gets what the request says.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use tokio::process::{Child, Command};

use crate::error::SupervisorError;

/// The name of the executable.
const NAME: &str = if cfg!(windows) {
    "holdfast-supervisor.exe"
} else {
    "holdfast-supervisor"
};

/// The supervisor's executable: `HOLDFAST_SUPERVISOR`, else beside the running executable, else one
/// folder up.
///
/// # Errors
/// `supervisor_missing` with the places that were looked at.
pub fn find_binary() -> Result<PathBuf, SupervisorError> {
    let missing = |places: &[PathBuf]| SupervisorError::BinaryMissing {
        looked_at: places
            .iter()
            .map(|place| place.display().to_string())
            .collect::<Vec<_>>()
            .join(", "),
    };
    if let Some(named) = std::env::var_os("HOLDFAST_SUPERVISOR").filter(|name| !name.is_empty()) {
        let named = PathBuf::from(named);
        return if named.is_file() {
            Ok(named)
        } else {
            Err(missing(&[named]))
        };
    }
    let own =
        std::env::current_exe().map_err(SupervisorError::io("finding the running executable"))?;
    let places: Vec<PathBuf> = own
        .ancestors()
        .skip(1)
        .take(2)
        .map(|folder| folder.join(NAME))
        .collect();
    places
        .iter()
        .find(|place| place.is_file())
        .cloned()
        .ok_or_else(|| missing(&places))
}

/// Launches the supervisor on a prepared folder. Give the child to `Attachment::attach`, or drop
/// it: the runtime reaps it either way, and never kills it.
///
/// Call it inside a tokio runtime. The attempt's start record must be durable before.
///
/// # Errors
/// `supervisor_io` when it can't be executed: then nothing runs; `unsupported_platform` elsewhere
/// than on Linux.
pub fn launch(binary: &Path, folder: &Path) -> Result<Child, SupervisorError> {
    if cfg!(not(target_os = "linux")) {
        return Err(SupervisorError::UnsupportedPlatform);
    }
    let folder =
        std::path::absolute(folder).map_err(SupervisorError::io("resolving the effect folder"))?;
    Command::new(binary)
        .arg(folder)
        // The host's environment holds keys, and no process should keep them for hours.
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(false)
        .spawn()
        .map_err(SupervisorError::io("launching the supervisor"))
}
