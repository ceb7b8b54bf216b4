//! Events of the app, as the window `main` hears them.
//!
//! Guarantee: every `AppEvent` reaches the window under the name that it has over HTTP too, with
//! the same payload, in order.

use holdfast_api::desktop::{AppEvent, RemoteTab, Resync, RuntimeStateProjection, SessionFrames};
use holdfast_desktop::Desktop;
use serde::{Deserialize, Serialize};
use tauri::{AppHandle, Emitter, Manager, Runtime};
use tauri_specta::Event;

/// The one window.
pub const WINDOW: &str = "main";

/// RS-18: the projection changed.
#[derive(Debug, Clone, Serialize, Deserialize, specta::Type, Event)]
#[tauri_specta(event_name = "runtime-state:changed")]
pub struct RuntimeStateChanged(pub RuntimeStateProjection);

/// RS-25: something was missed: read everything again.
#[derive(Debug, Clone, Serialize, Deserialize, specta::Type, Event)]
#[tauri_specta(event_name = "desktop:resync")]
pub struct DesktopResync(pub Resync);

/// RS-25: a remote connection changed.
#[derive(Debug, Clone, Serialize, Deserialize, specta::Type, Event)]
#[tauri_specta(event_name = "remote-tab:updated")]
pub struct RemoteTabUpdated(pub RemoteTab);

/// Frames of sessions, in order.
#[derive(Debug, Clone, Serialize, Deserialize, specta::Type, Event)]
#[tauri_specta(event_name = "session:frames")]
pub struct SessionFramesArrived(pub SessionFrames);

/// Sends the app's events to the window from now on, until the app is dropped.
pub fn begin<R: Runtime>(handle: &AppHandle<R>) {
    let Some(desktop) = handle.try_state::<Desktop>() else {
        return;
    };
    let mut events = desktop.events();
    let handle = handle.clone();
    tauri::async_runtime::spawn(async move {
        loop {
            let event = events.next().await;
            if let Err(error) = send(&handle, event) {
                tracing::warn!(%error, "an event did not reach the window");
            }
        }
    });
}

/// Sends one event to the window.
///
/// # Errors
/// The window is gone.
pub fn send<R: Runtime, H: Emitter<R> + Manager<R>>(
    handle: &H,
    event: AppEvent,
) -> tauri::Result<()> {
    match event {
        AppEvent::RuntimeStateChanged(projection) => {
            RuntimeStateChanged(projection).emit_to(handle, WINDOW)
        }
        AppEvent::Resync(resync) => DesktopResync(resync).emit_to(handle, WINDOW),
        AppEvent::RemoteTabUpdated(tab) => RemoteTabUpdated(tab).emit_to(handle, WINDOW),
        AppEvent::SessionFrames(frames) => SessionFramesArrived(frames).emit_to(handle, WINDOW),
    }
}
