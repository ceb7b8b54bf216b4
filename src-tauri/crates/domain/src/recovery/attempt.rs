//! One attempt with all that the log says of it.
//!
//! Guarantees: at most one result, at most one resolution; a person's resolution is never
//! overwritten (TR-10, TR-38).

use serde::{Deserialize, Serialize};

use super::file::FileIntent;
use super::identity::Identity;
use super::lifecycle::AttemptState;
use super::process::Straggler;
use crate::transcript::record::{JobStarted, ResultSource, ToolResult};

/// TR-09: the words by which a failed tool says that its effect is open.
pub const EFFECT_UNKNOWN: &str = "effect_unknown";

/// What a person said of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum Resolution {
    /// The effect happened.
    Confirm,
    /// No retry; proves nothing and lifts nothing (TR-33).
    Reject,
    /// Go on without knowing (TR-34).
    Dismiss,
}

/// TR-32: what an inspection found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum InspectionState {
    /// The effect is there.
    Present,
    /// The file has the content that was to be written.
    PostconditionSatisfied,
    /// The effect is not there, and the earlier attempt can no longer commit.
    AbsentFenced,
    /// Nothing is proven.
    Unknown,
}

/// TR-32: one inspection. The latest one counts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inspection {
    /// 16 random bytes, hex; fresh for every inspection.
    pub inspection_id: String,
    /// What was found.
    pub state: InspectionState,
    /// What it rests on.
    pub evidence: Evidence,
    /// What that proves and what not, in words for a person.
    pub summary: String,
}

/// TR-25: what an inspection rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// A file's digests. `now` is empty when it does not exist.
    File {
        /// Path for display.
        path: String,
        /// Digest before.
        before: String,
        /// Digest that was to be written.
        after: String,
        /// Digest at the inspection; `null` when it could not be read.
        now: Option<String>,
    },
    /// A process tree.
    Process {
        /// Something of it lives.
        alive: bool,
        /// `self`, `stop`, …; empty when not known.
        ended_by: String,
        /// Exit code, when known.
        exit: Option<i32>,
        /// Processes that are still alive.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stragglers: Vec<Straggler>,
    },
    /// Nothing to look at.
    None,
}

/// An attempt as the log tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct Attempt {
    /// TR-06.
    pub identity: Identity,
    /// The tool has no effect.
    pub read_only: bool,
    /// TR-07.
    pub idempotency_key: String,
    /// What it acts on, for display.
    pub subject: String,
    /// File evidence.
    pub file: Option<FileIntent>,
    /// A supervisor runs it.
    pub supervised: bool,
    /// What is known.
    pub state: AttemptState,
    /// Place of its receipt in the log.
    pub receipt_seq: u64,
    /// Boot of the start record; empty before the start.
    pub boot_id: String,
    /// Unix milliseconds of the start record.
    pub started_at: Option<u64>,
    /// Unix milliseconds of the result or of the end.
    pub finished_at: Option<u64>,
    /// Unix milliseconds of a person's resolution.
    pub resolved_at: Option<u64>,
    /// The real result.
    pub result: Option<ToolResult>,
    /// Place of the result in the log; 0 without one.
    pub result_seq: u64,
    /// A real result that came after a person's resolution.
    pub late: Option<ToolResult>,
    /// Words about the effect.
    pub effect_summary: String,
    /// A person's word, `reject` included.
    pub resolution: Option<Resolution>,
    /// Surface of the resolution.
    pub resolution_source: String,
    /// The latest inspection.
    pub inspection: Option<Inspection>,
    /// The attempt that took its place.
    pub superseded_by: Option<String>,
    /// The attempt whose place it took (TR-36).
    pub retry_of: Option<String>,
    /// Processes that may still work on it.
    pub stragglers: Vec<Straggler>,
    /// Processes of it live on as a job (TR-50).
    pub job: bool,
    /// The command itself went on as a job, and its call was answered with that (TR-50).
    pub background: Option<JobStarted>,
    /// A host found it open after a restart.
    pub found_open: bool,
    /// Place in the log of the restart that found it open; 0 when none did.
    pub found_seq: u64,
    /// A whole turn ended behind that restart while its end was known (TR-46).
    pub first_turn_over: bool,
    /// Its call was asked about as a repetition, and a person allowed it (TR-46).
    pub allowed_repeat: bool,
    /// The model was told, in place of a result, that the outcome is unknown (TR-15).
    pub synthetic_sent: bool,
    /// What was learnt after that has been told too.
    pub told: bool,
}

impl Attempt {
    /// An attempt with its receipt only.
    pub fn new(identity: Identity, read_only: bool, receipt_seq: u64) -> Self {
        Self {
            idempotency_key: identity.idempotency_key(),
            identity,
            read_only,
            subject: String::new(),
            file: None,
            supervised: false,
            state: AttemptState::Pending,
            receipt_seq,
            boot_id: String::new(),
            started_at: None,
            finished_at: None,
            resolved_at: None,
            result: None,
            result_seq: 0,
            late: None,
            effect_summary: String::new(),
            resolution: None,
            resolution_source: String::new(),
            inspection: None,
            superseded_by: None,
            retry_of: None,
            stragglers: Vec::new(),
            job: false,
            background: None,
            found_open: false,
            found_seq: 0,
            first_turn_over: false,
            allowed_repeat: false,
            synthetic_sent: false,
            told: false,
        }
    }

    /// "Unresolved" (Words of the contract): what the barrier stands on. `in_flight` is what this
    /// host's executors own now.
    pub fn is_unresolved(&self, in_flight: bool) -> bool {
        let open = self.state.is_open()
            || (self.state == AttemptState::Failed && self.effect_summary == EFFECT_UNKNOWN);
        !self.read_only && self.superseded_by.is_none() && !in_flight && open
    }

    /// The result was found after a restart.
    pub fn is_recovered(&self) -> bool {
        self.result
            .as_ref()
            .is_some_and(|result| result.source == ResultSource::Recovered)
    }
}
