//! The file tools: reading, listing, and the steps of a write: its plan, its publication under a
//! claim, and what is found of it after a crash.

pub(crate) mod aftermath;
pub(crate) mod attributes;
pub(crate) mod claim;
pub(crate) mod list;
pub(crate) mod plan;
pub(crate) mod publish;
pub(crate) mod read;
