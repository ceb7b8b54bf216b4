//! The host from outside: real files, real supervised commands, a scripted model, a deterministic
//! source of time and ids, and storage that fails on demand.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod bench;
mod config;
mod gate;
mod hub;
mod policy;
mod script;

#[cfg(target_os = "linux")]
mod barrier;
#[cfg(target_os = "linux")]
mod copies;
#[cfg(target_os = "linux")]
mod defects;
#[cfg(target_os = "linux")]
mod faults;
#[cfg(target_os = "linux")]
mod healing;
#[cfg(target_os = "linux")]
mod history;
#[cfg(target_os = "linux")]
mod pipeline;
mod publication;
#[cfg(target_os = "linux")]
mod questions;
#[cfg(target_os = "linux")]
mod recovery;
#[cfg(target_os = "linux")]
mod repeat;
#[cfg(target_os = "linux")]
mod restart;
#[cfg(target_os = "linux")]
mod retry;
#[cfg(target_os = "linux")]
mod retry_refusals;
#[cfg(target_os = "linux")]
mod runtime;
#[cfg(target_os = "linux")]
mod sink_tool;
#[cfg(target_os = "linux")]
mod stopping;
#[cfg(target_os = "linux")]
mod surfaces;
#[cfg(target_os = "linux")]
mod walk;
#[cfg(target_os = "linux")]
mod worlds;
