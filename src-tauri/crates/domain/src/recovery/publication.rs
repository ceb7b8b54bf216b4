//! The evidence that a file's publication leaves for the time after the host's death, and what it
//! proves (TR-14, TR-17, C39).
//!
//! The content of a file never proves who wrote it. What does is bound to the attempt: before the
//! rename the executor claims the publication with the identity of its temporary file, under a name
//! that nobody else uses. A rename keeps that identity and takes the name away, so afterwards
//! exactly one of two is so: the temporary file is still there, or the target is that very file.
//!
//! Guarantees: a claim that a host won as `void` means that the attempt never published and never
//! will; everything that is not proven either way is open.

use serde::{Deserialize, Serialize};

/// Which file it is, whatever its name: a rename keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileIdentity {
    /// Device.
    pub device: u64,
    /// Number on that device. It may be used again once the file is gone.
    pub number: u64,
    /// When the file was created, in nanoseconds since the Unix epoch, where the file system knows
    /// it: so a number that is used again is told apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub born: Option<u64>,
}

/// The file `publish` in an attempt's effect folder: whoever creates it first decides whether the
/// attempt may publish. Not synced: it must outlive the host, not the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum PublishClaim {
    /// The executor: the new content is complete and synced under the temporary name, and the
    /// rename comes next. The file is locked until the executor is done.
    Executor {
        /// The attempt.
        attempt_id: String,
        /// The temporary file; `None` where the system gives files no identity.
        identity: Option<FileIdentity>,
        /// Bytes of the new content.
        bytes: u64,
        /// The change, for the result.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        diff: Option<String>,
    },
    /// A recovering host: the attempt did not publish and can't any more.
    Void {
        /// The attempt.
        attempt_id: String,
    },
}

/// What a look at an attempt's claim, its temporary file and its target found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PublicationEvidence {
    /// The new content was never in place, and nothing is left that could still put it there.
    Absent,
    /// This attempt put its file in place, durable by now.
    Done {
        /// Bytes of the new content.
        bytes: u64,
        /// The change.
        diff: Option<String>,
        /// It is the same file, with a content that something else has written since.
        changed_since: bool,
    },
    /// Neither can be proven.
    Open {
        /// Why, in words for a person.
        reason: String,
    },
}

/// What was found in the folder of the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The file under the target's name.
    pub target: Option<FileIdentity>,
    /// A file is there under the attempt's temporary name.
    pub temporary: bool,
    /// The target has the content that was to be published.
    pub satisfied: bool,
    /// The executor said, before it took its temporary file away, that it publishes nothing.
    pub withdrawn: bool,
    /// The machine has not been started again since the attempt began.
    pub same_boot: bool,
}

/// What a claim proves, once the executor is gone. That the target is the attempt's file is proof at
/// any time; that it never was one, only in the same boot, since a power loss may take back a rename
/// that others have seen.
pub fn judge(claim: &PublishClaim, found: Found) -> PublicationEvidence {
    let open = |reason: &str| PublicationEvidence::Open {
        reason: reason.to_owned(),
    };
    let (identity, bytes, diff) = match claim {
        PublishClaim::Executor {
            identity,
            bytes,
            diff,
            ..
        } => (*identity, *bytes, diff),
        PublishClaim::Void { .. } if found.same_boot => return PublicationEvidence::Absent,
        PublishClaim::Void { .. } => return open(ANOTHER_BOOT),
    };
    let is_ours = |other: Option<FileIdentity>| identity.is_some() && identity == other;
    // Without a time of birth the number alone may have been used again by another file.
    let is_certain = identity.is_some_and(|identity| identity.born.is_some()) || found.satisfied;
    if is_ours(found.target) && is_certain {
        return PublicationEvidence::Done {
            bytes,
            diff: diff.clone(),
            changed_since: !found.satisfied,
        };
    }
    if !found.same_boot {
        return open(ANOTHER_BOOT);
    }
    if found.withdrawn {
        return PublicationEvidence::Absent;
    }
    // A rename takes the temporary name away; where it had to be done by a second name, the target
    // tells.
    let is_target_another = match identity {
        Some(_) => !is_ours(found.target),
        None => !found.satisfied,
    };
    if found.temporary && is_target_another {
        PublicationEvidence::Absent
    } else {
        open(
            "the program ended while it put the new content in place, and something else has \
             changed the file or the folder since",
        )
    }
}

/// Why nothing can be concluded from what is not there.
pub const ANOTHER_BOOT: &str =
    "the machine was started again since; whether the new content was put in place can't be proven";
