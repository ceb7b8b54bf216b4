//! Model clients against a real server on loopback, and the demo model with real files.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't be set up has failed"
)]

mod demo;
mod faults;
mod replies;
mod requests;
mod setup;
