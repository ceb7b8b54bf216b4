//! What another host says of a session, read into our words (RS-06, RS-14).
//!
//! Guarantees: unknown members are ignored and a missing required one makes the whole snapshot
//! invalid, so nothing of it is believed; a host without snapshots is projected from its older
//! status, in which what is absent stays absent (RS-03).

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::snapshot::{Activity, Outcome, Phase, RuntimeState, TurnStatus};

/// A state as another host told it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(untagged)]
pub enum Observed {
    /// A snapshot with all that RS-04 asks for.
    Snapshot(RuntimeState),
    /// RS-14: a host without snapshots.
    Legacy(LegacyState),
}

impl Observed {
    /// The snapshot, when the host has them.
    pub fn snapshot(&self) -> Option<&RuntimeState> {
        match self {
            Self::Snapshot(state) => Some(state),
            Self::Legacy(_) => None,
        }
    }

    /// Which instance says it: the epoch, or a word for hosts without one.
    pub fn epoch(&self) -> &str {
        self.snapshot()
            .map_or("legacy", |state| state.runtime_epoch.as_str())
    }

    /// Jobs that have not exited, as far as it tells.
    pub fn background_jobs(&self) -> Option<u64> {
        match self {
            Self::Snapshot(state) => Some(state.background_jobs),
            Self::Legacy(state) => state.background_jobs,
        }
    }
}

/// RS-14: what a status without a snapshot tells. Exempt from RS-06 and from revisions; each read
/// replaces it as a whole.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct LegacyState {
    /// Always 0.
    pub schema_version: u32,
    /// `executing` or `idle`, from `running`: finishing can't be told from it.
    pub phase: LegacyPhase,
    /// A turn runs, or is ending.
    pub running: bool,
    /// A person is asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending_prompt: Option<bool>,
    /// Stop was asked for and has not taken effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel_requested: Option<bool>,
    /// Stop would do something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancellable: Option<bool>,
    /// Jobs that have not exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[specta(type = Option<f64>)]
    pub background_jobs: Option<u64>,
}

/// RS-14: the phases that an older status can tell apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum LegacyPhase {
    /// Nothing runs.
    Idle,
    /// A turn runs, or is ending.
    Executing,
}

/// RS-06: why a snapshot is not believed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the member {member} of a runtime state is missing or not what it must be")]
pub struct InvalidState {
    /// The first member that is wrong.
    pub member: &'static str,
}

impl InvalidState {
    fn of(member: &'static str) -> Self {
        Self { member }
    }
}

/// RS-06: reads a snapshot, after mapping what other hosts say: the phase `cancelling` is executing
/// with a Stop asked for, `recovery_required` is idle with something unresolved, and the activity
/// `waiting_input` is a question. `unresolved` and `outcome` are additions of ours, which another
/// host may leave out. A host that tells a `projectionEpoch` besides counts its revisions from 1 in
/// each of those, so both together are the epoch.
///
/// # Errors
/// The first member that is missing, of another type, or out of its bounds.
pub fn snapshot_of(value: &Value) -> Result<RuntimeState, InvalidState> {
    let object = value.as_object().ok_or(InvalidState::of("runtimeState"))?;
    let text = |member| text(object, member);
    let flag = |member| flag(object, member);
    let count = |member| count(object, member);
    let (phase, stopping, recovering) = match text("phase")? {
        "idle" => (Phase::Idle, false, false),
        "executing" => (Phase::Executing, false, false),
        "finishing" => (Phase::Finishing, false, false),
        "closed" => (Phase::Closed, false, false),
        "cancelling" => (Phase::Executing, true, false),
        "recovery_required" => (Phase::Idle, false, true),
        _ => return Err(InvalidState::of("phase")),
    };
    let (activity, waiting) = match text("activity")? {
        "" => (Activity::None, false),
        "streaming" => (Activity::Streaming, false),
        "thinking" => (Activity::Thinking, false),
        "waiting_input" => (Activity::None, true),
        _ => return Err(InvalidState::of("activity")),
    };
    let turn_status = match text("turnStatus")? {
        "" => TurnStatus::None,
        // A turn that is taken in, and one that waits for a person, have not ended.
        "in_progress" | "queued" | "waiting_user" => TurnStatus::InProgress,
        known @ ("completed" | "failed" | "cancelled" | "interrupted") => TurnStatus::of_end(known),
        _ => return Err(InvalidState::of("turnStatus")),
    };
    let outcome = match object.get("outcome").map(Value::as_str) {
        None | Some(Some("")) => Outcome::None,
        Some(Some("error")) => Outcome::Error,
        Some(Some("paused")) => Outcome::Paused,
        Some(Some("awaiting_delivery")) => Outcome::AwaitingDelivery,
        Some(_) => return Err(InvalidState::of("outcome")),
    };
    let unresolved = match object.get("unresolved") {
        None => 0,
        Some(_) => count("unresolved")?,
    };
    let state = RuntimeState {
        schema_version: u32::try_from(count("schemaVersion")?)
            .map_err(|_| InvalidState::of("schemaVersion"))?,
        runtime_epoch: epoch(object)?,
        revision: count("revision")?,
        phase,
        running: flag("running")?,
        turn_id: text("turnId")?.to_owned(),
        turn_status,
        turn_event_seq: count("turnEventSeq")?,
        pending_prompt: flag("pendingPrompt")? || waiting,
        cancel_requested: flag("cancelRequested")? || stopping,
        cancellable: flag("cancellable")?,
        background_jobs: count("backgroundJobs")?,
        activity,
        unresolved: unresolved.max(u64::from(recovering)),
        outcome,
    };
    if state.schema_version != 1 {
        return Err(InvalidState::of("schemaVersion"));
    }
    if state.runtime_epoch.is_empty() {
        return Err(InvalidState::of("runtimeEpoch"));
    }
    if !state.is_valid() {
        return Err(InvalidState::of("revision"));
    }
    Ok(state)
}

/// RS-14, RS-27: what `/status` tells: its snapshot where there is one, else its older members.
///
/// # Errors
/// A snapshot that is invalid, or a status without a `running` of the right type.
pub fn status_of(value: &Value) -> Result<Observed, InvalidState> {
    let object = value.as_object().ok_or(InvalidState::of("status"))?;
    if let Some(state) = object.get("runtimeState").filter(|state| !state.is_null()) {
        return snapshot_of(state).map(Observed::Snapshot);
    }
    let running = flag(object, "running")?;
    let optional = |member: &'static str| match object.get(member) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(InvalidState::of(member)),
    };
    Ok(Observed::Legacy(LegacyState {
        schema_version: 0,
        phase: if running {
            LegacyPhase::Executing
        } else {
            LegacyPhase::Idle
        },
        running,
        pending_prompt: optional("pendingPrompt")?,
        cancel_requested: optional("cancelRequested")?,
        cancellable: optional("cancellable")?,
        background_jobs: match object.get("backgroundJobs") {
            None | Some(Value::Null) => None,
            Some(_) => Some(count(object, "backgroundJobs")?),
        },
    }))
}

fn epoch(object: &Map<String, Value>) -> Result<String, InvalidState> {
    let runtime = text(object, "runtimeEpoch")?;
    Ok(match object.get("projectionEpoch").map(Value::as_str) {
        _ if runtime.is_empty() => String::new(),
        None | Some(Some("")) => runtime.to_owned(),
        Some(Some(projection)) => format!("{runtime}.{projection}"),
        Some(None) => return Err(InvalidState::of("projectionEpoch")),
    })
}

fn text<'a>(object: &'a Map<String, Value>, member: &'static str) -> Result<&'a str, InvalidState> {
    object
        .get(member)
        .and_then(Value::as_str)
        .ok_or(InvalidState::of(member))
}

fn flag(object: &Map<String, Value>, member: &'static str) -> Result<bool, InvalidState> {
    object
        .get(member)
        .and_then(Value::as_bool)
        .ok_or(InvalidState::of(member))
}

fn count(object: &Map<String, Value>, member: &'static str) -> Result<u64, InvalidState> {
    object
        .get(member)
        .and_then(Value::as_u64)
        .filter(|count| *count <= super::snapshot::MAX_REVISION)
        .ok_or(InvalidState::of(member))
}
