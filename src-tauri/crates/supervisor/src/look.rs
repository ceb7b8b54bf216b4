//! Recovery's look at an effect folder (TR-18): what is known of a command after its host died.
//!
//! Guarantees: the order of the steps makes each answer true at the moment it is given. The lock is
//! looked at before the receipt, since a supervisor writes the receipt before it lets go of the
//! lock; `start` is read before the lock, since it takes the lock before it claims the start.

use std::path::Path;

use holdfast_domain::recovery::process::{ExitReceipt, ProcessEvidence, StartClaim};

use crate::claim::{Claim, claim_void, read_claim};
use crate::error::SupervisorError;
use crate::folder::{Liveness, liveness};
use crate::identity::{boot_id, now, stragglers};
use crate::receipt::{lives_on, read_end, read_receipt, verify_output};

/// What the folder says at one moment, before anything is concluded.
pub(crate) enum Sight {
    /// A receipt.
    Exited { receipt: ExitReceipt, held: bool },
    /// A supervisor lives and there is no receipt; its pid when it has claimed the start.
    Running { pid: Option<u32> },
    /// Nobody lives, no receipt, and nobody has claimed the start: a supervisor may still come.
    Unclaimed,
    /// The start is fenced, in that boot.
    Void { boot_id: String },
    /// It was started, nobody lives, and there is no receipt; whether it could have outlived its
    /// host.
    Lost { survives_host: bool },
    /// A file is not what its owner left there, and nobody lives.
    Refused { reason: String },
}

/// One reading of the folder's files, in the order that makes it true.
pub(crate) fn sight(
    folder: &Path,
    attempt_id: &str,
    argument_digest: &str,
) -> Result<Sight, SupervisorError> {
    let start = read_claim(folder);
    let held = liveness(folder)? == Liveness::Held;
    match read_receipt(folder, attempt_id, argument_digest) {
        Ok(Some(receipt)) => return Ok(Sight::Exited { receipt, held }),
        Ok(None) => {}
        Err(error) if !held && refuses(&error) => {
            return Ok(Sight::Refused {
                reason: error.to_string(),
            });
        }
        Err(error) if refuses(&error) => {}
        Err(error) => return Err(error),
    }
    let start = match start {
        Ok(start) => start,
        Err(error) if refuses(&error) && !held => {
            return Ok(Sight::Refused {
                reason: error.to_string(),
            });
        }
        Err(error) if refuses(&error) => None,
        Err(error) => return Err(error),
    };
    let foreign = |claimed: &str| claimed != attempt_id;
    Ok(match start {
        Some(StartClaim::Supervisor { attempt_id, .. } | StartClaim::Void { attempt_id, .. })
            if foreign(&attempt_id) && !held =>
        {
            Sight::Refused {
                reason: "the claim for the start is another attempt's".to_owned(),
            }
        }
        // A fenced supervisor may hold the lock for the moment until it has seen that it lost.
        Some(StartClaim::Void { boot_id, .. }) => Sight::Void { boot_id },
        Some(StartClaim::Supervisor { pid, .. }) if held => Sight::Running { pid: Some(pid) },
        Some(StartClaim::Supervisor { survives_host, .. }) => Sight::Lost { survives_host },
        None if held => Sight::Running { pid: None },
        None => Sight::Unclaimed,
    })
}

/// Looks at an attempt's effect folder. With `fence`, a start that nobody has claimed is claimed as
/// void when `boot_of_start_record` is this boot: so "not started" is proven, not guessed. Without
/// it an unclaimed start is answered as lost.
///
/// # Errors
/// `supervisor_io`; `unsupported_platform` when there is a folder where commands are not supported.
pub fn look(
    folder: &Path,
    attempt_id: &str,
    argument_digest: &str,
    boot_of_start_record: &str,
    fence: bool,
) -> Result<ProcessEvidence, SupervisorError> {
    if !std::fs::exists(folder).map_err(SupervisorError::io("looking for the effect folder"))? {
        return Ok(ProcessEvidence::NoFolder);
    }
    let lost = |reason: &str| {
        Ok(ProcessEvidence::Lost {
            reason: reason.to_owned(),
            stragglers: stragglers(attempt_id)?,
        })
    };
    loop {
        return match sight(folder, attempt_id, argument_digest)? {
            Sight::Exited { receipt, held } => {
                let alive = lingers(folder, attempt_id, &receipt, held);
                let output_incomplete = match verify_output(folder, &receipt) {
                    Ok(whole) => !whole,
                    Err(error) if refuses(&error) => true,
                    Err(error) => return Err(error),
                };
                Ok(ProcessEvidence::Exited {
                    receipt,
                    output_incomplete,
                    alive,
                })
            }
            Sight::Running { pid } => Ok(ProcessEvidence::Running {
                pid: pid.unwrap_or(0),
            }),
            Sight::Void { boot_id } if boot_id == boot_of_start_record => {
                Ok(ProcessEvidence::Fenced)
            }
            Sight::Void { .. } => lost(
                "the start was fenced in another boot than the attempt's, which proves nothing",
            ),
            Sight::Unclaimed if boot_id()? != boot_of_start_record => {
                lost("the machine was started again and there is no exit receipt")
            }
            Sight::Unclaimed if fence => {
                match claim_void(folder, attempt_id, boot_of_start_record, now())? {
                    Claim::Won => Ok(ProcessEvidence::Fenced),
                    // The supervisor, or another look, was first: what it did decides.
                    Claim::Lost(_) => continue,
                }
            }
            Sight::Unclaimed => {
                lost("nobody has claimed the start, and nothing keeps a supervisor from doing so")
            }
            Sight::Lost { survives_host } => lost(words_of_loss(survives_host)),
            Sight::Refused { reason } => lost(&reason),
        };
    }
}

/// Whether something of an attempt is in its supervisor's hands now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// A supervisor lives and has given no receipt.
    Running,
    /// The receipt is given, and the supervisor stays with what lives on.
    Lingering,
    /// No supervisor works on it.
    Absent,
}

/// A cheap look at who works on an attempt: reads no output and fences nothing.
///
/// # Errors
/// `supervisor_io`.
pub fn presence(
    folder: &Path,
    attempt_id: &str,
    argument_digest: &str,
) -> Result<Presence, SupervisorError> {
    if !std::fs::exists(folder).map_err(SupervisorError::io("looking for the effect folder"))? {
        return Ok(Presence::Absent);
    }
    Ok(match sight(folder, attempt_id, argument_digest)? {
        Sight::Running { .. } => Presence::Running,
        Sight::Exited { receipt, held } if lingers(folder, attempt_id, &receipt, held) => {
            Presence::Lingering
        }
        Sight::Exited { .. }
        | Sight::Unclaimed
        | Sight::Void { .. }
        | Sight::Lost { .. }
        | Sight::Refused { .. } => Presence::Absent,
    })
}

fn lingers(folder: &Path, attempt_id: &str, receipt: &ExitReceipt, held: bool) -> bool {
    held && lives_on(receipt) && !matches!(read_end(folder, attempt_id), Ok(Some(_)))
}

/// Why there is no receipt.
pub(crate) fn words_of_loss(survives_host: bool) -> &'static str {
    if survives_host {
        "its supervisor was killed before it could leave a receipt"
    } else {
        "it could not outlive the program that ran it, whose job object denies breaking away, and \
         there is no receipt"
    }
}

/// Whether an error says that a file is not to be believed, rather than that it can't be read now.
fn refuses(error: &SupervisorError) -> bool {
    match error {
        SupervisorError::ForeignFile { .. } | SupervisorError::ForeignReceipt { .. } => true,
        SupervisorError::UnsupportedPlatform
        | SupervisorError::Io { .. }
        | SupervisorError::RequestRefused { .. }
        | SupervisorError::FolderExists
        | SupervisorError::BinaryMissing { .. }
        | SupervisorError::AlreadySupervised
        | SupervisorError::StartLost
        | SupervisorError::HostGone
        | SupervisorError::StoppedBeforeStart
        | SupervisorError::StillRunning
        | SupervisorError::Unconfined { .. }
        | SupervisorError::RuntimeFolder { .. } => false,
    }
}
