//! The rules of Holdfast as pure functions: no files, no clock, no randomness, no async.
//!
//! Guarantee: a state change is a function of a state and an event; time, ids and random bytes are
//! passed in. Everything here can be called from any thread and never blocks.

pub mod canonical;
pub mod recovery;
pub mod runtime;
pub mod transcript;
