//! Signals that ask the app to end, as a terminal or the end of a login session sends them.

use tauri::{AppHandle, Runtime};

/// SIGTERM and SIGINT quit the app, and stop what runs.
#[cfg(unix)]
pub(crate) fn watch<R: Runtime>(handle: AppHandle<R>) {
    use holdfast_api::desktop::Parting;
    use tauri::Manager;
    use tokio::signal::unix::{SignalKind, signal};

    tauri::async_runtime::spawn(async move {
        let signals = (
            signal(SignalKind::terminate()),
            signal(SignalKind::interrupt()),
        );
        let (Ok(mut terminate), Ok(mut interrupt)) = signals else {
            tracing::warn!("signals can't be heard; they end the app at once");
            return;
        };
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        tracing::info!("told to end");
        // SV-09: as for any host. There is nobody to ask.
        handle
            .state::<crate::quitting::Quitting>()
            .decide(Parting::Stop);
        handle.exit(0);
    });
}

/// Elsewhere a window is asked to close by other means, which Tauri hears.
#[cfg(not(unix))]
pub(crate) fn watch<R: Runtime>(_: AppHandle<R>) {}
