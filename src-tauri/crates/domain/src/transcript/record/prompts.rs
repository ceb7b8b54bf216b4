//! Questions to a person and their answers.

use serde::{Deserialize, Serialize};

use crate::recovery::file::FileIntent;

/// A person is asked (TR-51). A later record with the same id and a higher generation replaces it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PromptAsked {
    /// Id of the prompt.
    pub prompt_id: String,
    /// `approval` or `repeat`.
    pub prompt: String,
    /// The turn.
    pub turn_id: String,
    /// The call.
    pub call_id: String,
    /// Tool name.
    pub tool: String,
    /// What it acts on, for display.
    pub subject: String,
    /// Unified diff of a file change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// From 1; grows when the same question is asked anew on a new state.
    pub generation: u64,
    /// Answers offered: `once`, `session`.
    pub scopes: Vec<String>,
    /// Why it asks.
    pub reason: String,
    /// State of the file that the person sees, for the check after the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<FileIntent>,
    /// What the answer `session` allows: the digest of this exact call's arguments, or `*` for
    /// every call of the tool; empty for nothing.
    pub grant: String,
    /// Digest of the arguments that were shown.
    pub argument_digest: String,
    /// The earlier attempt, for `repeat` (TR-46).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier: Option<String>,
    /// The word for that attempt's state as it was shown; empty without one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub earlier_state: String,
}

impl PromptAsked {
    /// `prompt` of an ordinary question.
    pub const APPROVAL: &'static str = "approval";
    /// `prompt` of a question about a repetition (TR-46).
    pub const REPEAT: &'static str = "repeat";
}

/// A person answered.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PromptAnswered {
    /// Id of the prompt.
    pub prompt_id: String,
    /// Generation that was answered.
    pub generation: u64,
    /// Allowed.
    pub allow: bool,
    /// `once` or `session`.
    pub scope: String,
    /// The person's words.
    pub reason: String,
}
