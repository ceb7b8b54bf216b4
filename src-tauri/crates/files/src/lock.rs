//! An exclusive lock of the operating system on a file of its own: the proof that one process, and
//! no other, works on what lies beside it.
//!
//! Guarantees: the lock goes with the process, however it ends; a lock on a file that was replaced
//! meanwhile doesn't count; where locks can't be trusted the answer is a refusal with its reason.
//!
//! Refused on Linux: nfs, smb, cifs, afs, coda, ceph, 9p and network file systems over FUSE (sshfs,
//! rclone, s3fs, glusterfs, davfs). There a lock may hold on this machine only, or be lost on a
//! reconnect without a word. Refused on macOS: what is not mounted from a local disk. Refused on
//! Windows: UNC paths and drives that lead to one.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::Path;

/// How often a lock file that was replaced under our hands is opened again.
const ATTEMPTS: u32 = 16;

/// Why there is no lock.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process, or another handle of this one, holds it.
    #[error("The lock is held. Nothing was changed. Close the other holder, then try again.")]
    Held,
    /// The file system has no locks.
    #[error(
        "The file system of this folder has no file locks ({reason}). Nothing was changed. Move the folder to a local disk."
    )]
    Unsupported {
        /// What the system says.
        reason: String,
    },
    /// The folder is on a network file system.
    #[error(
        "This folder is on a network file system ({kind}), where a lock proves nothing. Nothing was changed. Move the folder to a local disk."
    )]
    Network {
        /// The file system's name.
        kind: String,
    },
    /// The lock file can't be opened or locked.
    #[error(
        "The lock file can't be used ({0}). Nothing was changed. Check the folder's permissions."
    )]
    Io(#[from] io::Error),
}

impl LockError {
    /// The stable name of this error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Held => "lock_held",
            Self::Unsupported { .. } => "lock_unsupported",
            Self::Network { .. } => "network_folder",
            Self::Io(_) => "lock_failed",
        }
    }
}

/// A held lock. Dropping it gives it back; the file stays.
#[derive(Debug)]
pub struct FileLock {
    file: File,
}

impl FileLock {
    /// Takes the lock without waiting. The file is created (0600 on Unix) when it is missing and
    /// never deleted, so that two processes can't hold locks on two files of one name.
    ///
    /// # Errors
    /// [`LockError::Held`] when someone has it; the others say why there can be none.
    pub fn acquire(path: &Path) -> Result<Self, LockError> {
        let folder = path.parent().unwrap_or(Path::new("."));
        if let Some(kind) = network_kind(folder)? {
            return Err(LockError::Network { kind });
        }
        for _ in 0..ATTEMPTS {
            let file = open(path)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Err(LockError::Held),
                Err(TryLockError::Error(error)) => return Err(refused(error)),
            }
            if is_at(&file, path)? {
                return Ok(Self { file });
            }
        }
        Err(LockError::Io(io::Error::other(
            "the lock file is being replaced again and again",
        )))
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        // Closing frees it too, but on Windows at a moment of the system's choosing.
        let _ = self.file.unlock();
    }
}

fn refused(error: io::Error) -> LockError {
    #[cfg(unix)]
    let none = error.raw_os_error() == Some(rustix::io::Errno::NOLCK.raw_os_error());
    #[cfg(not(unix))]
    let none = false;
    if none || error.kind() == io::ErrorKind::Unsupported {
        LockError::Unsupported {
            reason: error.to_string(),
        }
    } else {
        LockError::Io(error)
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    // Windows grants a lock only to a handle opened for reading and appending.
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(0o600);
    }
    #[cfg(windows)]
    {
        use std::os::windows::fs::OpenOptionsExt;
        // FILE_SHARE_READ | FILE_SHARE_WRITE, not DELETE: nobody replaces it while it is open.
        options.share_mode(1 | 2);
    }
    options.open(path)
}

/// Whether the locked file is still the one at the path.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let ours = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok(ours.dev() == there.dev() && ours.ino() == there.ino()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The file was opened without sharing deletion: it can't have been replaced.
#[cfg(not(unix))]
fn is_at(_file: &File, _path: &Path) -> io::Result<bool> {
    Ok(true)
}

/// The name of the network file system a folder is on, if it is on one.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn network_kind(folder: &Path) -> io::Result<Option<String>> {
    let found = rustix::fs::statfs(folder)?;
    // The magic numbers of statfs(2); the field's width differs between machines.
    let magic = (found.f_type as u64) & 0xffff_ffff;
    let kind = match magic {
        0x6969 => "nfs",
        0x517b => "smb",
        0xfe53_4d42 => "smb2",
        0xff53_4d42 => "cifs",
        0x5346_414f | 0x6b41_4653 => "afs",
        0x7375_7245 => "coda",
        0x00c3_6400 => "ceph",
        0x0102_1997 => "9p",
        0x6573_5546 => return Ok(network_over_fuse(folder)),
        _ => return Ok(None),
    };
    Ok(Some(kind.to_owned()))
}

/// All FUSE file systems share one magic number; the mount table knows which one it is.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn network_over_fuse(folder: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let device = std::fs::metadata(folder).ok()?.dev();
    let device = format!(
        "{}:{}",
        rustix::fs::major(device),
        rustix::fs::minor(device)
    );
    let table = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    network_in_table(&table, &device)
}

/// Looks a device up in the text of `/proc/self/mountinfo`: its third field is the device, and the
/// file system's name follows a dash.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn network_in_table(table: &str, device: &str) -> Option<String> {
    const NETWORK: [&str; 6] = ["sshfs", "rclone", "s3fs", "glusterfs", "davfs", "curlftpfs"];
    table
        .lines()
        .filter(|line| line.split(' ').nth(2) == Some(device))
        .filter_map(|line| line.split_once(" - ")?.1.split(' ').next())
        .find(|kind| NETWORK.iter().any(|name| kind.contains(name)))
        .map(str::to_owned)
}

#[cfg(target_os = "macos")]
fn network_kind(folder: &Path) -> io::Result<Option<String>> {
    const MNT_LOCAL: u32 = 0x1000;
    let found = rustix::fs::statfs(folder)?;
    Ok((found.f_flags & MNT_LOCAL == 0).then(|| "not a local disk".to_owned()))
}

#[cfg(windows)]
fn network_kind(folder: &Path) -> io::Result<Option<String>> {
    use std::path::{Component, Prefix};
    let real = std::fs::canonicalize(folder)?;
    let network = matches!(
        real.components().next(),
        Some(Component::Prefix(prefix))
            if matches!(prefix.kind(), Prefix::UNC(..) | Prefix::VerbatimUNC(..))
    );
    Ok(network.then(|| "a network share".to_owned()))
}

#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_os = "macos",
    windows
)))]
fn network_kind(_folder: &Path) -> io::Result<Option<String>> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "locks are not examined on this system yet",
    ))
}

#[cfg(all(test, unix))]
mod tests {
    use super::{is_at, open};

    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn a_network_file_system_over_fuse_is_found_by_its_device() {
        let table = "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n\
            40 22 0:51 / /mnt/far rw,nosuid shared:2 master:1 - fuse.sshfs me@far:/ rw\n\
            41 22 0:52 / /mnt/near rw - fuseblk /dev/sdb1 rw\n";
        let found = |device| super::network_in_table(table, device);
        assert_eq!(found("0:51").as_deref(), Some("fuse.sshfs"));
        assert_eq!(found("0:52"), None);
        assert_eq!(found("0:5"), None);
    }

    #[test]
    fn a_lock_on_a_replaced_file_does_not_count() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("lock");
        let file = open(&path)?;
        assert!(is_at(&file, &path)?);
        std::fs::remove_file(&path)?;
        assert!(!is_at(&file, &path)?);
        open(&path)?;
        assert!(!is_at(&file, &path)?);
        Ok(())
    }
}
