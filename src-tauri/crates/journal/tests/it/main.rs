//! The session log from outside: real files, real processes, and a storage that fails on purpose.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod append;
mod bound;
mod copy;
mod damage;
mod faults;
mod index;
mod lease;
mod opening;
mod property;
mod reset;
mod session;
mod spill;
mod writer;
