//! What a session log can say: one struct per kind of record, and the table of kinds.
//!
//! Guarantees: a record of a kind that this version does not know is kept as it is and changes
//! nothing (TR-45); fields are only ever added, each with a default.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::recovery::attempt::{Inspection, Resolution};
use crate::recovery::file::FileIntent;
use crate::recovery::identity::Identity;
use crate::recovery::lifecycle::AttemptState;
use crate::recovery::process::{ExitReceipt, Straggler};

mod history;
mod inbox;
mod prompts;

pub use history::{Compacted, Rewound};
pub use inbox::{
    InboxDeleted, InboxEdited, InboxMoved, InboxPaused, InboxQueued, InboxResumed, InboxReturned,
    Intent,
};
pub use prompts::{PromptAnswered, PromptAsked};

/// A record with its place in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Place in the log, from 1, without gaps in a sound log.
    pub seq: u64,
    /// Unix milliseconds at which it was written.
    pub at: u64,
    /// What it says.
    pub record: Record,
}

macro_rules! records {
    ($($(#[$doc:meta])* $variant:ident = $kind:literal,)*) => {
        /// One record. The payload's struct has the variant's name.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Record {
            $($(#[$doc])* $variant($variant),)*
            /// Of a kind that this version does not know.
            Other {
                /// Its kind.
                kind: String,
                /// Its payload, untouched.
                payload: Value,
            },
        }

        impl Record {
            /// Every kind that this version writes; the header lists them.
            pub const KINDS: &'static [&'static str] = &[$($kind),*];

            /// The kind as the log has it.
            pub fn kind(&self) -> &str {
                match self {
                    $(Self::$variant(_) => $kind,)*
                    Self::Other { kind, .. } => kind,
                }
            }

            /// The payload as JSON text on one line.
            ///
            /// # Errors
            /// Never for the records of this version; a defect would be refused before it is
            /// written.
            pub fn payload(&self) -> Result<String, serde_json::Error> {
                match self {
                    $(Self::$variant(payload) => serde_json::to_string(payload),)*
                    Self::Other { payload, .. } => serde_json::to_string(payload),
                }
            }

            /// Reads a record. A known kind whose payload does not fit becomes `Other`, so that
            /// a log never stops opening because of it.
            pub fn parse(kind: &str, payload: &str) -> Self {
                let parsed = match kind {
                    $($kind => serde_json::from_str(payload).map(Self::$variant).ok(),)*
                    _ => None,
                };
                parsed.unwrap_or_else(|| Self::Other {
                    kind: kind.to_owned(),
                    payload: serde_json::from_str(payload).unwrap_or(Value::Null),
                })
            }
        }

        $(impl From<$variant> for Record {
            fn from(payload: $variant) -> Self {
                Self::$variant(payload)
            }
        })*
    };
}

records! {
    /// First record of a log.
    SessionCreated = "session_created",
    /// A person changed title, model, mode or archiving.
    SettingsChanged = "settings_changed",
    /// The system prompt, stored when first sent.
    SystemPrompt = "system_prompt",
    /// A message of a person; starts a turn.
    UserMessage = "user_message",
    /// The turn's loop began, or went on after a restart.
    TurnStarted = "turn_started",
    /// The model's message, with its proposals.
    AssistantMessage = "assistant_message",
    /// A person is asked about a call.
    PromptAsked = "prompt_asked",
    /// A person answered.
    PromptAnswered = "prompt_answered",
    /// An ordinary refusal; the call has no attempt.
    CallRefused = "call_refused",
    /// TR-05 (8): the receipt, state `pending`.
    Receipt = "receipt",
    /// TR-17: the first writer of a file in this session.
    FileCheckpoint = "file_checkpoint",
    /// TR-05 (9): a retry took the attempt's place.
    Superseded = "superseded",
    /// TR-05 (10): the start record.
    ToolStarted = "tool_started",
    /// The attempt is proven not to have started.
    NotStarted = "not_started",
    /// TR-08: the result of an attempt.
    ToolResult = "tool_result",
    /// An attempt's state changed without a result.
    AttemptChanged = "attempt_changed",
    /// An attempt without a receipt that must be presumed to have happened (TR-14).
    AttemptPresumed = "attempt_presumed",
    /// TR-15: what a model was told in place of a missing result.
    SyntheticResult = "synthetic_result",
    /// A result that came after a person's resolution (TR-10).
    LateEvidence = "late_evidence",
    /// TR-32: an inspection.
    Inspected = "inspected",
    /// TR-33, TR-34: a person's resolution.
    Resolved = "resolved",
    /// TR-50: a running command goes on as a job, and its call is answered with that.
    JobStarted = "job_started",
    /// What lived on after a command's end has ended too.
    JobEnded = "job_ended",
    /// TR-15: a host note, stored when first sent.
    HostNote = "host_note",
    /// A turn's end.
    TurnEnded = "turn_ended",
    /// A summary takes the place of the conversation so far in a model's view.
    Compacted = "compacted",
    /// The conversation was taken back to before a person's message.
    Rewound = "rewound",
    /// RS-16: a message waits for its turn.
    InboxQueued = "inbox_queued",
    /// A waiting message was changed.
    InboxEdited = "inbox_edited",
    /// A waiting message has another place.
    InboxMoved = "inbox_moved",
    /// A waiting message was given up.
    InboxDeleted = "inbox_deleted",
    /// The message of a turn that never began waits again.
    InboxReturned = "inbox_returned",
    /// The queue stands still.
    InboxPaused = "inbox_paused",
    /// The queue goes on.
    InboxResumed = "inbox_resumed",
    /// A host opened the log and found something open.
    Restarted = "restarted",
    /// TR-48: a failed batch was cut off.
    WriteReset = "write_reset",
}

/// First record of a log: the header.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SessionCreated {
    /// 32 hex digits.
    pub session_id: String,
    /// Absolute path of the workspace.
    pub workspace: String,
    /// Title, may be empty.
    pub title: String,
    /// Model, `provider/model`.
    pub model: String,
    /// Permission mode: ask, edits, full, read-only.
    pub mode: String,
    /// Kinds of records that this writer makes (TR-14).
    pub writes: Vec<String>,
    /// Version of the program.
    pub version: String,
}

/// A person changed settings of the session; absent fields stay.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SettingsChanged {
    /// New title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// New model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// New mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// Archived or not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<bool>,
}

/// The system prompt as sent; later requests begin with the same bytes.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SystemPrompt {
    /// Text.
    pub text: String,
}

/// A message of a person. It is also what takes an item out of the queue (RS-16).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UserMessage {
    /// The turn that it starts, or the running one that it came into.
    pub turn_id: String,
    /// Text.
    pub text: String,
    /// The client's key, one namespace with idempotency keys (RS-16); empty when none was given.
    pub submission_id: String,
    /// The item that came into the turn while it ran; empty for a message that starts its turn, and
    /// whose item has the turn's id.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub steer_item: String,
}

impl UserMessage {
    /// Id of the item that this message was, if it waited.
    pub fn item_id(&self) -> &str {
        if self.steer_item.is_empty() {
            &self.turn_id
        } else {
            &self.steer_item
        }
    }
}

/// The turn's loop began.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnStarted {
    /// The turn.
    pub turn_id: String,
    /// It goes on after a restart: every mutating call is asked (TR-51).
    pub continuation: bool,
}

/// A call as the model proposed it (TR-03).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ProposedCall {
    /// Our id (TR-06).
    pub call_id: String,
    /// The provider's id, as it came.
    pub provider_id: String,
    /// Tool name as the model wrote it.
    pub name: String,
    /// The model's argument text, byte for byte.
    pub arguments: String,
}

/// Tokens of one model request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, specta::Type)]
#[serde(default)]
pub struct Usage {
    /// Tokens of the prompt.
    #[specta(type = f64)]
    pub input: u64,
    /// Tokens of the answer.
    #[specta(type = f64)]
    pub output: u64,
    /// Prompt tokens that the provider had cached.
    #[specta(type = f64)]
    pub cached_input: u64,
    /// Answer tokens that were reasoning.
    #[specta(type = f64)]
    pub reasoning: u64,
}

/// The model's message.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AssistantMessage {
    /// The turn.
    pub turn_id: String,
    /// Model request within the turn, from 1.
    pub step: u32,
    /// Text.
    pub text: String,
    /// Reasoning, replayed where the provider wants it.
    pub reasoning: String,
    /// Proposals in the model's order.
    pub calls: Vec<ProposedCall>,
    /// The provider's word for why it ended.
    pub finish_reason: String,
    /// Tokens, when the provider said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// It was cut short by Stop or by an error.
    pub partial: bool,
}

/// An ordinary refusal result; the raw arguments stay in the proposal.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct CallRefused {
    /// The turn.
    pub turn_id: String,
    /// The call.
    pub call_id: String,
    /// Stable code: `recovery_required`, `denied`, `not_started`, `arguments_…`, …
    pub code: String,
    /// Result text for the model.
    pub text: String,
}

/// TR-05 (8).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// TR-06.
    pub identity: Identity,
    /// The tool has no effect.
    pub read_only: bool,
    /// TR-07.
    pub idempotency_key: String,
    /// What it acts on, for display.
    #[serde(default)]
    pub subject: String,
    /// File evidence (TR-17).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileIntent>,
    /// A supervisor runs it; its effect folder has the attempt's name.
    #[serde(default)]
    pub supervised: bool,
}

/// TR-17: binds a file to its first writer in this session, and to the log before that. Directly
/// behind the writer's receipt, in the same write.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FileCheckpoint {
    /// The writer; its receipt has the whole identity and the digest of the file before.
    pub attempt_id: String,
    /// The file, absolute, links resolved.
    pub resolved_path: String,
    /// SHA-256 (hex) of all bytes of the log before this record's line. The log adds it as it
    /// writes.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub log_sha256: String,
}

/// TR-05 (9).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Superseded {
    /// The earlier attempt.
    pub attempt_id: String,
    /// The attempt that took its place.
    pub by: String,
}

/// TR-05 (10).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ToolStarted {
    /// The attempt.
    pub attempt_id: String,
    /// Boot during which it started.
    pub boot_id: String,
}

/// Proven not to have started.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct NotStarted {
    /// The attempt.
    pub attempt_id: String,
    /// Why, and result text for the model.
    pub reason: String,
}

/// Where a result comes from (TR-08).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum ResultSource {
    /// The executor of this host.
    #[default]
    Live,
    /// Found after a restart.
    Recovered,
    /// Said by the host in place of a missing result.
    Synthetic,
}

/// Large output kept beside the log.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SpillRef {
    /// Name of the spill file.
    pub name: String,
    /// Its length in bytes.
    pub length: u64,
}

/// TR-08.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolResult {
    /// The attempt.
    pub attempt_id: String,
    /// `completed`, `failed` or `interrupted`.
    pub state: AttemptState,
    /// Live or recovered.
    #[serde(default)]
    pub source: ResultSource,
    /// Result text for the model, capped.
    pub text: String,
    /// SHA-256 (hex) of the text.
    pub digest: String,
    /// Words about the effect; `effect_unknown` leaves it open (TR-09).
    #[serde(default)]
    pub effect_summary: String,
    /// The whole output as it came, when the text is not just that and it is small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<String>,
    /// The whole output beside the log, when it is large or no UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<SpillRef>,
    /// Something of the output was left out of the text.
    #[serde(default)]
    pub truncated: bool,
    /// Diff of a file change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The exit receipt of a supervised command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit: Option<ExitReceipt>,
    /// The command may have handed its work to something outside its tree (TR-11).
    #[serde(default)]
    pub may_continue_elsewhere: bool,
    /// Milliseconds from start to end.
    #[serde(default)]
    pub duration_ms: u64,
}

/// An attempt's state changed without a result: `running`, `cancelled` or `unknown`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptChanged {
    /// The attempt.
    pub attempt_id: String,
    /// The new state.
    pub state: AttemptState,
    /// Why, in words for a person.
    #[serde(default)]
    pub reason: String,
    /// Processes that may still work on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stragglers: Vec<Straggler>,
}

/// TR-14: no absence is evidence across damage, and an effect folder that the log does not know
/// is an attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptPresumed {
    /// Its identity, as far as it is known; the rest is empty.
    pub identity: Identity,
    /// Why it is presumed.
    pub reason: String,
    /// An effect folder of that name exists and is never deleted.
    #[serde(default)]
    pub supervised: bool,
}

/// TR-15.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SyntheticResult {
    /// The turn of the call.
    pub turn_id: String,
    /// The call.
    pub call_id: String,
    /// Its attempt, when it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<String>,
    /// Text, immutable once sent.
    pub text: String,
}

/// A result that came after a person's resolution: attached, and the state stays.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LateEvidence {
    /// The result as it would have been stored.
    pub result: ToolResult,
}

/// TR-32.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inspected {
    /// The attempt.
    pub attempt_id: String,
    /// What was found.
    pub inspection: Inspection,
}

/// TR-33, TR-34.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resolved {
    /// The attempt.
    pub attempt_id: String,
    /// What the person said.
    pub resolution: Resolution,
    /// The inspection that it rests on; empty for a dismissal without one.
    #[serde(default)]
    pub inspection_id: String,
    /// Surface through which it came, such as `http` or `cli`.
    #[serde(default)]
    pub source: String,
}

/// TR-50: a running command goes on as a job. Its call has its answer with this; the attempt stays
/// open, and its real end is its `tool_result` or its `attempt_changed`, as of any other.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobStarted {
    /// The attempt.
    pub attempt_id: String,
    /// Who wanted it: [`JobStarted::MODEL`] or [`JobStarted::PERSON`].
    pub by: String,
    /// The call's answer for the model, immutable once sent.
    pub text: String,
}

impl JobStarted {
    /// The call asked for it (`background: true`).
    pub const MODEL: &'static str = "model";
    /// A person moved a running command to the background.
    pub const PERSON: &'static str = "person";
}

/// What lived on after a command's end has ended too (TR-50).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobEnded {
    /// The attempt that left it.
    pub attempt_id: String,
    /// How it ended, in words for a person.
    pub reason: String,
}

/// TR-15.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct HostNote {
    /// Text as sent.
    pub text: String,
    /// Attempts that it tells about.
    pub attempts: Vec<String>,
}

/// A turn's end.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnEnded {
    /// The turn.
    pub turn_id: String,
    /// `completed`, `failed`, `cancelled` or `interrupted`.
    pub status: String,
    /// Stable code of a failure.
    pub code: String,
    /// Words for a person.
    pub message: String,
}

/// A host opened the log and found something open.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Restarted {
    /// Boot of the new host.
    pub boot_id: String,
    /// Attempts that were found open.
    pub attempts: Vec<String>,
}

/// TR-48. Written by the journal itself.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WriteReset {
    /// Attempts whose receipt or start was in the batch that failed.
    pub not_started: Vec<String>,
    /// Records cut off.
    pub lost_records: u64,
}
