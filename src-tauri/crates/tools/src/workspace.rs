//! The jail of the file tools: which paths they may touch, and how a path becomes a file.
//!
//! Guarantees: a path is resolved once, links included, to a canonical path beneath the root; that
//! path is then opened from the root's descriptor without following any link, so that a link put
//! there in between is refused, not followed. The program's data is never read or written; `.git`
//! is never written, since much in it makes git run programs (hooks, config, attributes, links to
//! other repositories).

mod folder;
mod resolve;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::ToolError;

pub(crate) use folder::{Folder, Replace};
pub(crate) use resolve::{Resolved, slashed};

/// A folder that a person opened, and the only one that file tools touch. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Workspace(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    root: PathBuf,
    folder: Folder,
    forbidden: Vec<Forbidden>,
}

/// The program's own data, by path and, where the system has it, by identity: a bind mount gives
/// the same folder another path.
#[derive(Debug)]
struct Forbidden {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl Workspace {
    /// Opens a folder. `forbidden` is the program's own data: refused for reading too, since it
    /// holds tokens.
    ///
    /// # Errors
    /// `workspace_invalid` when it is no folder, can't be opened, has a path that is not UTF-8, or
    /// lies in the program's own data.
    pub fn open(root: &Path, forbidden: Vec<PathBuf>) -> Result<Self, ToolError> {
        let invalid = |reason: String| ToolError::WorkspaceInvalid {
            path: root.display().to_string(),
            reason,
        };
        let canonical = fs::canonicalize(root).map_err(|error| invalid(error.to_string()))?;
        if canonical.to_str().is_none() {
            return Err(invalid("its path is not UTF-8".to_owned()));
        }
        if !canonical.is_dir() {
            return Err(invalid("it is not a folder".to_owned()));
        }
        let folder = Folder::root(&canonical).map_err(|error| invalid(error.to_string()))?;
        let forbidden = forbidden.iter().map(|path| Forbidden::new(path)).collect();
        let workspace = Self(Arc::new(Inner {
            root: canonical,
            folder,
            forbidden,
        }));
        if workspace.is_forbidden(workspace.root()) {
            return Err(invalid("it belongs to the program's own data".to_owned()));
        }
        Ok(workspace)
    }

    /// The canonical root.
    pub fn root(&self) -> &Path {
        &self.0.root
    }

    pub(crate) fn folder(&self) -> &Folder {
        &self.0.folder
    }

    /// The program's own data, which commands in the sandbox don't see either.
    pub(crate) fn forbidden_paths(&self) -> Vec<PathBuf> {
        self.0
            .forbidden
            .iter()
            .map(|forbidden| forbidden.path.clone())
            .collect()
    }

    /// Whether a canonical path is in the program's own data.
    pub(crate) fn is_forbidden(&self, path: &Path) -> bool {
        self.0.forbidden.iter().any(|forbidden| {
            is_beneath(path, &forbidden.path)
                || forbidden.identity.is_some_and(|identity| {
                    path.ancestors()
                        .take_while(|ancestor| ancestor.starts_with(self.root()))
                        .any(|ancestor| folder::identity(ancestor) == Some(identity))
                })
        })
    }
}

impl Forbidden {
    fn new(path: &Path) -> Self {
        // It may not exist yet: the part that does is made canonical, the rest is kept.
        let mut rest = Vec::new();
        let mut existing = path;
        let canonical = loop {
            if let Ok(canonical) = fs::canonicalize(existing) {
                break canonical;
            }
            match (existing.parent(), existing.file_name()) {
                (Some(parent), Some(name)) => {
                    rest.push(name);
                    existing = parent;
                }
                _ => break PathBuf::from(existing),
            }
        };
        let path = rest
            .iter()
            .rev()
            .fold(canonical, |path, name| path.join(name));
        let identity = folder::identity(&path);
        Self { path, identity }
    }
}

/// `path` is `base` or beneath it. Where file systems commonly ignore case, so does this.
fn is_beneath(path: &Path, base: &Path) -> bool {
    if cfg!(any(windows, target_os = "macos")) {
        let fold = |path: &Path| PathBuf::from(path.to_string_lossy().to_lowercase());
        fold(path).starts_with(fold(base))
    } else {
        path.starts_with(base)
    }
}
