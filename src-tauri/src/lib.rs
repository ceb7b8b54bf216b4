//! The window: Tauri glue and nothing else.

pub mod bindings;
pub mod commands;
pub mod events;
mod logs;
mod renderer;
mod window;

use std::process::ExitCode;

use tauri::{Context, Runtime};

/// The configuration, the permissions and the pages, as they were at build time.
pub fn context<R: Runtime>() -> Context<R> {
    tauri::generate_context!()
}

/// Runs the app until it is quit.
pub fn run() -> ExitCode {
    renderer::settle();
    let _ = (logs::start, window::open::<tauri::Wry>, window::show::<tauri::Wry>);
    ExitCode::SUCCESS
}
