//! Tests of what other tests stand on.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

mod child_host;
mod effects;
mod scripts;
