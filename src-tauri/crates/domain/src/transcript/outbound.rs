//! The model's view: the messages and tools of one request, in the order in which they are sent.
//!
//! Guarantee: this view is a function of the stored records alone, and a later view of the same
//! session starts with the earlier one (prefix cache, TR-15).

use serde::{Deserialize, Serialize};

/// A tool call as the model made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutboundCall {
    /// Our id of the call (TR-06); the same goes out in the call and in its result.
    pub id: String,
    /// Tool name as the model wrote it.
    pub name: String,
    /// Argument text as it goes out: the model's own bytes, or `{}` for a refused call whose text
    /// is not JSON (TR-44).
    pub arguments: String,
}

/// One message of a model request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum OutboundMessage {
    /// The system prompt, first and stable.
    System {
        /// Text.
        text: String,
    },
    /// A person's message, or a host note before it.
    User {
        /// Text.
        text: String,
    },
    /// The model's own earlier message.
    Assistant {
        /// Text, may be empty.
        text: String,
        /// Reasoning to replay, where the provider wants it back.
        reasoning: Option<String>,
        /// Calls in the model's order.
        calls: Vec<OutboundCall>,
    },
    /// The one result of one call.
    Tool {
        /// Our id of the call.
        call_id: String,
        /// Tool name.
        name: String,
        /// Result text, immutable once sent.
        text: String,
    },
}

/// A tool as it is offered to the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Name.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON schema of its arguments.
    pub parameters: serde_json::Value,
}
