//! The program as a person starts it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod program;
mod web;
