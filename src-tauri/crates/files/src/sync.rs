//! Syncing, one function each for files and folders.

use std::fs::File;
use std::io;
use std::path::Path;

/// Makes a file's content and length durable: `fdatasync` on Linux, `F_FULLFSYNC` on macOS,
/// `FlushFileBuffers` on Windows.
///
/// # Errors
/// What the system says. After an error nothing is known of the pages since the last success, and
/// calling again proves nothing (TR-48).
pub fn sync_file(file: &File) -> io::Result<()> {
    file.sync_data()
}

/// As [`sync_folder`], for a folder that is open already.
///
/// # Errors
/// What the system says.
#[cfg(unix)]
pub fn sync_open_folder(folder: &impl std::os::fd::AsFd) -> io::Result<()> {
    Ok(rustix::fs::fsync(folder)?)
}

/// Makes a creation or a rename in a folder durable. A documented no-op on Windows, where a folder
/// can't be opened for it and NTFS journals its own metadata.
///
/// # Errors
/// What the system says when the folder can't be opened or synced.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        File::open(path)?.sync_all()
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        Ok(())
    }
}
