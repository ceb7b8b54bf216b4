//! Which recovery actions are admitted (TR-29, TR-30, TR-33, TR-34).
//!
//! Guarantee: each cause has its own code, checked in one order; in every unresolved state at
//! least one action is admitted (TR-24).

use serde::{Deserialize, Serialize};

use super::attempt::Attempt;

/// TR-29.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Look, execute nothing.
    Inspect,
    /// "It happened."
    Confirm,
    /// "No retry."
    Reject,
    /// Run it again behind a fence.
    Retry,
    /// "Go on without knowing."
    Dismiss,
}

/// TR-30: why an action is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// The session is closed.
    #[error("the session is closed; nothing was changed; open it again")]
    SessionClosed,
    /// The session is being switched.
    #[error("the session is being switched; nothing was changed; try again")]
    SessionSwitching,
    /// A turn runs.
    #[error("a turn is running; nothing was changed; wait for its end or stop it")]
    TurnRunning,
    /// Path, epoch or revision are not the present ones.
    #[error("recovery snapshot changed; refresh before resolving")]
    SnapshotChanged,
    /// No such attempt.
    #[error("this session has no such attempt; nothing was changed; refresh")]
    AttemptUnknown,
    /// It is resolved, or has a result.
    #[error("this attempt is resolved already; nothing was changed; refresh")]
    AttemptResolved,
    /// The id is not that of the latest inspection.
    #[error("inspect this exact attempt before resolving it")]
    NotInspected,
    /// Retry is off on this host.
    #[error("retry is disabled on this host; nothing was run")]
    RetryDisabled,
    /// Something of the attempt still runs.
    #[error("the attempt is still running; nothing was changed; stop it or wait for its end")]
    ExecutorAlive,
    /// The tool is gone.
    #[error("the tool is not available; nothing was run")]
    ToolUnavailable,
    /// Absence is not proven, or not fenced.
    #[error("it is not proven that the earlier attempt can no longer take effect; nothing was run")]
    NotFenced,
    /// The scope is another one now.
    #[error("the tool acts on another resource now; nothing was run")]
    SinkChanged,
    /// Tool or arguments are others now.
    #[error("the call is not the same any more; nothing was run")]
    RetryTargetChanged,
    /// The record could not be stored.
    #[error("the decision could not be stored; nothing was changed; free disk space and try again")]
    NotDurable,
}

impl Refusal {
    /// Stable code.
    pub fn code(self) -> &'static str {
        match self {
            Self::SessionClosed => "session_closed",
            Self::SessionSwitching => "session_switching",
            Self::TurnRunning => "turn_running",
            Self::SnapshotChanged => "snapshot_changed",
            Self::AttemptUnknown => "attempt_unknown",
            Self::AttemptResolved => "attempt_resolved",
            Self::NotInspected => "not_inspected",
            Self::RetryDisabled => "retry_disabled",
            Self::ExecutorAlive => "executor_alive",
            Self::ToolUnavailable => "tool_unavailable",
            Self::NotFenced => "not_fenced",
            Self::SinkChanged => "sink_changed",
            Self::RetryTargetChanged => "retry_target_changed",
            Self::NotDurable => "not_durable",
        }
    }
}

/// TR-29: what a person asks for, with the snapshot that it was seen on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActionRequest {
    /// `session-id:<32 hex>`.
    pub session_path: String,
    /// Epoch of the snapshot.
    pub runtime_epoch: String,
    /// Revision of the snapshot.
    pub revision: String,
    /// The attempt.
    pub attempt_id: String,
    /// Id of the latest inspection; may be empty for inspect and dismiss.
    #[serde(default)]
    pub inspection_id: String,
    /// What to do.
    pub action: Action,
}

/// The present facts that admission looks at.
#[derive(Debug, Clone, Copy)]
pub struct Situation<'a> {
    /// The session is closed.
    pub closed: bool,
    /// The session is being switched.
    pub switching: bool,
    /// A turn runs or finishes.
    pub turn_running: bool,
    /// Present path.
    pub session_path: &'a str,
    /// Present epoch.
    pub runtime_epoch: &'a str,
    /// Present revision.
    pub revision: &'a str,
    /// The attempt, if the session has it.
    pub attempt: Option<&'a Attempt>,
    /// This host's executors own it now, or something of it is known to live.
    pub executor_alive: bool,
    /// `REASONIX_TOOL_RECOVERY_RETRY=1` on this host (TR-35).
    pub retry_enabled: bool,
}

/// TR-30.
///
/// # Errors
/// The first cause of a refusal, in the contract's order.
pub fn admit(request: &ActionRequest, now: &Situation<'_>) -> Result<(), Refusal> {
    let dismissal = request.action == Action::Dismiss;
    if now.closed {
        return Err(Refusal::SessionClosed);
    }
    if now.switching {
        return Err(Refusal::SessionSwitching);
    }
    // TR-34: a dismissal is admitted during a turn.
    if now.turn_running && !dismissal {
        return Err(Refusal::TurnRunning);
    }
    let same = |asked: &str, present: &str| !asked.is_empty() && asked == present;
    // TR-34: a looping model changes the revision with each blocked call.
    let same_revision = dismissal || same(&request.revision, now.revision);
    if !same(&request.session_path, now.session_path)
        || !same(&request.runtime_epoch, now.runtime_epoch)
        || !same_revision
    {
        return Err(Refusal::SnapshotChanged);
    }
    let attempt = now.attempt.ok_or(Refusal::AttemptUnknown)?;
    if !attempt.is_unresolved(false) {
        return Err(Refusal::AttemptResolved);
    }
    match request.action {
        Action::Inspect => {}
        Action::Confirm | Action::Reject | Action::Retry => {
            let inspected = attempt
                .inspection
                .as_ref()
                .is_some_and(|latest| same(&request.inspection_id, &latest.inspection_id));
            if !inspected {
                return Err(Refusal::NotInspected);
            }
        }
        Action::Dismiss => {}
    }
    if request.action == Action::Retry && !now.retry_enabled {
        return Err(Refusal::RetryDisabled);
    }
    if now.executor_alive && request.action != Action::Inspect {
        return Err(Refusal::ExecutorAlive);
    }
    Ok(())
}
