//! The transcript on the wire, and what hangs on its tool calls.

use serde::{Deserialize, Serialize};

use crate::history::KeptEffect;

/// One element of the transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptItem {
    /// Place in the log; a tool has that of its proposal, a retry its own.
    #[specta(type = f64)]
    pub seq: u64,
    /// `user`, `assistant`, `tool`, `note`; `compacted`, where a summary (`text`) stands for all
    /// before it in the model's view; `rewound`, where messages were taken back.
    pub kind: String,
    /// Text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The model's reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// A call and what became of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<ToolView>,
    /// The turn; empty for notes.
    pub turn_id: String,
    /// Unix milliseconds.
    #[specta(type = f64)]
    pub at: u64,
    /// The model's message was cut short.
    #[serde(default)]
    pub partial: bool,
    /// Where messages were taken back: what they did and what stays done.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptEffect>,
}

/// A call and what became of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct ToolView {
    /// Our id of the call.
    pub id: String,
    /// Tool name.
    pub name: String,
    /// The value that runs or ran; the raw text when it is no JSON object (TR-04).
    pub args: serde_json::Value,
    /// The attempt's state (TR-12), or `proposed`, or `in_flight`; `not_started` when refused.
    pub state: String,
    /// Why a refused call was not started: its code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The tool has no effect.
    pub read_only: bool,
    /// `live`, `recovered`, `synthetic`; absent without a result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_source: Option<String>,
    /// Result text; empty without a result. A synthetic one is not shown as output.
    pub output: String,
    /// Something of the output is left out; `GET /output` has it.
    pub truncated: bool,
    /// The attempt; empty without one.
    pub attempt_id: String,
    /// The attempt that took this one's place: a person had it run again. It is another tool of the
    /// transcript, and the state of this one says no more than what was known before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<String>,
    /// The attempt whose place this one took (TR-36). No model sees such a call or its result; what
    /// came of it is told in a note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<String>,
    /// TR-50: the command went on as a job, and the model was told so in place of its end: `model`,
    /// the call asked for it, or `person`. State, output and exit are its real ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<String>,
    /// Words about the effect.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub effect_summary: String,
    /// Diff of a file change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Exit code of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Milliseconds from start to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[specta(type = Option<f64>)]
    pub duration_ms: Option<u64>,
    /// Unix milliseconds of the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[specta(type = Option<f64>)]
    pub started_at: Option<u64>,
}

/// `GET /transcript/page`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(default, deny_unknown_fields)]
pub struct PageQuery {
    /// Selects the session.
    pub session: Option<String>,
    /// `before` of an earlier page; the newest page without it.
    #[specta(type = Option<f64>)]
    pub before: Option<u64>,
    /// Items, 1…500; 100 without it.
    #[specta(type = Option<f64>)]
    pub limit: Option<usize>,
}

/// A page, newest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
pub struct TranscriptPage {
    /// Items, newest first.
    pub items: Vec<TranscriptItem>,
    /// Cursor of the next older page; `null` at the beginning.
    #[specta(type = Option<f64>)]
    pub before: Option<u64>,
}

/// `GET /transcript/snapshot`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct TranscriptSnapshot {
    /// Items, newest first, at most 500.
    pub items: Vec<TranscriptItem>,
    /// The message that is still streaming.
    pub live: Option<LiveMessage>,
    /// What the running calls have printed so far.
    #[serde(default)]
    pub progress: Vec<LiveOutput>,
    /// Cursor of the next older page; `null` when this is all.
    #[serde(default)]
    #[specta(type = Option<f64>)]
    pub before: Option<u64>,
    /// SSE id up to which this speaks: drop frames up to it.
    pub up_to: String,
}

/// What a running call has printed so far. Provisional; `GET /output` has all of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct LiveOutput {
    /// The call.
    pub id: String,
    /// The attempt.
    pub attempt_id: String,
    /// The end of what it has printed, at most 64 KiB.
    pub text: String,
}

/// The message that is still streaming.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct LiveMessage {
    /// The turn.
    pub turn_id: String,
    /// Text so far.
    pub text: String,
    /// Reasoning so far.
    pub reasoning: String,
}

/// `GET /output`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct OutputPage {
    /// The attempt.
    pub attempt_id: String,
    /// First byte of this page.
    #[specta(type = f64)]
    pub offset: u64,
    /// Bytes known so far.
    #[specta(type = f64)]
    pub length: u64,
    /// Text, with a visible mark in place of bytes that are no UTF-8.
    pub text: String,
    /// Where the next page begins. A character is never cut: this page ends before one that is not
    /// all there yet.
    #[specta(type = f64)]
    pub next: u64,
    /// There is more behind it now.
    pub more: bool,
}

/// `GET /diff`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct DiffReply {
    /// The attempt.
    pub attempt_id: String,
    /// Unified diff; empty when the call changed no file.
    pub diff: String,
}
