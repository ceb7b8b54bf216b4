//! Files and folders that only their owner reads: tokens, receipts, session logs.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use crate::sync::{sync_file, sync_folder};

/// Creates a folder and its missing parents, 0700 on Unix. An existing folder is left as it is.
///
/// # Errors
/// What the system says.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt;
        builder.mode(0o700);
    }
    builder.create(path)
}

/// Replaces a file by temporary file, sync, rename and folder sync; 0600 on Unix. A reader sees the
/// old content or the new, whole.
///
/// # Errors
/// What the system says; the old file is then still in place.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let folder = path
        .parent()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "a path without a folder"))?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(content)?;
    sync_file(file.as_file())?;
    persist(file, path)?;
    sync_folder(folder)
}

#[cfg(not(windows))]
fn persist(file: tempfile::NamedTempFile, path: &Path) -> io::Result<()> {
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// A rename over a file that someone reads at this moment (a virus scanner too) can be refused on
/// Windows: it is tried again for a second at most.
#[cfg(windows)]
fn persist(mut file: tempfile::NamedTempFile, path: &Path) -> io::Result<()> {
    for _ in 0..50 {
        match file.persist(path) {
            Ok(_) => return Ok(()),
            Err(refused) if refused.error.kind() == io::ErrorKind::PermissionDenied => {
                file = refused.file;
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            Err(refused) => return Err(refused.error),
        }
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Reads a file of at most `limit` bytes.
///
/// # Errors
/// What the system says; `FileTooLarge` when it holds more than `limit` bytes.
pub fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    fs::File::open(path)?
        .take(limit + 1)
        .read_to_end(&mut content)?;
    if content.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("larger than {limit} bytes"),
        ));
    }
    Ok(content)
}
