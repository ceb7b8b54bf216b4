//! The effect folder: names, private creation, checked opening, the lock on `alive`.
//!
//! Guarantees: what is created is 0700 or 0600 from its first moment; what is read is a regular
//! file of this user which nobody else can write or read, never behind a link.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::error::SupervisorError;

/// The host's wish: what to run and how.
pub(crate) const REQUEST: &str = "request";
/// Locked for the supervisor's whole life.
pub(crate) const ALIVE: &str = "alive";
/// Whoever creates it first decides whether the command runs.
pub(crate) const START: &str = "start";
/// Standard output and error of the command, in their real order.
pub const OUTPUT: &str = "output";
/// The receipt.
pub(crate) const EXIT: &str = "exit";
/// How a job that outlived its call ended.
pub(crate) const ENDED: &str = "ended";
/// Its presence asks for the end of the tree.
pub(crate) const STOP: &str = "stop";
/// Its presence says that the host's end is no reason to end the tree.
pub(crate) const KEEP: &str = "keep";

/// Whether a supervisor holds the folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Liveness {
    /// `alive` is locked: a supervisor lives.
    Held,
    /// Nobody holds it, or it was never made.
    Free,
}

/// An attempt id is a file name and part of a socket's name: 1 to 64 letters, digits, `_`, `-`.
pub(crate) fn acceptable_attempt_id(id: &str) -> bool {
    (1..=64).contains(&id.len())
        && id
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// The attempts that have an effect folder below `effects_root`, sorted. A missing root holds none.
///
/// # Errors
/// `supervisor_io` when the root can't be read.
pub fn list(effects_root: &Path) -> Result<Vec<String>, SupervisorError> {
    let entries = match fs::read_dir(effects_root) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(SupervisorError::io("reading the effects folder")(error)),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(SupervisorError::io("reading the effects folder"))?;
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if let (true, Ok(name)) = (is_folder, entry.file_name().into_string()) {
            found.push(name);
        }
    }
    found.sort();
    Ok(found)
}

/// Removes an effect folder; for the time after the result is durable in the log. A missing folder
/// is fine.
///
/// # Errors
/// `still_running` while the command runs, or a part of its tree lives on as a job;
/// `supervisor_io`.
pub fn remove(folder: &Path) -> Result<(), SupervisorError> {
    if liveness(folder)? == Liveness::Held && !crate::receipt::tree_is_over(folder) {
        return Err(SupervisorError::StillRunning);
    }
    match fs::remove_dir_all(folder) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(SupervisorError::io("removing the effect folder")(error)),
    }
}

/// Asks the supervisor to end the command's whole tree (SV-03, SV-07). It answers within 200 ms by
/// beginning to; the end is told by the receipt. Asking twice is fine.
///
/// # Errors
/// `supervisor_io`.
pub fn request_stop(folder: &Path) -> Result<(), SupervisorError> {
    match create_new(&folder.join(STOP)) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(SupervisorError::io("asking for the stop")(error)),
    }
}

/// Whether the end of the tree is asked for and not tried to the end yet.
pub(crate) fn stop_is_asked(folder: &Path) -> bool {
    fs::symlink_metadata(folder.join(STOP)).is_ok()
}

/// Tells the supervisor that its host leaves on purpose and the command goes on, whatever the
/// request said about the host's loss (SV-09). For the time before the host ends. Telling twice is
/// fine, and so is a command whose folder is gone.
///
/// # Errors
/// `supervisor_io`.
pub fn request_keep(folder: &Path) -> Result<(), SupervisorError> {
    match create_new(&folder.join(KEEP)) {
        Ok(_) => Ok(()),
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound
            ) =>
        {
            Ok(())
        }
        Err(error) => Err(SupervisorError::io("leaving the command running")(error)),
    }
}

/// Whether the host has let go on purpose.
pub(crate) fn keep_is_asked(folder: &Path) -> bool {
    fs::symlink_metadata(folder.join(KEEP)).is_ok()
}

/// Creates a new private file for writing.
pub(crate) fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    private(&mut options);
    options.open(path)
}

/// Creates a new private folder; its parents must exist.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        fs::DirBuilder::new().mode(0o700).create(path)
    }
    #[cfg(not(unix))]
    {
        fs::create_dir(path)
    }
}

/// Opens the file that is locked for the supervisor's life, creating it when missing.
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
pub(crate) fn open_alive(folder: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(true);
    private(&mut options);
    options.open(folder.join(ALIVE))
}

/// Whether somebody holds `alive`. Looks by taking a shared lock for a moment, so several may look
/// at once, and a supervisor that comes just then tries again.
pub(crate) fn liveness(folder: &Path) -> Result<Liveness, SupervisorError> {
    let mut options = OpenOptions::new();
    options.read(true).append(true);
    private(&mut options);
    let file = match options.open(folder.join(ALIVE)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Liveness::Free),
        Err(error) => return Err(SupervisorError::io("opening the file alive")(error)),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(Liveness::Free),
        Err(TryLockError::WouldBlock) => Ok(Liveness::Held),
        Err(TryLockError::Error(error)) => Err(SupervisorError::io("looking at the lock")(error)),
    }
}

/// Reads a file of the folder whole, `None` when it is missing.
///
/// # Errors
/// `foreign_file` when it is not this user's private regular file, or larger than `limit` bytes.
pub(crate) fn read_checked(
    folder: &Path,
    name: &str,
    limit: u64,
) -> Result<Option<Vec<u8>>, SupervisorError> {
    let Some(file) = open_checked(folder, name)? else {
        return Ok(None);
    };
    let mut content = Vec::new();
    file.take(limit + 1)
        .read_to_end(&mut content)
        .map_err(SupervisorError::io("reading a file of the effect folder"))?;
    if content.len() as u64 > limit {
        return Err(foreign(name, format!("it is larger than {limit} bytes")));
    }
    Ok(Some(content))
}

/// Opens a file of the folder for reading, `None` when it is missing.
///
/// # Errors
/// `foreign_file` as for `read_checked`.
pub(crate) fn open_checked(folder: &Path, name: &str) -> Result<Option<File>, SupervisorError> {
    let mut options = OpenOptions::new();
    options.read(true);
    private(&mut options);
    let file = match options.open(folder.join(name)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        #[cfg(unix)]
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => {
            return Err(foreign(name, "it is a symbolic link".to_owned()));
        }
        Err(error) => {
            return Err(SupervisorError::io("opening a file of the effect folder")(
                error,
            ));
        }
    };
    let meta = file
        .metadata()
        .map_err(SupervisorError::io("reading a file's owner and mode"))?;
    if !meta.is_file() {
        return Err(foreign(name, "it is not a regular file".to_owned()));
    }
    if let Some(reason) = not_private(&meta) {
        return Err(foreign(name, reason));
    }
    Ok(Some(file))
}

/// Checks that a path is this user's own folder, closed to everybody else and no link.
pub(crate) fn check_private_folder(path: &Path) -> Result<(), String> {
    let meta = fs::symlink_metadata(path).map_err(|error| error.to_string())?;
    if !meta.is_dir() {
        return Err("it is not a folder".to_owned());
    }
    match not_private(&meta) {
        Some(reason) => Err(reason),
        None => Ok(()),
    }
}

/// The effect folder of an attempt.
pub(crate) fn of(effects_root: &Path, attempt_id: &str) -> PathBuf {
    effects_root.join(attempt_id)
}

#[cfg(unix)]
fn not_private(meta: &fs::Metadata) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    if meta.uid() != rustix::process::geteuid().as_raw() {
        return Some(format!("it belongs to user {}", meta.uid()));
    }
    let mode = meta.mode() & 0o7777;
    (mode & 0o077 != 0).then(|| format!("its mode is {mode:o}, others may use it"))
}

#[cfg(not(unix))]
fn not_private(_meta: &fs::Metadata) -> Option<String> {
    // The profile folder's access list keeps others out.
    None
}

fn private(options: &mut OpenOptions) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        // Without O_NONBLOCK, a fifo in the place of a file would hold the opener for ever.
        options
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    }
    #[cfg(not(unix))]
    let _ = options;
}

fn foreign(name: &str, reason: String) -> SupervisorError {
    SupervisorError::ForeignFile {
        name: name.to_owned(),
        reason,
    }
}
