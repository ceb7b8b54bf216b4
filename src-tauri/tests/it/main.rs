//! Tests of the window's shell: real commands, real permissions, no display.
#![allow(clippy::unwrap_used)]

mod bindings;
mod commands;
mod events;
mod permissions;
mod support;
