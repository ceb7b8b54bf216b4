//! Frames of the event stream.
//!
//! Guarantee: a frame that tells of a record is sent after that record is durable and carries its
//! `seq`; text, reasoning and progress are provisional until their record.

use holdfast_domain::runtime::snapshot::RuntimeState;
use holdfast_domain::transcript::record::Usage;
use serde::{Deserialize, Serialize};

use crate::session::PendingPrompt;
use crate::transcript::{ToolView, TranscriptItem};

/// One frame: `data:` of the stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct Frame {
    /// 32 hex digits; empty for frames about the whole host.
    pub session_id: String,
    /// The turn; empty outside of one.
    pub turn_id: String,
    /// Place of the record in the log, for frames that tell of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[specta(type = Option<f64>)]
    pub seq: Option<u64>,
    /// What happened.
    #[serde(flatten)]
    pub event: Event,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub enum Event {
    /// A turn's loop began, or went on after a restart.
    TurnStarted {
        /// It goes on after a restart.
        continuation: bool,
    },
    /// A part of the model's text.
    Text {
        /// The part.
        text: String,
    },
    /// A part of the model's reasoning.
    Reasoning {
        /// The part.
        text: String,
    },
    /// A message is stored: a person's, the model's, or a host note.
    Message {
        /// As in the transcript.
        item: TranscriptItem,
    },
    /// The conversation was taken back: what is at that place or behind it is no longer part of
    /// it. The message that tells so follows.
    Rewound {
        /// Place in the log.
        #[specta(type = f64)]
        to_seq: u64,
    },
    /// Tokens of one model request.
    Usage {
        /// Tokens.
        usage: Usage,
    },
    /// The model proposed a call.
    ToolDispatch {
        /// The call.
        tool: ToolView,
    },
    /// The start record is durable.
    ToolStarted {
        /// The call.
        tool: ToolView,
    },
    /// A part of a running call's output.
    ToolProgress {
        /// Our id of the call.
        id: String,
        /// The attempt.
        attempt_id: String,
        /// The part.
        text: String,
    },
    /// A call has its result, or its state changed.
    ToolResult {
        /// The call.
        tool: ToolView,
    },
    /// A person is asked.
    ApprovalRequest {
        /// The question.
        prompt: PendingPrompt,
    },
    /// A question is answered or closed.
    PromptAnswered {
        /// Its id.
        prompt_id: String,
        /// Allowed; false also when it was closed.
        allow: bool,
    },
    /// The queue is another one: read it anew (`GET /inbox`).
    InboxChanged {
        /// See [`crate::inbox::InboxView`].
        #[specta(type = f64)]
        revision: u64,
        /// Nothing of it runs until it is resumed.
        paused: bool,
        /// It is paused since a host found it at its start.
        recovered: bool,
        /// Messages that wait.
        #[specta(type = f64)]
        count: u64,
    },
    /// A job began, was told to stop, or ended.
    JobChanged {
        /// Its id.
        id: String,
        /// It is gone.
        ended: bool,
    },
    /// A model request is made again.
    Retrying {
        /// Tries so far.
        attempt: u32,
        /// Milliseconds until the next.
        #[specta(type = f64)]
        wait_ms: u64,
        /// Stable code of the failure.
        code: String,
        /// For a person.
        message: String,
    },
    /// Something that a person should know.
    Notice {
        /// Stable code.
        code: String,
        /// For a person.
        message: String,
    },
    /// A turn's end is stored.
    TurnDone {
        /// `completed`, `failed`, `cancelled`, `interrupted`.
        status: String,
        /// Stable code of a failure; empty without one.
        code: String,
        /// For a person.
        message: String,
    },
    /// Another session is current now, or this one's settings changed.
    SessionChanged {
        /// `session-id:<32 hex>` of the current session.
        session_path: String,
    },
    /// A committed snapshot (RS-28).
    RuntimeState {
        /// `session-id:<32 hex>`.
        session_path: String,
        /// It is the host's current session.
        session_current: bool,
        /// The snapshot.
        runtime_state: RuntimeState,
    },
    /// Frames are missing: read the state and the transcript anew.
    Gap {},
}
