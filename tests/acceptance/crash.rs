//! What a SIGKILL of the host leaves, with real hosts, real commands and a ledger outside.
//!
//! Each test kills a host at a place that it names, starts another one on the same data, and looks
//! from outside: nothing that was acknowledged is lost, nothing ran twice, nothing unknown is shown
//! as anything else, and the model's next request is well-formed.
#![cfg(unix)]

#[cfg(target_os = "linux")]
mod background;
mod barrier;
mod commands;
mod cuts;
mod holder;
mod inbox;
mod kills;
#[cfg(target_os = "linux")]
mod leftovers;
mod looks;
#[cfg(target_os = "linux")]
mod output;
mod publication;
mod questions;
mod repeat;
mod requests;
mod resolution;
mod restart;
mod retry;
mod stage;
#[cfg(target_os = "linux")]
mod stops;
mod surfaces;
mod turns;
#[cfg(target_os = "linux")]
mod update;
mod walk;
