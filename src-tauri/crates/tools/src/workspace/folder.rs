//! A folder that is held open: what is done in it can't be redirected by a link.
//!
//! On Unix a folder is a descriptor, and every step is relative to one. On Linux `openat2` resolves
//! beneath it in one call; elsewhere, or where that call is not allowed, each component is opened
//! by itself. Elsewhere than on Unix a folder is a path, and each component is looked at before use:
//! that is careful, and not proof against a race.

#[cfg(unix)]
#[path = "folder/unix.rs"]
mod system;
#[cfg(not(unix))]
#[path = "folder/portable.rs"]
mod system;

pub(crate) use system::{Folder, identity, is_link_refusal, is_virtual};

/// Whether a rename may replace what is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Replace {
    /// The target is replaced.
    Allowed,
    /// The target must not exist.
    Refused,
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    /// Name, with what is not UTF-8 replaced.
    pub(crate) name: String,
    /// `/` for folders, `@` for links, empty for files, `=` for anything else.
    pub(crate) mark: &'static str,
    /// Bytes, for files.
    pub(crate) size: Option<u64>,
}
