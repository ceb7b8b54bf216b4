//! The owner of sessions: one actor per session that admits, stores, runs, recovers and publishes.
//!
//! Guarantees: nothing is announced before it is durable; nothing is executed that was not stored
//! first, and nothing is executed twice by itself; what a surface shows comes from one fold and one
//! committed snapshot.

mod actor;
pub mod config;
pub mod host;
pub mod hub;
pub mod models;
pub mod policy;
pub mod prompt;
mod shared;
pub mod source;
pub mod stops;
pub mod store;
mod summary;

pub use host::{Host, HostOptions, socket_folder};
