//! Starting the supervisor's process.
//!
//! Guarantees: it gets no environment, no standard streams and no terminal of the host's; its
//! command gets what the request says.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use sha2::{Digest, Sha256};
use tokio::process::{Child, Command};

use crate::error::SupervisorError;
use crate::receipt::hex;

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

/// Copies the executable to `<data>/bin/<sha256>/`, once, and answers where it is: run from there,
/// it is not touched by an update of the program while a command runs (SV-08).
///
/// # Errors
/// `supervisor_io`; then the original can be run as well.
pub fn install_binary(binary: &Path, data: &Path) -> Result<PathBuf, SupervisorError> {
    let content =
        fs::read(binary).map_err(SupervisorError::io("reading the supervisor's executable"))?;
    let folder = data.join("bin").join(hex(&Sha256::digest(&content)));
    let place = folder.join(NAME);
    // The folder's name is the content's digest and the rename below is whole, so one of the right
    // length is the right one.
    if fs::metadata(&place).is_ok_and(|meta| meta.len() == content.len() as u64) {
        return Ok(place);
    }
    let failed = "installing the supervisor's executable";
    holdfast_files::create_private_folder(&folder).map_err(SupervisorError::io(failed))?;
    let draft = folder.join(format!("{NAME}.{}", std::process::id()));
    let installed = write_executable(&draft, &content).and_then(|()| fs::rename(&draft, &place));
    if installed.is_err() {
        let _ = fs::remove_file(&draft);
    }
    match installed {
        Ok(()) => Ok(place),
        // Another host was first, and the system does not replace what runs.
        Err(_) if place.is_file() => Ok(place),
        Err(error) => Err(SupervisorError::io(failed)(error)),
    }
}

fn write_executable(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o700);
    }
    let mut file = options.open(path)?;
    file.write_all(content)?;
    holdfast_files::sync_file(&file)
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
