//! The acceptance binary: what holds for the workspace as a whole.
//!
//! One module per subject; each says in its header what it proves.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test speaks by panicking"
)]

mod agent;
mod architecture;
mod conformance;
mod crash;
mod http;
#[cfg(feature = "interop")]
mod interop;
mod remote;
mod sources;
mod tidy;
