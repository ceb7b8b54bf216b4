//! What crosses the border of a host: wire types, error codes, and the table of operations.
//!
//! Guarantee: every operation is declared once, in [`operations`]; HTTP routes come from that table
//! and a test compares the registries with it.

pub mod app;
pub mod desktop;
pub mod error;
pub mod event;
pub mod history;
pub mod host;
pub mod hosts;
pub mod inbox;
pub mod operations;
pub mod recovery;
pub mod session;
pub mod transcript;

pub use app::App;
pub use error::ApiError;
pub use host::{Selector, SessionHost};
