//! The file tools: reading, listing, and the two steps of a write, its plan and its publication.

pub(crate) mod list;
pub(crate) mod plan;
pub(crate) mod publish;
pub(crate) mod read;
