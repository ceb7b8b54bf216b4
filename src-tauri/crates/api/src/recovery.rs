//! The recovery snapshot on the wire (TR-25…TR-28).

use holdfast_domain::canonical;
use holdfast_domain::recovery::attempt::{Attempt, Evidence, InspectionState, Resolution};
use holdfast_domain::recovery::identity::Identity;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::transcript::record::ResultSource;
pub use holdfast_domain::transcript::session::Statistics;
use serde::{Deserialize, Serialize};

/// TR-25.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct ToolRecoverySnapshot {
    /// Always false.
    pub silent: bool,
    /// TR-28.
    pub statistics: Statistics,
    /// `session-id:<32 hex>`.
    pub session_path: String,
    /// Epoch of the runtime state.
    pub runtime_epoch: String,
    /// TR-26; 64 hex digits.
    pub revision: String,
    /// Unresolved attempts, newest first; after an inspection also the inspected one.
    pub calls: Vec<CallRecord>,
    /// TR-35: the host that owns the session was started with `REASONIX_TOOL_RECOVERY_RETRY=1`. When
    /// it was not, nothing offers a retry.
    pub retry_enabled: bool,
    /// TR-34; absent means that the host can't.
    #[serde(default)]
    pub dismiss_enabled: bool,
}

/// Whether a retry of an attempt would be admitted, as far as the host knows without looking anywhere
/// (TR-35, TR-36). Additive; a host that doesn't say it leaves it out.
///
/// For a person: with [`ToolRecoverySnapshot::retry_enabled`] false there is no retry at all. With it
/// true the retry is offered when `allowed`, and otherwise shown disabled with `reason`. What is
/// allowed here is looked at once more when it is asked for, and may still be refused with its code.
/// That a turn runs, and that something of the attempt still lives, is not said here: the first is in
/// the runtime state, the second in the evidence of the inspection.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, specta::Type)]
pub struct RetryHint {
    /// Nothing that the host knows speaks against it.
    pub allowed: bool,
    /// Else why, the code with which it would be refused: `not_inspected`, `retry_disabled`,
    /// `tool_unavailable`, `not_fenced`, `mode_read_only` or `recovery_required`; empty when allowed.
    pub code: String,
    /// The same in words; empty when allowed.
    pub reason: String,
}

/// TR-25: an attempt, snake_case as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
pub struct CallRecord {
    /// TR-06.
    pub identity: Identity,
    /// TR-12.
    pub state: AttemptState,
    /// The tool has no effect.
    pub read_only: bool,
    /// Stored arguments; only in the reply to an inspection (TR-27).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<serde_json::Value>,
    /// TR-07.
    pub idempotency_key: String,
    /// What it acts on, for display: a path, never a command's text.
    pub subject: String,
    /// Unix milliseconds.
    #[specta(type = Option<f64>)]
    pub started_at: Option<u64>,
    /// Unix milliseconds.
    #[specta(type = Option<f64>)]
    pub finished_at: Option<u64>,
    /// Unix milliseconds.
    #[specta(type = Option<f64>)]
    pub resolved_at: Option<u64>,
    /// SHA-256 (hex) of the result text.
    pub result_digest: Option<String>,
    /// `live` or `recovered`.
    pub result_source: Option<ResultSource>,
    /// Words about the effect.
    pub effect_summary: String,
    /// A person's word.
    pub resolution: Option<Resolution>,
    /// Surface through which it came.
    pub resolution_source: String,
    /// Latest inspection.
    pub inspection_id: String,
    /// What it found.
    pub inspection_state: Option<InspectionState>,
    /// What it rests on.
    pub inspection_evidence: Option<Evidence>,
    /// What the evidence proves and what not.
    pub inspection_summary: String,
    /// The attempt that took its place.
    pub superseded_by: Option<String>,
    /// Whether it may be run again, and why not. Absent from hosts that don't say it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryHint>,
}

impl CallRecord {
    /// An attempt without its arguments (TR-27). The subject of a command is its text, and so an
    /// argument: it is left out.
    pub fn of(attempt: &Attempt) -> Self {
        let subject = match attempt.file {
            Some(_) => attempt.subject.clone(),
            None => String::new(),
        };
        let inspection = attempt.inspection.as_ref();
        Self {
            identity: attempt.identity.clone(),
            state: attempt.state,
            read_only: attempt.read_only,
            arguments: None,
            idempotency_key: attempt.idempotency_key.clone(),
            subject,
            started_at: attempt.started_at,
            finished_at: attempt.finished_at,
            resolved_at: attempt.resolved_at,
            result_digest: attempt.result.as_ref().map(|result| result.digest.clone()),
            result_source: attempt.result.as_ref().map(|result| result.source),
            effect_summary: attempt.effect_summary.clone(),
            resolution: attempt.resolution,
            resolution_source: attempt.resolution_source.clone(),
            inspection_id: inspection
                .map(|i| i.inspection_id.clone())
                .unwrap_or_default(),
            inspection_state: inspection.map(|i| i.state),
            inspection_evidence: inspection.map(|i| i.evidence.clone()),
            inspection_summary: inspection.map(|i| i.summary.clone()).unwrap_or_default(),
            superseded_by: attempt.superseded_by.clone(),
            retry: None,
        }
    }
}

impl ToolRecoverySnapshot {
    /// TR-26: the same view with its revision: SHA-256 of the canonical view with `revision` empty
    /// and arguments removed.
    pub fn sealed(mut self) -> Self {
        self.revision.clear();
        let mut bare = self.clone();
        for call in &mut bare.calls {
            call.arguments = None;
        }
        self.revision = canonical::digest(&bare);
        self
    }
}
