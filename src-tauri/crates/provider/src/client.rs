//! What every model client offers, in the vocabulary of the session.

use futures_util::stream::BoxStream;
use holdfast_domain::transcript::outbound::{OutboundMessage, ToolSpec};
use serde::{Deserialize, Serialize};

use crate::error::ProviderError;

/// One request: a model, the whole transcript as it goes out, and the tools on offer.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// The provider's name of the model.
    pub model: String,
    /// Messages in order.
    pub messages: Vec<OutboundMessage>,
    /// Tools in a stable order; it takes part in the prefix cache.
    pub tools: Vec<ToolSpec>,
}

/// What happens while a reply streams. All but `Finished` is provisional.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// A piece of text.
    Text(String),
    /// A piece of reasoning.
    Reasoning(String),
    /// A call is growing.
    ToolCall {
        /// Place of the call in the reply, from 0.
        index: usize,
        /// Tool name as known so far.
        name: String,
        /// Bytes of its arguments so far.
        arguments_so_far_len: usize,
    },
    /// The request failed before anything was delivered and is sent again after a wait.
    Retrying {
        /// The attempt that failed, from 1.
        attempt: u32,
        /// The wait before the next one, in milliseconds.
        wait_ms: u64,
        /// Code of the failure.
        code: &'static str,
        /// The failure in words.
        message: String,
    },
    /// The whole reply. The last item of a stream.
    Finished(ModelReply),
}

/// One tool call of a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ModelCall {
    /// The provider's id as sent: possibly empty, possibly the same for every call (TR-06, C33).
    pub provider_id: String,
    /// Tool name as sent.
    pub name: String,
    /// Argument text as sent, byte for byte as concatenated; possibly no JSON at all (C35).
    pub arguments: String,
}

/// Token counts as the provider reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the request.
    pub input: u64,
    /// Tokens of the reply.
    pub output: u64,
    /// Tokens of the request that came from the provider's cache.
    pub cached_input: u64,
    /// Tokens of the reply that were reasoning.
    pub reasoning: u64,
}

/// A reply, whole or (inside [`ProviderError::Interrupted`]) as far as it came.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ModelReply {
    /// Text.
    pub text: String,
    /// Reasoning.
    pub reasoning: String,
    /// Calls in the model's order.
    pub calls: Vec<ModelCall>,
    /// The provider's own word (`stop`, `tool_calls`, `length`, …); empty in a partial reply.
    pub finish_reason: String,
    /// Token counts, when the provider sent them.
    pub usage: Option<Usage>,
    /// The model that answered, by its own account.
    pub model: String,
}

/// The stream of one reply.
pub type ModelStream = BoxStream<'static, Result<ModelEvent, ProviderError>>;

/// A model that can be asked.
pub trait ModelClient: Send + Sync {
    /// The provider's name, as configured.
    fn name(&self) -> &str;

    /// Asks for a reply. Nothing is sent before the stream is polled; dropping it cancels and closes
    /// the socket. After `Finished` or an error it ends.
    fn stream(&self, request: ModelRequest) -> ModelStream;
}
