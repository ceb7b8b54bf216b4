//! Tool recovery: identity, states, evidence, the barrier and admission, as pure functions.

pub mod admission;
pub mod attempt;
pub mod barrier;
pub mod file;
pub mod identity;
pub mod lifecycle;
pub mod process;
pub mod publication;
pub mod repeat;
pub mod restart;
pub mod retry;
