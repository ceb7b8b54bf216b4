//! A stream of server-sent events from one HTTP request. The one place of the project that knows
//! how such a stream is read.
//!
//! Guarantees:
//! - One call sends at most one request. Nothing is ever re-sent here: a POST that reached a model
//!   or a host must not be repeated by a transport that wants to be helpful.
//! - Every wait is bounded by [`SseLimits::idle`], every buffer by a number of bytes.
//! - Dropping the stream closes the socket; so does its end and its first error.
//!
//! The event grammar is that of `eventsource-stream`, the parser inside `reqwest-eventsource`. The
//! latter's `EventSource` is not used: it hides the bytes, so that an endless line would fill the
//! memory, a keep-alive comment could not be told from silence, a broken UTF-8 byte would silence
//! the rest of the stream, and a byte order mark would panic. [`lines`] stands in front of the
//! parser and hands it one sound, bounded line at a time.

mod error;
mod lines;
mod stream;

pub use error::{ErrorBody, SseError};
pub use stream::{SseEvent, SseLimits, SseStream, open};
