//! The window: Tauri glue and nothing else. What it shows is made by `holdfast_desktop`.
//!
//! Guarantees: it opens no port (its local socket is this user's alone); a second start on the same data folder shows the window of the
//! first; quitting gives the sessions back, and asks what becomes of commands that run.

pub mod backend;
pub mod bindings;
pub mod commands;
pub mod events;
pub mod home;
mod keychain;
mod logs;
pub mod quitting;
mod renderer;
mod signals;
mod window;

use std::process::ExitCode;
use std::sync::{Arc, Mutex, Once, PoisonError};

use holdfast_api::desktop::{Parting, QuitWord};
use tauri::{App, AppHandle, Context, Manager, RunEvent, Runtime, WindowEvent, Wry};
use tauri_plugin_dialog::{DialogExt, MessageDialogKind};
use tauri_plugin_window_state::StateFlags;

use crate::backend::Backend;
use crate::commands::SharedApp;
use crate::home::Home;
use crate::quitting::Quitting;

/// What is remembered of the window; whether it is visible is not.
const REMEMBERED: StateFlags = StateFlags::SIZE
    .union(StateFlags::POSITION)
    .union(StateFlags::MAXIMIZED)
    .union(StateFlags::FULLSCREEN);

/// The backend, until it is closed.
type Running = Mutex<Option<Backend>>;

/// The configuration, the permissions and the pages, as they were at build time.
pub fn context<R: Runtime>() -> Context<R> {
    tauri::generate_context!()
}

/// Runs the app until it is quit.
pub fn run() -> ExitCode {
    renderer::settle();
    match start() {
        Ok(app) => {
            app.run(|handle, event| match event {
                RunEvent::WindowEvent {
                    event: WindowEvent::CloseRequested { api, .. },
                    ..
                } if quitting::hear(handle, QuitWord::Quit) => api.prevent_close(),
                RunEvent::ExitRequested {
                    code: None, api, ..
                } if quitting::hear(handle, QuitWord::Quit) => api.prevent_exit(),
                RunEvent::Exit => close(handle),
                _ => {}
            });
            ExitCode::SUCCESS
        }
        Err(error) => {
            complain(&error);
            ExitCode::FAILURE
        }
    }
}

fn start() -> anyhow::Result<App<Wry>> {
    let home = Home::find()?;
    let mut context = context();
    // Names the single instance, so that each data folder has its own.
    context.config_mut().identifier.push_str(&home.suffix);
    let registry = registry!(Wry);
    let handler = registry.invoke_handler();
    let listening = Once::new();
    let app = tauri::Builder::default()
        // First, so that a second start ends before it has touched anything.
        .plugin(tauri_plugin_single_instance::init(|handle, _, _| {
            window::show(handle);
        }))
        .plugin(
            tauri_plugin_window_state::Builder::new()
                .with_state_flags(REMEMBERED)
                .with_filename(home.folder.join("window.json").to_string_lossy())
                .build(),
        )
        .plugin(tauri_plugin_dialog::init())
        .plugin(tauri_plugin_opener::init())
        .invoke_handler(move |invoke| {
            // RS-22: the page subscribes before it reads, so from its first question on nothing
            // that is sent can be missed.
            let webview = invoke.message.webview_ref();
            listening.call_once(|| events::begin(webview.app_handle()));
            handler(invoke)
        })
        .setup(move |app| {
            registry.mount_events(app);
            let handle = app.handle();
            if let Err(error) = open(handle, &home) {
                complain(&error);
                let end = handle.clone();
                handle
                    .dialog()
                    .message(format!("{error:#}"))
                    .title("Holdfast")
                    .kind(MessageDialogKind::Error)
                    .show(move |_| end.exit(1));
            }
            Ok(())
        })
        .build(context)?;
    Ok(app)
}

/// Starts what is behind the window, then shows the window.
fn open(handle: &AppHandle<Wry>, home: &Home) -> anyhow::Result<()> {
    if let Some(logs) = logs::start(&home.folder) {
        handle.manage(logs);
    }
    let demo = holdfast_desktop::default_demo_folder();
    let backend = tauri::async_runtime::block_on(async { Backend::start(home, demo) })?;
    handle.manage::<SharedApp>(Arc::new(backend.desktop.clone()));
    handle.manage(backend.desktop.clone());
    handle.manage::<Running>(Mutex::new(Some(backend)));
    handle.manage(Quitting::default());
    signals::watch(handle.clone());
    window::open(handle, &home.folder)?;
    Ok(())
}

fn close(handle: &AppHandle<Wry>) {
    let Some(running) = handle.try_state::<Running>() else {
        return;
    };
    let backend = running
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    if let Some(backend) = backend {
        let decided = handle
            .try_state::<Quitting>()
            .and_then(|state| state.decided());
        tauri::async_runtime::block_on(async {
            let parting = match decided {
                Some(parting) => parting,
                None => backend.desktop.parting().await,
            };
            backend.close(parting == Parting::Keep).await;
        });
    }
}

/// Says on standard error why the app can't start.
#[allow(clippy::print_stderr)]
fn complain(error: &anyhow::Error) {
    eprintln!("holdfast-app: {error:#}");
}
