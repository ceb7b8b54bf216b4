//! A stream of server-sent events from one HTTP request. The one place of the project that knows
//! how such a stream is read.
//!
//! Guarantees:
//! - One call sends at most one request. Nothing is ever re-sent here: a POST that reached a model
//!   or a host must not be repeated by a transport that wants to be helpful.
//! - Every wait is bounded by [`SseLimits::idle`], every buffer by a number of bytes.
//! - Dropping the stream closes the socket; so does its end and its first error.
//!
//! There are two readers. [`open`] is for models, where a request must be answered once and every
//! byte is suspect: [`lines`] stands in front of the parser `eventsource-stream` and hands it one
//! sound, bounded line at a time. [`Subscription`] is for hosts of sessions, which send for as long
//! as they live: it is `reqwest-eventsource` with its retries off. That library hides the bytes, so
//! it would not do for models: an endless line fills the memory, a keep-alive comment can't be told
//! from silence, and a byte order mark panics.

mod error;
mod lines;
mod stream;
mod subscription;

pub use error::{ErrorBody, SseError};
pub use stream::{SseEvent, SseLimits, SseStream, open};
pub use subscription::{Signal, Subscription};
