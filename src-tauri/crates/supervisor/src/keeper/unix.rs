//! What the Unix sides of the supervisor share.

pub(super) mod isolation;
pub(super) mod signals;
pub(super) mod socket;
