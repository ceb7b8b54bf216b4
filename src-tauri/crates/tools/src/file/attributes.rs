//! What a replaced file keeps besides its name: owner, mode bits and, on Linux, extended attributes
//! (access control lists among them).
//!
//! Guarantee: what a person set is kept, or the write fails before it publishes. What the system
//! derives from the content, or takes away when a file is written to, is not carried over.

use std::fs::File;
use std::io;

/// Gives `new` what `old` has.
pub(crate) fn keep(old: &File, new: &File) -> io::Result<()> {
    keep_owner_and_mode(old, new)?;
    keep_extended(old, new)
}

#[cfg(unix)]
fn keep_owner_and_mode(old: &File, new: &File) -> io::Result<()> {
    use std::os::unix::fs::MetadataExt;
    let (was, is) = (old.metadata()?, new.metadata()?);
    if (was.uid(), was.gid()) != (is.uid(), is.gid()) {
        let uid = (was.uid() != is.uid()).then_some(was.uid());
        let gid = (was.gid() != is.gid()).then_some(was.gid());
        std::os::unix::fs::fchown(new, uid, gid)?;
    }
    new.set_permissions(was.permissions())
}

#[cfg(not(unix))]
fn keep_owner_and_mode(old: &File, new: &File) -> io::Result<()> {
    new.set_permissions(old.metadata()?.permissions())
}

#[cfg(target_os = "linux")]
fn keep_extended(old: &File, new: &File) -> io::Result<()> {
    use rustix::fs::XattrFlags;
    use rustix::io::Errno;
    /// The kernel's bound for a list of names and for a value.
    const LIMIT: usize = 64 * 1024;
    let mut names = vec![0; LIMIT];
    let length = match rustix::fs::flistxattr(old, names.as_mut_slice()) {
        Ok(length) => length,
        // The file system has none.
        Err(Errno::NOTSUP | Errno::NOSYS) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    names.truncate(length);
    let mut value = vec![0; LIMIT];
    for name in names
        .split(|byte| *byte == 0)
        .filter(|name| !name.is_empty())
    {
        // Rights and seals of the old content: writing to a file takes them away too.
        if [
            &b"security.capability"[..],
            b"security.ima",
            b"security.evm",
        ]
        .contains(&name)
        {
            continue;
        }
        let by_person = name.starts_with(b"user.") || name == b"system.posix_acl_access";
        let copied = rustix::fs::fgetxattr(old, name, value.as_mut_slice()).and_then(|length| {
            let value = value.get(..length).unwrap_or_default();
            rustix::fs::fsetxattr(new, name, value, XattrFlags::empty())
        });
        match copied {
            Err(error) if by_person => return Err(error.into()),
            // A label of the system that only the system may set.
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn keep_extended(_old: &File, _new: &File) -> io::Result<()> {
    Ok(())
}
