//! The supervisor from outside: real effect folders, real processes, real signals.

// A helper outside a test function fails its test in the same way.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[cfg(target_os = "linux")]
mod commands;
#[cfg(target_os = "linux")]
mod ends;
#[cfg(target_os = "linux")]
mod hold;
#[cfg(target_os = "linux")]
mod jobs;
#[cfg(target_os = "linux")]
mod loss;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
mod portable;
#[cfg(target_os = "linux")]
mod refusals;
#[cfg(target_os = "linux")]
mod stage;
#[cfg(target_os = "linux")]
mod start;
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
mod unsupported;
