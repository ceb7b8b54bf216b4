//! Tool recovery: identity, states, evidence and admission, as pure functions.

pub mod file;
pub mod lifecycle;
pub mod process;
