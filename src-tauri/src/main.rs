//! The desktop app. Everything is in the library, so that tests reach it.
#![cfg_attr(not(debug_assertions), windows_subsystem = "windows")]

use std::process::ExitCode;

fn main() -> ExitCode {
    holdfast_app::run()
}
