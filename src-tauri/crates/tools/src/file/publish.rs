//! The publication of a planned write.
//!
//! Guarantees: a reader sees the old content or the new, whole (C39); nothing is published over a
//! file that is no longer as it was planned against (TR-37); the result says "nothing was written"
//! only when that is so, and `effect_unknown` when it can't say; killed between any two steps, it
//! leaves what proves whether it published (`aftermath`). Owner, mode bits and, on Linux, extended
//! attributes are kept; other names of the same file (hard links) are not.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Component, Path};

use holdfast_domain::recovery::file::FileIntent;
use holdfast_domain::recovery::publication::PublishClaim;
use tokio_util::sync::CancellationToken;

use super::aftermath::identity_of;
use super::{attributes, claim};
use crate::context::Checkpoint;
use crate::digest::digest_of;
use crate::error::ToolError;
use crate::workspace::{Folder, Replace, Resolved, Workspace};

/// What a publication needs besides its plan.
#[derive(Debug)]
pub(crate) struct Publication<'a> {
    pub(crate) workspace: &'a Workspace,
    pub(crate) place: &'a Resolved,
    pub(crate) intent: &'a FileIntent,
    pub(crate) content: &'a [u8],
    /// What would change, for the result.
    pub(crate) diff: Option<&'a str>,
    pub(crate) attempt_id: &'a str,
    /// `<session>/effects`.
    pub(crate) effects_root: &'a Path,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) checkpoint: &'a Checkpoint,
}

impl Publication<'_> {
    /// Publishes. An error other than `EffectUnknown` means that the file was not touched.
    pub(crate) fn run(&self) -> Result<(), ToolError> {
        let given = &self.place.given;
        let name = self.place.relative.file_name().ok_or(ToolError::NotAFile {
            path: given.clone(),
        })?;
        // The path still means the same place: a link may have been put into it since.
        if self.workspace.resolve_for_writing(given)?.absolute != self.place.absolute {
            return Err(self.changed());
        }
        if self.intent.existed {
            self.workspace.open_parent(self.place)
        } else {
            self.make_parent()
        }
        .map_err(|error| match error.kind() {
            io::ErrorKind::NotFound if self.intent.existed => self.changed(),
            _ => self.workspace.explain(error, self.place),
        })
        .and_then(|folder| self.publish_in(&folder, name))
    }

    fn publish_in(&self, folder: &Folder, name: &OsStr) -> Result<(), ToolError> {
        let given = &self.place.given;
        let old = self.check_before(folder, name)?;
        self.step("before_temp")?;

        let (temporary, mut file) = Temporary::create(folder, self.attempt_id, old.is_some())
            .map_err(|error| ToolError::writing("creating a temporary file", given, error))?;
        self.step("after_create")?;
        file.write_all(self.content)
            .map_err(|error| ToolError::writing("writing the new content", given, error))?;
        if let Some(old) = &old {
            attributes::keep(old, &file).map_err(|error| {
                ToolError::writing("keeping owner, mode and attributes", given, error)
            })?;
        }
        self.step("after_temp")?;
        holdfast_files::sync_file(&file)
            .map_err(|error| ToolError::writing("syncing the new content", given, error))?;
        self.step("after_sync")?;

        let claim = self.claim(&file)?;
        self.checkpoint.reach("after_claim");
        drop((old, file));
        match self.put_in_place(folder, name, temporary) {
            Ok(()) => Ok(()),
            Err(Unpublished { error, temporary }) => {
                self.checkpoint.reach("before_withdrawal");
                if !matches!(error, ToolError::EffectUnknown { .. }) {
                    // Unmarked, it is open after a crash before the result: the safe side.
                    let _ = claim.withdraw();
                }
                drop(temporary);
                Err(error)
            }
        }?;
        self.checkpoint.reach("after_rename");
        folder.sync().map_err(|error| ToolError::EffectUnknown {
            path: given.clone(),
            reason: format!(
                "the new content is in place, but syncing the folder failed ({error}), so it may not outlive a power loss"
            ),
        })?;
        self.checkpoint.reach("after_folder_sync");
        Ok(())
    }

    /// From here on only the rename decides, and after a crash the claim tells which file to look
    /// for.
    fn claim(&self, file: &File) -> Result<claim::Won, ToolError> {
        let wanted = PublishClaim::Executor {
            attempt_id: self.attempt_id.to_owned(),
            identity: identity_of(file),
            bytes: self.content.len() as u64,
            diff: self.diff.map(str::to_owned),
        };
        let folder = self.effects_root.join(self.attempt_id);
        claim::claim(&folder, &wanted)
            .map_err(|error| {
                ToolError::writing("claiming the publication", &self.place.given, error)
            })?
            .ok_or_else(|| ToolError::PublicationFenced {
                path: self.place.given.clone(),
            })
    }

    fn put_in_place<'t>(
        &self,
        folder: &Folder,
        name: &OsStr,
        temporary: Temporary<'t>,
    ) -> Result<(), Unpublished<'t>> {
        // As close to the rename as it can be; another program's write in the instant between
        // would be replaced.
        let checked = if self.is_still_at(folder) {
            self.check_before(folder, name).map(drop)
        } else {
            Err(self.changed())
        };
        if let Err(error) = checked {
            return Err(Unpublished { error, temporary });
        }
        let replace = if self.intent.existed {
            Replace::Allowed
        } else {
            Replace::Refused
        };
        temporary
            .publish_as(name, replace)
            .map_err(|(temporary, error)| Unpublished {
                error: self.explain_rename(folder, name, error),
                temporary,
            })
    }

    /// Between steps a stop is still clean.
    fn step(&self, name: &str) -> Result<(), ToolError> {
        self.checkpoint.reach(name);
        if self.cancel.is_cancelled() {
            return Err(ToolError::Cancelled);
        }
        Ok(())
    }

    fn changed(&self) -> ToolError {
        ToolError::FileChanged {
            path: self.place.given.clone(),
        }
    }

    /// The folder that is held is still the one that the path names: else the write would succeed
    /// somewhere that nobody asked for.
    fn is_still_at(&self, folder: &Folder) -> bool {
        let parent = self.place.absolute.parent();
        parent.is_some_and(|parent| folder.is_at(parent))
    }

    /// The file is as it was planned against; gives it, when there is one.
    fn check_before(&self, folder: &Folder, name: &OsStr) -> Result<Option<File>, ToolError> {
        if !self.intent.existed {
            return if folder.has(name) {
                Err(self.changed())
            } else {
                Ok(None)
            };
        }
        let file = folder.file(Path::new(name)).map_err(|_| self.changed())?;
        let failed = |error| ToolError::reading("reading", &self.place.given, error);
        let meta = file.metadata().map_err(failed)?;
        if meta.is_file() && digest_of(&file).map_err(failed)? == self.intent.before {
            Ok(Some(file))
        } else {
            Err(self.changed())
        }
    }

    /// A rename that failed published nothing, except where the answer got lost (network file
    /// systems): so the file is looked at.
    fn explain_rename(&self, folder: &Folder, name: &OsStr, error: io::Error) -> ToolError {
        if self.intent.before != self.intent.after {
            match folder.file(Path::new(name)).and_then(digest_of) {
                Ok(now) if now == self.intent.after => {
                    return ToolError::EffectUnknown {
                        path: self.place.given.clone(),
                        reason: format!(
                            "publishing reported an error ({error}), yet the file has the new content"
                        ),
                    };
                }
                Ok(_) | Err(_) => {}
            }
        }
        if error.kind() == io::ErrorKind::AlreadyExists {
            return self.changed();
        }
        ToolError::writing("publishing the new content", &self.place.given, error)
    }

    /// Creates the missing folders, each from the one above. They stay if the write fails later.
    fn make_parent(&self) -> io::Result<Folder> {
        let mut at = self.workspace.folder().folder(Path::new(""))?;
        for part in self
            .place
            .relative
            .parent()
            .unwrap_or_else(|| Path::new(""))
            .components()
        {
            let Component::Normal(name) = part else {
                return Err(io::ErrorKind::CrossesDevices.into());
            };
            let name = Path::new(name);
            at = match at.folder(name) {
                Ok(folder) => folder,
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    at.make_folder(name.as_os_str())?;
                    at.sync()?;
                    at.folder(name)?
                }
                Err(error) => return Err(error),
            };
        }
        Ok(at)
    }
}

/// A publication that failed; its temporary file is still there.
struct Unpublished<'a> {
    error: ToolError,
    temporary: Temporary<'a>,
}

/// A temporary file that goes away unless it is published.
struct Temporary<'a> {
    folder: &'a Folder,
    name: OsString,
    published: bool,
}

impl<'a> Temporary<'a> {
    /// The name tells the attempt, so that what a crash leaves can be found.
    fn create(
        folder: &'a Folder,
        attempt_id: &str,
        is_replacing: bool,
    ) -> io::Result<(Self, File)> {
        let name = temporary_name(attempt_id);
        // Until the old file's mode is copied nobody else may read the new content.
        let file = folder.create(&name, if is_replacing { 0o600 } else { 0o666 })?;
        let temporary = Self {
            folder,
            name,
            published: false,
        };
        Ok((temporary, file))
    }

    fn publish_as(mut self, name: &OsStr, replace: Replace) -> Result<(), (Self, io::Error)> {
        match self.folder.rename(&self.name, name, replace) {
            Ok(()) => {
                self.published = true;
                Ok(())
            }
            Err(error) => Err((self, error)),
        }
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.published {
            // If this fails the file stays, under a name that says whose it is.
            let _ = self.folder.remove(&self.name);
        }
    }
}

/// Nobody else uses this name: it carries the attempt's id.
pub(crate) fn temporary_name(attempt_id: &str) -> OsString {
    let safe: String = attempt_id
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .take(32)
        .collect();
    OsString::from(format!(".holdfast-{safe}.tmp"))
}
