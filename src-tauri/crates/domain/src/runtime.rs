//! Runtime state: what a session does now, as one snapshot, and the rules by which copies of it
//! are accepted.

pub mod display;
pub mod observed;
pub mod reduce;
pub mod remote;
pub mod snapshot;
