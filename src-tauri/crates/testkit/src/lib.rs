//! What tests stand on: a scripted model server, a child host that can be killed at a chosen point,
//! an outside ledger of effects, an authoritative sink, a network that misbehaves, generated traces of runtime states, an HTTP
//! client, and waits with a deadline.
//!
//! Guarantees: everything is real (sockets, processes, files); everything that was started ends
//! when its value is dropped; nothing waits without a deadline. Only tests depend on this crate, so
//! a failed expectation is a panic with a message.

#![allow(
    clippy::expect_used,
    reason = "a crate for tests alone: what can't be set up fails the test"
)]

pub mod host;
pub mod http;
pub mod ledger;
pub mod lying;
pub mod model_server;
pub mod runtime_traces;
pub mod sink;
pub mod wait;

pub use host::{Host, HostOptions};
pub use http::{Frame, SseReader, TestClient};
pub use ledger::Ledger;
pub use lying::{Lie, LyingHost};
pub use model_server::{ModelServer, RecordedRequest, Script, Step};
pub use sink::{Sink, SinkClient};
