//! Streaming model clients: OpenAI-compatible chat completions, and a scripted demo model.
//!
//! Guarantees:
//! - A stream yields events, then exactly one `Finished` or one error, then ends. Dropping it closes
//!   the socket.
//! - Every wait and every buffer is bounded ([`Limits`]); a retry is an event, never silent, and
//!   only happens while nothing of the reply was delivered.
//! - A call's arguments are the model's own text, byte for byte (TR-03). Nothing here judges or
//!   repairs them.
//! - A request's body starts with the bytes of the session's earlier one (prefix cache).
//! - No error, event or `Debug` output holds the API key.

mod client;
pub mod demo;
mod error;
mod limits;
pub mod openai;

pub use client::{
    ModelCall, ModelClient, ModelEvent, ModelReply, ModelRequest, ModelStream, Usage,
};
pub use error::ProviderError;
pub use limits::{Jitter, Limits};
