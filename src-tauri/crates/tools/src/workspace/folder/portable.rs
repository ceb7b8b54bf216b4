//! Folders by path, for systems without descriptors to folders.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Component, Path, PathBuf};

use super::{Entry, Replace};

/// A folder whose components were looked at.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
}

impl Folder {
    /// A canonical path.
    pub(crate) fn root(path: &Path) -> io::Result<Self> {
        fs::read_dir(path)?;
        Ok(Self {
            path: path.to_path_buf(),
        })
    }

    /// Whether the folder at `path` is this one.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        self.path == path && fs::canonicalize(path).is_ok_and(|now| now == self.path)
    }

    /// A folder beneath this one; no component may be a link.
    pub(crate) fn folder(&self, relative: &Path) -> io::Result<Self> {
        let path = self.looked_at(relative)?;
        if fs::symlink_metadata(&path)?.is_dir() {
            Ok(Self { path })
        } else {
            Err(io::ErrorKind::NotADirectory.into())
        }
    }

    /// Opens a file beneath this one for reading; no component may be a link.
    pub(crate) fn file(&self, relative: &Path) -> io::Result<File> {
        let path = self.looked_at(relative)?;
        if fs::symlink_metadata(&path)?.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        File::open(path)
    }

    /// Creates a file that must not exist.
    pub(crate) fn create(&self, name: &OsStr, _mode: u32) -> io::Result<File> {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(self.path.join(name))
    }

    /// Creates a folder; one that exists is fine.
    pub(crate) fn make_folder(&self, name: &OsStr) -> io::Result<()> {
        match fs::create_dir(self.path.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Renames within this folder.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr, replace: Replace) -> io::Result<()> {
        let (from, to) = (self.path.join(from), self.path.join(to));
        match replace {
            Replace::Allowed => rename_patiently(&from, &to),
            Replace::Refused => {
                fs::hard_link(&from, to)?;
                // The content is published; a second name that stays is untidy, not wrong.
                let _ = fs::remove_file(from);
                Ok(())
            }
        }
    }

    /// Removes a file.
    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    /// Makes creations and renames in this folder durable, as far as the system can.
    pub(crate) fn sync(&self) -> io::Result<()> {
        holdfast_files::sync_folder(&self.path)
    }

    /// Whether a name is taken, by a link too.
    pub(crate) fn has(&self, name: &OsStr) -> bool {
        fs::symlink_metadata(self.path.join(name)).is_ok()
    }

    /// All names, unsorted, at most `limit`.
    pub(crate) fn entries(&self, limit: usize) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(&self.path)?.take(limit) {
            let entry = entry?;
            let (mark, size) = match entry.metadata() {
                Ok(meta) if meta.file_type().is_symlink() => ("@", None),
                Ok(meta) if meta.is_dir() => ("/", None),
                Ok(meta) if meta.is_file() => ("", Some(meta.len())),
                Ok(_) | Err(_) => ("=", None),
            };
            entries.push(Entry {
                name: entry.file_name().to_string_lossy().into_owned(),
                mark,
                size,
            });
        }
        Ok(entries)
    }

    fn looked_at(&self, relative: &Path) -> io::Result<PathBuf> {
        let mut path = self.path.clone();
        for part in relative.components() {
            match part {
                Component::Normal(name) => path.push(name),
                Component::CurDir => continue,
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(io::ErrorKind::CrossesDevices.into());
                }
            }
            if fs::symlink_metadata(&path)?.file_type().is_symlink() {
                return Err(io::ErrorKind::CrossesDevices.into());
            }
        }
        Ok(path)
    }
}

/// On Windows a scanner or an indexer may have the target open for a moment.
fn rename_patiently(from: &Path, to: &Path) -> io::Result<()> {
    const TRIES: u32 = 10;
    let mut tries = 1;
    loop {
        match fs::rename(from, to) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied && tries < TRIES => {
                std::thread::sleep(std::time::Duration::from_millis(20));
                tries += 1;
            }
            done => return done,
        }
    }
}

/// The error of an opening that met a link, or would have left the folder.
pub(crate) fn is_link_refusal(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::CrossesDevices
}

/// The standard library has no stable identity of a folder here; paths are compared.
pub(crate) fn identity(_path: &Path) -> Option<(u64, u64)> {
    None
}

/// Only Linux has files that look regular and are a view of the system.
pub(crate) fn is_virtual(_file: &File) -> bool {
    false
}
