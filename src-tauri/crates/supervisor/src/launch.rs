//! Starting the supervisor's process.
//!
//! Guarantees: it gets no environment, no standard streams and no terminal of the host's; its
//! command gets what the request says.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::SUPPORTED;
use crate::error::SupervisorError;
use crate::receipt::hex;

#[cfg(not(windows))]
#[path = "launch/unix.rs"]
mod system;
#[cfg(windows)]
#[path = "launch/windows.rs"]
mod system;

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

/// A launched supervisor's process. Dropped, it runs on; the runtime reaps it.
#[derive(Debug)]
pub struct Launched(system::Launched);

impl Launched {
    /// Waits for the supervisor's end. May be dropped at any await and called again.
    pub async fn wait(&mut self) {
        self.0.wait().await;
    }

    /// Its process id, for display.
    pub fn id(&self) -> Option<u32> {
        self.0.id()
    }
}

/// Launches the supervisor on a prepared folder. Give what comes back to `Attachment::attach`, or
/// drop it: the runtime reaps it either way, and never kills it.
///
/// Call it inside a tokio runtime. The attempt's start record must be durable before.
///
/// # Errors
/// `supervisor_io` when it can't be executed: then nothing runs; `unsupported_platform` where
/// commands are not supported.
pub fn launch(binary: &Path, folder: &Path) -> Result<Launched, SupervisorError> {
    if !SUPPORTED {
        return Err(SupervisorError::UnsupportedPlatform);
    }
    let folder =
        std::path::absolute(folder).map_err(SupervisorError::io("resolving the effect folder"))?;
    system::launch(binary, &folder)
        .map(Launched)
        .map_err(SupervisorError::io("launching the supervisor"))
}

/// Whether a supervisor that this process launches can outlive it. False on Windows when this
/// process is in a job object that its children may not leave (SV-03): then the end of the job,
/// which is often this process's own end, ends running commands.
pub fn survives_host() -> bool {
    system::survives_host()
}
