//! The agent as its users meet it: a real host, a real scripted model server, real HTTP, real
//! commands; nobody crashes here.

mod background;
mod calls;
mod command_line;
mod disk;
mod holding;
mod inbox;
mod jobs;
mod modes;
mod prefix;
mod provider;
pub(crate) mod scene;
mod stopping;
mod task;
