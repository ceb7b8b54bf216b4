//! Folders by descriptor.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, RenameFlags};

use super::{Entry, Replace};

const FOLDER: OFlags = OFlags::RDONLY
    .union(OFlags::DIRECTORY)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC);
/// A pipe or a device must not block the opening.
const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// An open folder.
#[derive(Debug)]
pub(crate) struct Folder {
    descriptor: OwnedFd,
}

impl Folder {
    /// Opens a canonical path.
    pub(crate) fn root(path: &Path) -> io::Result<Self> {
        let descriptor = rustix::fs::open(path, FOLDER, Mode::empty())?;
        Ok(Self { descriptor })
    }

    /// Whether the folder at `path` is this one.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let held = self.descriptor.try_clone().map(File::from);
        held.and_then(|folder| folder.metadata())
            .is_ok_and(|meta| identity(path) == Some((meta.dev(), meta.ino())))
    }

    /// Opens a folder beneath this one; no component may be a link.
    pub(crate) fn folder(&self, relative: &Path) -> io::Result<Self> {
        let descriptor = self.open(relative, FOLDER)?;
        Ok(Self { descriptor })
    }

    /// Opens a file beneath this one for reading; no component may be a link.
    pub(crate) fn file(&self, relative: &Path) -> io::Result<File> {
        self.open(relative, FILE).map(File::from)
    }

    /// Creates a file that must not exist, with `mode` less the umask.
    pub(crate) fn create(&self, name: &OsStr, mode: u32) -> io::Result<File> {
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode as _);
        Ok(rustix::fs::openat(&self.descriptor, name, flags, mode)?.into())
    }

    /// Creates a folder; one that exists is fine.
    pub(crate) fn make_folder(&self, name: &OsStr) -> io::Result<()> {
        match rustix::fs::mkdirat(&self.descriptor, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Renames within this folder.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr, replace: Replace) -> io::Result<()> {
        match replace {
            Replace::Allowed => {
                rustix::fs::renameat(&self.descriptor, from, &self.descriptor, to)?;
            }
            Replace::Refused => self.rename_to_free(from, to)?,
        }
        Ok(())
    }

    #[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
    fn rename_to_free(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let at = &self.descriptor;
        match rustix::fs::renameat_with(at, from, at, to, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(()),
            // Some file systems can't; a hard link is the same promise.
            Err(
                rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS | rustix::io::Errno::NOTSUP,
            ) => self.link_to_free(from, to),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
    fn rename_to_free(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        self.link_to_free(from, to)
    }

    fn link_to_free(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        let at = &self.descriptor;
        rustix::fs::linkat(at, from, at, to, AtFlags::empty())?;
        // The content is published; a second name that stays is untidy, not wrong.
        let _ = self.remove(from);
        Ok(())
    }

    /// Removes a file.
    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(
            &self.descriptor,
            name,
            AtFlags::empty(),
        )?)
    }

    /// Makes creations and renames in this folder durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        holdfast_files::sync_open_folder(&self.descriptor)
    }

    /// Whether a name is taken, by a link too.
    pub(crate) fn has(&self, name: &OsStr) -> bool {
        rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    /// All names, unsorted, at most `limit`.
    pub(crate) fn entries(&self, limit: usize) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in Dir::read_from(&self.descriptor)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if entries.len() == limit {
                break;
            }
            let stat = rustix::fs::statat(&self.descriptor, name, AtFlags::SYMLINK_NOFOLLOW);
            let kind = stat.map(|s| (FileType::from_raw_mode(s.st_mode), s.st_size));
            let (mark, size) = match kind {
                Ok((FileType::RegularFile, size)) => ("", u64::try_from(size).ok()),
                Ok((FileType::Directory, _)) => ("/", None),
                Ok((FileType::Symlink, _)) => ("@", None),
                Ok(_) | Err(_) => ("=", None),
            };
            entries.push(Entry {
                name: name.to_string_lossy().into_owned(),
                mark,
                size,
            });
        }
        Ok(entries)
    }

    fn open(&self, relative: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        #[cfg(target_os = "linux")]
        {
            use rustix::fs::ResolveFlags;
            use rustix::io::Errno;
            let resolve =
                ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_SYMLINKS;
            let path = if relative.as_os_str().is_empty() {
                Path::new(".")
            } else {
                relative
            };
            // EAGAIN: a rename elsewhere made the kernel unsure that it stayed beneath.
            for _ in 0..16 {
                let at = &self.descriptor;
                match rustix::fs::openat2(at, path, flags, Mode::empty(), resolve) {
                    Ok(descriptor) => return Ok(descriptor),
                    Err(Errno::AGAIN) => {}
                    Err(Errno::NOSYS | Errno::PERM) => break,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        self.walk(relative, flags)
    }

    /// Component by component, none of them a link.
    fn walk(&self, relative: &Path, flags: OFlags) -> io::Result<OwnedFd> {
        let mut parts: Vec<&OsStr> = Vec::new();
        for part in relative.components() {
            match part {
                Component::Normal(name) => parts.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(io::ErrorKind::CrossesDevices.into());
                }
            }
        }
        let last = parts.pop().unwrap_or_else(|| OsStr::new("."));
        let mut at = rustix::io::dup(&self.descriptor)?;
        for name in parts {
            at = rustix::fs::openat(&at, name, FOLDER, Mode::empty())?;
        }
        Ok(rustix::fs::openat(&at, last, flags, Mode::empty())?)
    }
}

/// The error of an opening that met a link, or would have left the folder.
pub(crate) fn is_link_refusal(error: &io::Error) -> bool {
    use rustix::io::Errno;
    error.kind() == io::ErrorKind::CrossesDevices
        || Errno::from_io_error(error) == Some(Errno::LOOP)
}

/// Device and inode of a path.
pub(crate) fn identity(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// A file of /proc or /sys: it looks regular and is a view of the system, of this program's own
/// environment among others.
#[cfg(target_os = "linux")]
pub(crate) fn is_virtual(file: &File) -> bool {
    const PROC: u64 = 0x9fa0;
    const SYS: u64 = 0x6265_6572;
    rustix::fs::fstatfs(file).is_ok_and(|stat| [PROC, SYS].contains(&(stat.f_type as u64)))
}

/// Only Linux has such files.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_virtual(_file: &File) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The walk that other systems use keeps the same promise as `openat2`.
    #[test]
    fn the_walk_by_components_follows_no_link() {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir_all(place.path().join("root/inner")).unwrap();
        fs::write(place.path().join("secret"), "secret").unwrap();
        fs::write(place.path().join("root/inner/file"), "inside").unwrap();
        std::os::unix::fs::symlink(place.path(), place.path().join("root/out")).unwrap();
        std::os::unix::fs::symlink("inner", place.path().join("root/in")).unwrap();
        let root = Folder::root(&place.path().join("root")).unwrap();

        let mut text = String::new();
        let file = root.walk(Path::new("inner/file"), FILE).unwrap();
        io::Read::read_to_string(&mut File::from(file), &mut text).unwrap();
        assert_eq!(text, "inside");
        for path in [
            "out/secret",
            "in/file",
            "../secret",
            "inner/../../secret",
            "/etc/passwd",
        ] {
            assert!(root.walk(Path::new(path), FILE).is_err(), "{path}");
        }
    }
}
