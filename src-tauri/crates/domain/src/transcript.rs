//! The session's records, their fold, and the view that a model gets.

pub mod outbound;
