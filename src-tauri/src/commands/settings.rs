//! Commands about settings, models, providers and other machines, the folder dialog, and quitting.

use holdfast_api::ApiError;
use holdfast_api::app::Nothing;
use holdfast_api::desktop::{
    ModelList, ProviderChange, ProviderCheck, ProviderList, QuitAnswer, Settings,
};
use holdfast_api::error::ErrorBody;
use holdfast_api::hosts::{HostChange, HostCheck, HostList, HostRef};
use tauri::{AppHandle, Runtime};
use tauri_plugin_dialog::{DialogExt, FilePath};

use crate::commands::{Request, commands};

commands! {
    /// Models on offer.
    list_models(Nothing) -> ModelList;
    /// Settings of the app.
    get_settings(Nothing) -> Settings;
    /// Stores settings of the app.
    save_settings(Settings) -> Settings;
    /// Providers as configured, without keys.
    list_providers(Nothing) -> ProviderList;
    /// Adds or changes a provider; a key goes to the keychain and is never shown again.
    save_provider(ProviderChange) -> ProviderList;
    /// Asks a provider for one short answer and says what is wrong.
    test_provider(ProviderChange) -> ProviderCheck;
    /// Other machines, with how their connections stand.
    list_hosts(Nothing) -> HostList;
    /// Adds or changes a machine; a token goes to the keychain and is never shown again.
    save_host(HostChange) -> HostList;
    /// Forgets a machine, its token and its tabs; its sessions go on there.
    remove_host(HostRef) -> HostList;
    /// Asks a machine whether it lets us in, and says what is wrong.
    test_host(HostChange) -> HostCheck;
    /// Tries a connection again now.
    retry_host(HostRef) -> Nothing;
}

/// Asks the person for a folder with the system's dialog; its absolute path, or nothing when the
/// dialog was closed without a choice. Only the window can do it.
///
/// # Errors
/// `folder_unsupported`: the folder's path can't be written as text.
#[tauri::command]
#[specta::specta]
pub async fn pick_folder<R: Runtime>(handle: AppHandle<R>) -> Result<Option<String>, ErrorBody> {
    let (chosen, choice) = tokio::sync::oneshot::channel();
    handle.dialog().file().pick_folder(move |folder| {
        // Nobody waits any more only when the window is gone.
        let _ = chosen.send(folder);
    });
    let folder = choice.await.ok().flatten();
    folder
        .map(text_of)
        .transpose()
        .map_err(|error| error.body())
}

/// What the page says about quitting (SV-09). Only the window can.
///
/// # Errors
/// `body_invalid`.
#[tauri::command]
#[specta::specta]
pub async fn quit<R: Runtime>(
    handle: AppHandle<R>,
    request: Request<QuitAnswer>,
) -> Result<(), ErrorBody> {
    let answer = request.read().map_err(|error| error.body())?;
    crate::quitting::hear(&handle, answer.word);
    Ok(())
}

fn text_of(folder: FilePath) -> Result<String, ApiError> {
    let path = folder.into_path().ok();
    path.and_then(|path| path.into_os_string().into_string().ok())
        .ok_or_else(|| {
            ApiError::bad_request(
                "folder_unsupported",
                "the folder's path can't be written as text; nothing was opened; choose another \
                 folder",
            )
        })
}
