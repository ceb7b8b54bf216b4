//! The claim for a publication: whoever creates it first decides whether the attempt may publish.
//!
//! Guarantees: of an executor and a recovering host exactly one wins; the claim is complete from its
//! first moment, and locked as long as its executor works. It is not synced: it must outlive the
//! host, not the machine.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_domain::recovery::publication::PublishClaim;

/// Bytes of a claim; its largest part is a diff.
const LIMIT: u64 = 1024 * 1024;
/// How often a lock is tried, 5 ms apart: a process that is just being started holds every
/// descriptor of its parent for a moment.
const LOCK_TRIES: u32 = 40;

/// An executor's claim that was won. Dropping it ends the executor's time.
#[derive(Debug)]
pub(crate) struct Won {
    folder: PathBuf,
    /// Locked.
    _file: File,
}

impl Won {
    /// Says that nothing is published, before the temporary file goes.
    pub(crate) fn withdraw(&self) -> io::Result<()> {
        create_new(&self.folder.join("withdrawn")).map(drop)
    }
}

/// Claims the publication; `None` when somebody was first.
pub(crate) fn claim(folder: &Path, wanted: &PublishClaim) -> io::Result<Option<Won>> {
    holdfast_files::create_private_folder(folder)?;
    let mut unique = std::process::id().to_string();
    if matches!(wanted, PublishClaim::Void { .. }) {
        unique.push_str("-void");
    }
    let draft = folder.join(format!("publish.{unique}"));
    // Of an earlier try that died here.
    let _ = fs::remove_file(&draft);
    let mut file = create_new(&draft)?;
    file.write_all(&serde_json::to_vec(wanted)?)?;
    file.lock()?;
    let linked = fs::hard_link(&draft, folder.join("publish"));
    // Left behind, a draft does no harm: it goes with the folder.
    let _ = fs::remove_file(&draft);
    match linked {
        Ok(()) => Ok(Some(Won {
            folder: folder.to_path_buf(),
            _file: file,
        })),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(None),
        Err(error) => Err(error),
    }
}

/// A claim as a recovering host finds it.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) claim: PublishClaim,
    /// Its executor still works.
    pub(crate) alive: bool,
    /// Its executor took it back.
    pub(crate) withdrawn: bool,
}

/// Reads the claim; `None` when there is none. Waits for 200 ms at most for its lock.
///
/// # Errors
/// When it can't be read, is not this user's private file, or is no claim.
pub(crate) fn read(folder: &Path) -> io::Result<Option<Claimed>> {
    let mut options = OpenOptions::new();
    options.read(true);
    private(&mut options);
    let file = match options.open(folder.join("publish")) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    check_private(&file)?;
    let alive = is_locked(&file)?;
    let mut content = Vec::new();
    (&file).take(LIMIT).read_to_end(&mut content)?;
    Ok(Some(Claimed {
        claim: serde_json::from_slice(&content)?,
        alive,
        withdrawn: folder.join("withdrawn").exists(),
    }))
}

fn is_locked(file: &File) -> io::Result<bool> {
    for left in (0..LOCK_TRIES).rev() {
        match file.try_lock_shared() {
            Ok(()) => return file.unlock().map(|()| false),
            Err(TryLockError::WouldBlock) if left > 0 => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(true)
}

fn create_new(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    private(&mut options);
    options.open(path)
}

#[cfg(unix)]
fn private(options: &mut OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let bits = i32::try_from(flags.bits()).unwrap_or_default();
    options.mode(0o600).custom_flags(bits);
}

#[cfg(not(unix))]
fn private(_options: &mut OpenOptions) {}

#[cfg(unix)]
fn check_private(file: &File) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let meta = file.metadata()?;
    let is_own = meta.uid() == rustix::process::geteuid().as_raw();
    if meta.is_file() && is_own && meta.mode() & 0o077 == 0 {
        Ok(())
    } else {
        Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            "the claim is not this user's private file",
        ))
    }
}

/// The profile folder's access list keeps others out.
#[cfg(not(unix))]
fn check_private(_file: &File) -> io::Result<()> {
    Ok(())
}
