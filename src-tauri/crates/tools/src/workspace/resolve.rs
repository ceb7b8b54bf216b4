//! From a path as the model wrote it to a place beneath the root.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use super::{Folder, Workspace};
use crate::error::ToolError;

/// A place beneath the root. Opening it follows no link, so it is what was resolved or an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// As the model wrote it.
    pub(crate) given: String,
    /// Canonical and absolute.
    pub(crate) absolute: PathBuf,
    /// The same from the root; empty for the root itself.
    pub(crate) relative: PathBuf,
    /// Something is there.
    pub(crate) exists: bool,
}

impl Resolved {
    /// The canonical path as text: the scope of a file's effects.
    pub(crate) fn text(&self) -> String {
        self.absolute.to_string_lossy().into_owned()
    }

    /// The path from the root with `/`, for cards and results.
    pub(crate) fn shown(&self) -> String {
        slashed(&self.relative)
    }
}

/// A relative path with `/` on every system; `.` for an empty one.
pub(crate) fn slashed(relative: &Path) -> String {
    let parts: Vec<_> = relative
        .components()
        .map(|part| part.as_os_str().to_string_lossy())
        .collect();
    if parts.is_empty() {
        ".".to_owned()
    } else {
        parts.join("/")
    }
}

impl Workspace {
    /// Resolves a path for reading. What does not exist resolves too, with `exists` false.
    pub(crate) fn resolve(&self, given: &str) -> Result<Resolved, ToolError> {
        self.check_root()?;
        check_spelling(given)?;
        let (absolute, exists) = self.canonical(given)?;
        let Ok(relative) = absolute.strip_prefix(self.root()) else {
            return Err(ToolError::PathOutside {
                path: given.to_owned(),
            });
        };
        if absolute.to_str().is_none() {
            return Err(ToolError::PathInvalid {
                path: given.to_owned(),
                reason: "a link in it leads to a name that is not UTF-8",
            });
        }
        if self.is_forbidden(&absolute) {
            return Err(ToolError::PathProtected {
                path: given.to_owned(),
                what: "the program's own data",
            });
        }
        Ok(Resolved {
            given: given.to_owned(),
            relative: relative.to_path_buf(),
            absolute,
            exists,
        })
    }

    /// Resolves a path for writing: not the root, and nothing in `.git`.
    pub(crate) fn resolve_for_writing(&self, given: &str) -> Result<Resolved, ToolError> {
        let resolved = self.resolve(given)?;
        if resolved.relative.as_os_str().is_empty() || given.ends_with(['/', '\\']) {
            return Err(ToolError::NotAFile {
                path: given.to_owned(),
            });
        }
        if resolved.absolute.components().any(is_git) {
            return Err(ToolError::PathProtected {
                path: given.to_owned(),
                what: "git's own data, which can make git run programs",
            });
        }
        Ok(resolved)
    }

    /// The parent folder and the name of a place, opened without following links.
    pub(crate) fn open_parent(&self, place: &Resolved) -> io::Result<Folder> {
        self.folder()
            .folder(place.relative.parent().unwrap_or_else(|| Path::new("")))
    }

    /// Opens a place for reading, if it is a regular file with content of its own.
    pub(crate) fn open_file(&self, place: &Resolved) -> Result<fs::File, ToolError> {
        let file = self
            .folder()
            .file(&place.relative)
            .map_err(|error| self.explain(error, place))?;
        let meta = file
            .metadata()
            .map_err(|error| ToolError::reading("reading", &place.given, error))?;
        if !meta.is_file() || super::folder::is_virtual(&file) {
            return Err(ToolError::NotAFile {
                path: place.given.clone(),
            });
        }
        Ok(file)
    }

    /// What an error of an opening means to the caller.
    pub(crate) fn explain(&self, error: io::Error, place: &Resolved) -> ToolError {
        let path = place.given.clone();
        // A link came where none was when the path was resolved.
        if super::folder::is_link_refusal(&error) {
            return ToolError::PathOutside { path };
        }
        match error.kind() {
            io::ErrorKind::NotFound => ToolError::NotFound { path },
            io::ErrorKind::NotADirectory => ToolError::NotAFolder { path },
            _ => ToolError::reading("opening", &path, error),
        }
    }

    /// The folder at the root's path is still the one that was opened.
    fn check_root(&self) -> Result<(), ToolError> {
        if self.folder().is_at(self.root()) {
            Ok(())
        } else {
            Err(ToolError::WorkspaceMoved)
        }
    }

    /// Canonical path of the part that exists, with the rest added; and whether all of it exists.
    fn canonical(&self, given: &str) -> Result<(PathBuf, bool), ToolError> {
        let full = self.root().join(given);
        let mut existing = full.as_path();
        let mut rest = Vec::new();
        loop {
            match fs::canonicalize(existing) {
                Ok(canonical) => {
                    if !rest.is_empty() && !canonical.is_dir() {
                        return Err(self.outside_or(
                            &canonical,
                            ToolError::NotAFolder {
                                path: given.to_owned(),
                            },
                            given,
                        ));
                    }
                    let exists = rest.is_empty();
                    let path = rest
                        .iter()
                        .rev()
                        .fold(canonical, |path, name| path.join(name));
                    return Ok((path, exists));
                }
                Err(error)
                    if matches!(
                        error.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                    ) =>
                {
                    let is_link = fs::symlink_metadata(existing)
                        .is_ok_and(|meta| meta.file_type().is_symlink());
                    if is_link {
                        return Err(ToolError::LinkDangling {
                            path: given.to_owned(),
                        });
                    }
                }
                Err(error) => {
                    return Err(self.outside_or(
                        existing,
                        ToolError::reading("resolving the path", given, error),
                        given,
                    ));
                }
            }
            // `..` after something that is not there has no meaning that a link could not change.
            let (Some(name), Some(parent)) = (existing.file_name(), existing.parent()) else {
                return Err(ToolError::PathInvalid {
                    path: given.to_owned(),
                    reason: "it goes up (..) from a folder that does not exist",
                });
            };
            rest.push(name.to_owned());
            existing = parent;
        }
    }

    /// An error about a place outside tells nothing about that place.
    fn outside_or(&self, place: &Path, error: ToolError, given: &str) -> ToolError {
        if place.starts_with(self.root()) {
            error
        } else {
            ToolError::PathOutside {
                path: given.to_owned(),
            }
        }
    }
}

fn check_spelling(given: &str) -> Result<(), ToolError> {
    let wrong = |reason| {
        Err(ToolError::PathInvalid {
            path: given.to_owned(),
            reason,
        })
    };
    if given.is_empty() {
        return wrong("it is empty");
    }
    if given.contains('\0') {
        return wrong("it contains a NUL character");
    }
    // Streams (`a.txt:b`), devices (`NUL`, `COM1`) and names that Windows rewrites.
    #[cfg(windows)]
    for part in Path::new(given).components() {
        if let Component::Normal(name) = part {
            let name = name.to_string_lossy();
            let stem = name.split('.').next().unwrap_or_default().trim_end();
            let upper = stem.to_ascii_uppercase();
            let numbered = ["COM", "LPT"].iter().any(|device| {
                upper
                    .strip_prefix(device)
                    .is_some_and(|n| n.chars().count() == 1)
            });
            if name.contains(':') || name.ends_with(['.', ' ']) {
                return wrong("Windows reads that name as something else");
            }
            if numbered || ["CON", "PRN", "AUX", "NUL"].contains(&upper.as_str()) {
                return wrong("it names a device");
            }
        }
    }
    Ok(())
}

/// `.git` in every spelling that some file system takes for it.
fn is_git(part: Component<'_>) -> bool {
    let Component::Normal(name) = part else {
        return false;
    };
    // HFS+ ignores these characters in names.
    let name: String = name
        .to_string_lossy()
        .chars()
        .filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'))
        .collect();
    let name = name.trim_end_matches(['.', ' ']).to_lowercase();
    name == ".git" || name == "git~1"
}
