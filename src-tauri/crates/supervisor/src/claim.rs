//! The race for `start`: whoever creates it first decides whether the command runs.
//!
//! Guarantee: of all that claim, over all processes, exactly one wins; the file is complete from
//! its first moment. It is not synced: it must outlive the host, not the machine (supervisor.md).

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_domain::recovery::process::StartClaim;

use crate::error::SupervisorError;
use crate::folder::{START, create_new, read_checked};

/// How a claim went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// This claimant decides.
    Won,
    /// Somebody was first.
    Lost(StartClaim),
}

/// Claims the start as `void`: when won, the command never ran and never will. It proves
/// `not_started` only in the boot of the start record (TR-18).
///
/// # Errors
/// `supervisor_io`; `foreign_file` when an existing `start` can't be read.
pub fn claim_void(
    folder: &Path,
    attempt_id: &str,
    boot_id: &str,
    at: u64,
) -> Result<Claim, SupervisorError> {
    claim(
        folder,
        &StartClaim::Void {
            attempt_id: attempt_id.to_owned(),
            boot_id: boot_id.to_owned(),
            at,
        },
    )
}

/// The supervisor that claimed the start, by its process id for display; `None` before that, or when
/// the start is fenced, or can't be read now.
pub fn started_by(folder: &Path) -> Option<u32> {
    match read_claim(folder).ok()?? {
        StartClaim::Supervisor { pid, .. } => Some(pid),
        StartClaim::Void { .. } => None,
    }
}

/// Creates `start` with this content, or tells who did.
pub(crate) fn claim(folder: &Path, wanted: &StartClaim) -> Result<Claim, SupervisorError> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let draft = folder.join(format!(
        "start.{}.{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    ));
    let content = serde_json::to_vec(wanted)
        .map_err(|error| SupervisorError::io("writing a claim")(error.into()))?;
    create_new(&draft)
        .and_then(|mut file| file.write_all(&content))
        .map_err(SupervisorError::io("writing the claim for the start"))?;
    let linked = fs::hard_link(&draft, folder.join(START));
    // Left behind, a draft does no harm: it goes with the folder.
    let _ = fs::remove_file(&draft);
    match linked {
        Ok(()) => Ok(Claim::Won),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => match read_claim(folder)? {
            Some(first) => Ok(Claim::Lost(first)),
            None => Err(SupervisorError::io("reading the claim for the start")(
                error,
            )),
        },
        Err(error) => Err(SupervisorError::io("claiming the start")(error)),
    }
}

/// Who claimed the start, `None` when nobody has.
pub(crate) fn read_claim(folder: &Path) -> Result<Option<StartClaim>, SupervisorError> {
    let Some(content) = read_checked(folder, START, 4096)? else {
        return Ok(None);
    };
    serde_json::from_slice(&content)
        .map(Some)
        .map_err(|error| SupervisorError::ForeignFile {
            name: START.to_owned(),
            reason: format!("it can't be read ({error})"),
        })
}
