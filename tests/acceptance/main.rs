//! The acceptance binary: what holds for the workspace as a whole.
//!
//! One module per subject; each says in its header what it proves.

mod architecture;
mod conformance;
mod sources;
mod tidy;
