//! Sessions of another host, over a real connection to a real host, with a network between that
//! does whatever a test wants (RS-30…36, TR-02, TR-42, C07, C13, C16, C27).

mod commands;
mod connection;
mod many;
mod near;
mod older;
mod returns;
pub(crate) mod stage;
mod suite;
mod tabs;
#[cfg(target_os = "linux")]
mod tunnel;
