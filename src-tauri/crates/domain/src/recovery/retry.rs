//! Running an attempt again behind a fence (TR-35, TR-36): what must be proven, what may be foreseen
//! without a look, and the records by which the new attempt takes the old one's place.
//!
//! Guarantees: nothing is run again unless it is proven, now, that the earlier attempt had no effect
//! and can no longer have one, or both the record and the tool only read; the retry has the key of
//! the original and the stored arguments, and nothing of a client's.

use super::admission::Refusal;
use super::attempt::{Attempt, InspectionState};
use super::barrier::{self, InFlight};
use super::identity::Identity;
use crate::transcript::record::{Receipt, Record, Superseded, ToolStarted};
use crate::transcript::session::Session;

/// TR-37: what a verifier says of an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presence {
    /// It is there.
    Present,
    /// It is not there. That alone is no fence.
    Absent,
    /// Nothing is proven.
    Unknown,
}

impl Presence {
    /// TR-32: as an inspection tells it. An absence that is not fenced proves nothing: the earlier
    /// attempt may still take effect.
    pub fn as_inspected(self, fenced: bool) -> InspectionState {
        match (self, fenced) {
            (Self::Present, _) => InspectionState::Present,
            (Self::Absent, true) => InspectionState::AbsentFenced,
            (Self::Absent, false) | (Self::Unknown, _) => InspectionState::Unknown,
        }
    }
}

/// What the tool and its verifier say now, for [`admit`].
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The tool only reads.
    pub read_only: bool,
    /// Of the effect of the earlier attempt.
    pub presence: Presence,
    /// The earlier attempt can no longer take effect.
    pub fenced: bool,
    /// What the stored arguments act on now; `None` when that can't be told.
    pub scope: Option<&'a str>,
    /// The tool's name after aliases and the digest of the arguments as they would run now; `None`
    /// when the checks before a start refuse them, which is said with the refusal's own code.
    pub call: Option<(&'a str, &'a str)>,
}

/// TR-36, the causes of TR-30 that need a look, in their order. `target` is `None` when the tool is
/// gone. To be asked behind [`super::admission::admit`].
///
/// # Errors
/// The first cause.
pub fn admit(attempt: &Attempt, target: Option<Target<'_>>) -> Result<(), Refusal> {
    let target = target.ok_or(Refusal::ToolUnavailable)?;
    let only_reads = attempt.read_only && target.read_only;
    let proven = target.presence == Presence::Absent && target.fenced;
    if !only_reads && !proven {
        return Err(Refusal::NotFenced);
    }
    if target.scope != Some(attempt.identity.resource_scope.as_str()) {
        return Err(Refusal::SinkChanged);
    }
    match target.call {
        Some((tool, digest))
            if tool != attempt.identity.canonical_tool
                || digest != attempt.identity.argument_digest =>
        {
            Err(Refusal::RetryTargetChanged)
        }
        Some(_) | None => Ok(()),
    }
}

/// What a host knows without a look, for [`foresee`].
#[derive(Debug, Clone, Copy)]
pub struct Outlook<'a> {
    /// TR-35: the host's switch.
    pub enabled: bool,
    /// The host has the tool.
    pub tool_known: bool,
    /// The session is in a mode that lets nothing change.
    pub mode_read_only: bool,
    /// What this host's executors own now.
    pub in_flight: &'a InFlight,
}

/// Why a retry would be refused now, as far as that is known without looking anywhere, as code and
/// words; `None` when nothing speaks against it. A function of the log and of the host's settings
/// alone, so that two reads of an unchanged session are identical (TR-26). The retry itself looks
/// again.
pub fn foresee(
    session: &Session,
    attempt: &Attempt,
    now: &Outlook<'_>,
) -> Option<(&'static str, String)> {
    let refused = |refusal: Refusal| Some((refusal.code(), refusal.to_string()));
    let Some(inspection) = &attempt.inspection else {
        return refused(Refusal::NotInspected);
    };
    if !now.enabled {
        return refused(Refusal::RetryDisabled);
    }
    if !now.tool_known {
        return refused(Refusal::ToolUnavailable);
    }
    if inspection.state != InspectionState::AbsentFenced {
        return refused(Refusal::NotFenced);
    }
    if now.mode_read_only {
        return Some((MODE_READ_ONLY, mode_read_only_text().to_owned()));
    }
    let own = attempt.identity.attempt_id.as_str();
    barrier::refuses(session.attempts(), now.in_flight, Some(own))
        .map(|other| (RECOVERY_REQUIRED, blocked_text(other)))
}

/// Code of a retry that the session's mode refuses.
pub const MODE_READ_ONLY: &str = "mode_read_only";
/// Code of a retry that another unresolved attempt refuses (TR-05 (2)).
pub const RECOVERY_REQUIRED: &str = "recovery_required";

/// Words of [`MODE_READ_ONLY`].
pub fn mode_read_only_text() -> &'static str {
    "the session is in read-only mode, and a retry may change something; nothing was run; choose \
     another mode first"
}

/// Words of [`RECOVERY_REQUIRED`].
pub fn blocked_text(other: &Attempt) -> String {
    format!(
        "the outcome of another call is unknown (attempt {}, {}); nothing was run; resolve that one \
         first",
        other.identity.attempt_id, other.identity.canonical_tool
    )
}

/// TR-36: the identity of the attempt that takes the place of `original`: the same call of the same
/// turn, with fresh ids. `fresh_call` and `fresh_attempt` are 32 hex digits each.
pub fn identity(original: &Identity, fresh_call: &str, fresh_attempt: String) -> Identity {
    Identity {
        call_id: format!("retry_{fresh_call}"),
        attempt_id: fresh_attempt,
        ..original.clone()
    }
}

/// TR-05 (8)…(10): receipt, `superseded_by` of the original, start record, in this order and for one
/// write. `receipt` is that of the new attempt.
pub fn records(original: &Attempt, receipt: Receipt, boot_id: &str) -> Vec<Record> {
    let by = receipt.identity.attempt_id.clone();
    vec![
        // TR-07: a retry has the key of what it repeats.
        Receipt {
            idempotency_key: original.idempotency_key.clone(),
            ..receipt
        }
        .into(),
        Superseded {
            attempt_id: original.identity.attempt_id.clone(),
            by: by.clone(),
        }
        .into(),
        ToolStarted {
            attempt_id: by,
            boot_id: boot_id.to_owned(),
        }
        .into(),
    ]
}
