//! Tests of the window's shell: real commands, real permissions, no display.

mod bindings;
mod commands;
mod events;
mod permissions;
mod support;
