//! The operations a session log needs of a file system, as a trait, so that tests can put a layer
//! in between that fails, and the real one, `Disk`.
//!
//! Guarantees: every method is one system operation as far as its caller can tell; nothing is
//! retried, buffered or repeated here, so a caller knows what a failure means.

use std::fmt::Debug;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::private::create_private_folder;
use crate::sync::{sync_file, sync_folder};

/// A place that keeps files. Every method answers with the system's error.
pub trait Storage: Debug + Send + Sync {
    /// Creates a folder and its missing parents, 0700 on Unix. An existing one is left as it is.
    ///
    /// # Errors
    /// What the system says.
    fn create_folder(&self, path: &Path) -> io::Result<()>;

    /// Creates a file for reading and appending, 0600 on Unix.
    ///
    /// # Errors
    /// `AlreadyExists` when there is something at the path; else what the system says.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn StoredFile>>;

    /// Opens an existing file for reading and appending.
    ///
    /// # Errors
    /// `NotFound` when there is none; else what the system says.
    fn open(&self, path: &Path) -> io::Result<Box<dyn StoredFile>>;

    /// Opens an existing file for reading; appending, cutting and syncing it are errors.
    ///
    /// # Errors
    /// `NotFound` when there is none; else what the system says.
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn StoredFile>>;

    /// Renames a file, over an existing one too.
    ///
    /// # Errors
    /// What the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Removes a file.
    ///
    /// # Errors
    /// `NotFound` when there is none; else what the system says.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Makes creations, renames and removals in a folder durable.
    ///
    /// # Errors
    /// What the system says.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// A file of a [`Storage`].
pub trait StoredFile: Debug + Send {
    /// One write call at the end of the file. Answers how many bytes went in, which may be fewer
    /// than were given.
    ///
    /// # Errors
    /// What the system says; some of the bytes may be in the file all the same.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Makes content and length durable.
    ///
    /// # Errors
    /// What the system says. Calling again after an error proves nothing (TR-48).
    fn sync(&mut self) -> io::Result<()>;

    /// Cuts the file, or extends it with zeros, to `length` bytes.
    ///
    /// # Errors
    /// What the system says.
    fn set_length(&mut self, length: u64) -> io::Result<()>;

    /// The file's length in bytes.
    ///
    /// # Errors
    /// What the system says.
    fn length(&self) -> io::Result<u64>;

    /// One read call at `offset`. Answers how many bytes were read; 0 at the end of the file.
    ///
    /// # Errors
    /// What the system says.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;
}

/// The file system of this machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

#[derive(Debug)]
struct DiskFile {
    file: File,
    #[cfg(windows)]
    path: std::path::PathBuf,
}

impl Disk {
    fn file(options: &mut OpenOptions, path: &Path) -> io::Result<Box<dyn StoredFile>> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::OpenOptionsExt;
            options.mode(0o600);
        }
        Ok(Box::new(DiskFile {
            file: options.open(path)?,
            #[cfg(windows)]
            path: path.to_path_buf(),
        }))
    }
}

impl Storage for Disk {
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        create_private_folder(path)
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn StoredFile>> {
        Self::file(
            OpenOptions::new().read(true).append(true).create_new(true),
            path,
        )
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn StoredFile>> {
        Self::file(OpenOptions::new().read(true).append(true), path)
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn StoredFile>> {
        Self::file(OpenOptions::new().read(true), path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        sync_folder(path)
    }
}

impl StoredFile for DiskFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        sync_file(&self.file)
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        // A handle opened for append can't move the end of a file on Windows.
        #[cfg(windows)]
        {
            let file = OpenOptions::new().write(true).open(&self.path)?;
            file.set_len(length)
        }
        #[cfg(not(windows))]
        {
            self.file.set_len(length)
        }
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        {
            use std::os::unix::fs::FileExt;
            self.file.read_at(into, offset)
        }
        #[cfg(windows)]
        {
            use std::os::windows::fs::FileExt;
            self.file.seek_read(into, offset)
        }
    }
}
