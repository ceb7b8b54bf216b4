//! The tools from outside: real files, real commands, real HTTP on loopback.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod aftermath;
mod attributes;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
mod commands;
mod encodings;
mod fetching;
#[cfg(unix)]
mod jail;
mod place;
mod preparing;
mod reading;
#[cfg(target_os = "linux")]
mod sandbox;
mod searching;
#[cfg(target_os = "linux")]
mod shell;
mod verdicts;
mod verifying;
mod writing;
