//! What a write left behind whose host died in the middle, and what that proves (TR-14, TR-17, C39).
//!
//! Guarantees: nothing is written to the target, and nothing of the evidence is removed before the
//! caller says that the outcome is durable; what was put in place is made durable before it is
//! called done.

use std::fs::File;
use std::io;
use std::path::Path;

use holdfast_domain::recovery::file::FileIntent;
use holdfast_domain::recovery::publication::{
    ANOTHER_BOOT, FileIdentity, Found, PublicationEvidence, PublishClaim, judge,
};

use super::claim;
use super::publish::temporary_name;
use crate::digest::digest_of;
use crate::error::ToolError;
use crate::outcome::ToolOutcome;
use crate::workspace::{Resolved, Workspace};

/// A write whose executor is gone, or will find that it may not publish any more.
#[derive(Debug)]
pub struct Interrupted<'a> {
    /// What it said before.
    pub intent: &'a FileIntent,
    /// The attempt.
    pub attempt_id: &'a str,
    /// `<session>/effects`.
    pub effects_root: &'a Path,
    /// The machine has not been started again since the attempt's start record.
    pub same_boot: bool,
}

impl Interrupted<'_> {
    /// Looks, and in the same boot first fences a publication that nobody has claimed. Blocking;
    /// the time of reading the file once.
    pub fn look(&self, workspace: &Workspace) -> PublicationEvidence {
        match self.judge(workspace) {
            Ok(evidence) => evidence,
            Err(error) => PublicationEvidence::Open {
                reason: format!("what the write left can't be read now ({error})"),
            },
        }
    }

    fn judge(&self, workspace: &Workspace) -> io::Result<PublicationEvidence> {
        let folder = self.effects_root.join(self.attempt_id);
        let mut claimed = claim::read(&folder)?;
        if claimed.is_none() {
            if !self.same_boot {
                return Ok(PublicationEvidence::Open {
                    reason: ANOTHER_BOOT.to_owned(),
                });
            }
            let void = PublishClaim::Void {
                attempt_id: self.attempt_id.to_owned(),
            };
            if claim::claim(&folder, &void)?.is_some() {
                return Ok(PublicationEvidence::Absent);
            }
            claimed = claim::read(&folder)?;
        }
        let Some(claimed) = claimed else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let (PublishClaim::Executor { attempt_id, .. } | PublishClaim::Void { attempt_id }) =
            &claimed.claim;
        if attempt_id != self.attempt_id {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the claim belongs to another attempt",
            ));
        }
        if claimed.alive {
            return Ok(PublicationEvidence::Open {
                reason: "the write is still under way in another process".to_owned(),
            });
        }
        let found = match claimed.claim {
            PublishClaim::Void { .. } => Found {
                target: None,
                temporary: false,
                satisfied: false,
                withdrawn: claimed.withdrawn,
                same_boot: self.same_boot,
            },
            PublishClaim::Executor { .. } => self.find(workspace, claimed.withdrawn)?,
        };
        Ok(judge(&claimed.claim, found))
    }

    fn find(&self, workspace: &Workspace, withdrawn: bool) -> io::Result<Found> {
        let place = self.place(workspace).map_err(io::Error::other)?;
        let mut found = Found {
            target: None,
            temporary: false,
            satisfied: false,
            withdrawn,
            same_boot: self.same_boot,
        };
        let parent = match workspace.open_parent(&place) {
            Ok(parent) => parent,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
            Err(error) => return Err(error),
        };
        found.temporary = parent.has(&temporary_name(self.attempt_id));
        let name = place.relative.file_name().unwrap_or_default();
        match parent.file(Path::new(name)) {
            Ok(file) => {
                found.target = identity_of(&file);
                found.satisfied =
                    file.metadata()?.is_file() && digest_of(&file)? == self.intent.after;
                // The executor may not have come to it.
                parent.sync()?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            // A link or a folder: not the file that was put there.
            Err(_) => {}
        }
        Ok(found)
    }

    fn place(&self, workspace: &Workspace) -> Result<Resolved, ToolError> {
        let place = workspace.resolve_for_writing(&self.intent.resolved_path)?;
        // A link now stands in the recorded path.
        if place.text() != self.intent.resolved_path {
            return Err(ToolError::PathOutside {
                path: self.intent.path.clone(),
            });
        }
        Ok(place)
    }

    /// Removes the temporary file, once the outcome is durable. `Ok(false)`: there is none.
    ///
    /// # Errors
    /// What the system says.
    pub fn remove_leftover(&self, workspace: &Workspace) -> Result<bool, ToolError> {
        let place = self.place(workspace)?;
        let name = temporary_name(self.attempt_id);
        let folder = match workspace.open_parent(&place) {
            Ok(folder) => folder,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(workspace.explain(error, &place)),
        };
        if !folder.has(&name) {
            return Ok(false);
        }
        folder.remove(&name).map_err(|error| {
            ToolError::writing("removing a temporary file", &self.intent.path, error)
        })?;
        Ok(true)
    }
}

/// The result of a write that is proven to be done: the words of [`ToolOutcome`] for a live one, and
/// what came after it.
pub fn finish_write(
    intent: &FileIntent,
    subject: &str,
    bytes: u64,
    diff: Option<String>,
    changed_since: bool,
) -> ToolOutcome {
    let mut text = done(intent, subject, bytes);
    if changed_since {
        text.push_str("[something else has changed the file since; read it again]\n");
    }
    let mut outcome = ToolOutcome::completed(text);
    outcome.diff = diff;
    outcome
}

/// What a write says when it is done.
pub(crate) fn done(intent: &FileIntent, subject: &str, bytes: u64) -> String {
    let verb = if intent.existed { "changed" } else { "created" };
    format!("{verb} {subject}, now {bytes} bytes\n")
}

/// Which file it is; `None` where the system does not say.
#[cfg(unix)]
pub(crate) fn identity_of(file: &File) -> Option<FileIdentity> {
    use std::os::unix::fs::MetadataExt;
    let meta = file.metadata().ok()?;
    let born = meta
        .created()
        .ok()
        .and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok())
        .and_then(|since| u64::try_from(since.as_nanos()).ok());
    Some(FileIdentity {
        device: meta.dev(),
        number: meta.ino(),
        born,
    })
}

/// The standard library has no stable identity of a file here: a write that was cut short between
/// its last step and its result stays unknown.
#[cfg(not(unix))]
pub(crate) fn identity_of(_file: &File) -> Option<FileIdentity> {
    None
}
