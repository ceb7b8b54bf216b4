//! What a person does to a conversation as a whole: compact it, take it back, copy it.
//!
//! Guarantee: none of these undoes or repeats an effect, and none lifts the barrier (TR-22).

use serde::{Deserialize, Serialize};

/// Reply to `POST /compact`: the model is asked for a summary now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct CompactionStarted {
    /// What Stop names to stop it; its end is told as that turn's end.
    pub turn_id: String,
}

/// `POST /rewind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(deny_unknown_fields)]
pub struct Rewind {
    /// `seq` of the person's message that is taken back with all that follows it.
    #[specta(type = f64)]
    pub seq: u64,
}

/// Reply to a rewind: durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct RewindReply {
    /// The message that was taken back, to be offered again.
    pub text: String,
    /// What stays as it was done: files and commands from that message on, in their order.
    pub kept: Vec<KeptEffect>,
}

/// A call whose effect a rewind does not undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct KeptEffect {
    /// The attempt.
    pub attempt_id: String,
    /// Tool name.
    pub tool: String,
    /// The file or the command.
    pub subject: String,
    /// The attempt's state now, as on every surface (TR-47).
    pub state: String,
}
