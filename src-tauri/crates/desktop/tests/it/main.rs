//! Tests of the app as the window and the browser use it: a real host, real files, real HTTP to a
//! scripted model.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod events;
mod projection;
mod providers;
mod quitting;
mod settings;
mod stage;
mod tabs;
mod work;
