//! `shell`: commands, through the supervisor and never as plain children.

pub(crate) mod environment;
pub(crate) mod finish;
pub(crate) mod handover;
pub(crate) mod program;
pub(crate) mod run;
