//! What the measurements share: a place on the disk, the programs, a conversation of any length,
//! samples and the table at the end.
//!
//! Guarantee: every figure stands beside its floor, which is measured in the same run.

pub mod conversation;
pub mod place;
pub mod samples;
pub mod table;
