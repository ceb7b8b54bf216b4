//! Events of the app, as the window `main` hears them.
//!
//! Guarantee: every `AppEvent` reaches the window under the name that it has over HTTP too, with
//! the same payload, in order.

use holdfast_api::desktop::{
    AppEvent, RemoteTab, Resync, RuntimeStateProjection, SessionFrames,
};
use serde::{Deserialize, Serialize};
use tauri::{Emitter, Manager, Runtime};
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
