//! The session's records, their fold, what comes next in a turn, and the view that a model gets.

pub mod inbox;
pub mod next;
pub mod notes;
pub mod outbound;
pub mod record;
pub mod session;
pub mod view;
