//! The short private folder for sockets (SV-07).
//!
//! Guarantee: a socket is made or used only in a folder of this user's that is closed to others; a
//! name that does not fit a socket address means no socket, never another place.

use std::path::{Path, PathBuf};

use crate::error::SupervisorError;
use crate::folder::check_private_folder;

/// Bytes that a socket's path may have; 103 is what every Unix takes.
const PATH_LIMIT: usize = 103;

/// A private folder with a short path for this user's sockets, made when missing:
/// `$XDG_RUNTIME_DIR/holdfast`, else one in the system's folder for temporary files.
///
/// # Errors
/// `runtime_folder_refused` when it exists and is not this user's alone; then go on without one.
/// `unsupported_platform` where there are no Unix sockets.
pub fn private_runtime_folder() -> Result<PathBuf, SupervisorError> {
    #[cfg(unix)]
    {
        let own = std::env::var_os("XDG_RUNTIME_DIR")
            .map(PathBuf::from)
            .filter(|folder| folder.is_absolute() && check_private_folder(folder).is_ok())
            // 43 bytes of folder, a slash and 16 of name make 60.
            .filter(|folder| folder.as_os_str().len() <= 34);
        let folder = match own {
            Some(folder) => folder.join("holdfast"),
            None => PathBuf::from(format!(
                "/tmp/holdfast-{}",
                rustix::process::geteuid().as_raw()
            )),
        };
        let refused = |reason: String| SupervisorError::RuntimeFolder { reason };
        match crate::folder::create_folder(&folder) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(refused(error.to_string())),
        }
        check_private_folder(&folder).map_err(refused)?;
        Ok(folder)
    }
    #[cfg(not(unix))]
    Err(SupervisorError::UnsupportedPlatform)
}

/// Where an attempt's socket is: named by the first 16 characters of the attempt id. `None` when
/// the folder is not private or the path too long.
pub(crate) fn socket_path(folder: &Path, attempt_id: &str) -> Option<PathBuf> {
    check_private_folder(folder).ok()?;
    let path = folder.join(attempt_id.get(..16).unwrap_or(attempt_id));
    (path.as_os_str().len() <= PATH_LIMIT).then_some(path)
}
