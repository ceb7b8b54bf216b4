//! The records by which a person changes what a model gets of the conversation. Both are additive:
//! no earlier record is touched, and every receipt counts as before (TR-22).

use serde::{Deserialize, Serialize};

use super::Usage;

/// From here on a model gets the summary in place of what is up to that record.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Compacted {
    /// Last record that the summary speaks for; from 1.
    pub upto_seq: u64,
    /// The summary as the model wrote it. An empty one changes nothing.
    pub summary: String,
    /// Tokens of the request that made it, when the provider said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// The conversation is taken back to before a person's message. What was done to files and by
/// commands stays done.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Rewound {
    /// Record of the message that is taken back with all that follows it. Where no such message is
    /// in the transcript, nothing changes.
    pub to_seq: u64,
    /// Who asked for it, such as `person`.
    pub reason: String,
}
