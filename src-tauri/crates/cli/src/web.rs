//! `holdfast web`: serve, with the app and its user interface for a browser.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, bail};
use holdfast_api::App;
use holdfast_controller::Host;
use holdfast_desktop::{Desktop, DesktopOptions, default_demo_folder};
use holdfast_serve::{Logins, UiFolder, Web};

use crate::{arguments, data, serve};

const UI: &str = "HOLDFAST_UI";

pub(crate) async fn web(folder: Option<PathBuf>, options: arguments::Serve) -> anyhow::Result<u8> {
    // Before anything is started: without it there is nothing to show.
    let ui = ui_folder()?;
    serve::serve_with(folder, options, |parts| {
        let logins = Logins::default();
        let desktop = desktop(parts)?;
        let events = desktop.clone();
        let web = Web {
            app: Arc::new(desktop) as Arc<dyn App>,
            events: Arc::new(move || events.events().into_stream()),
            ui,
            logins: logins.clone(),
        };
        Ok(Some(web))
    })
    .await
}

fn desktop(parts: &data::Parts) -> anyhow::Result<Desktop> {
    let host: Host = parts.host.clone();
    Ok(Desktop::start(DesktopOptions {
        data: parts.data.clone(),
        hub: Arc::clone(host.hub()),
        host: Arc::new(host),
        models: parts.models.clone(),
        keys: Arc::clone(&parts.keys),
        surface: "web".to_owned(),
        demo_folder: default_demo_folder(),
        retry_enabled: holdfast_desktop::retry_enabled(),
        host_silence: holdfast_desktop::HOST_SILENCE,
    })?)
}

/// The built user interface: as the environment says, else beside this program, else in the
/// checkout that this program was built in.
fn ui_folder() -> anyhow::Result<UiFolder> {
    if let Some(given) = std::env::var_os(UI).filter(|given| !given.is_empty()) {
        let given = PathBuf::from(given);
        return UiFolder::new(&given).with_context(|| {
            format!(
                "ui_missing: {} (from {UI}) holds no index.html; nothing was started; build the \
                 user interface with `npm run build`, or name another folder",
                given.display()
            )
        });
    }
    let program = std::env::current_exe().context("this program's own place can't be told")?;
    let beside = program.parent().map(|folder| folder.join("ui"));
    let checkout = program
        .ancestors()
        .nth(3)
        .map(|folder| folder.join("ui").join("dist"));
    let found = [beside, checkout]
        .into_iter()
        .flatten()
        .find_map(|folder| UiFolder::new(&folder));
    match found {
        Some(folder) => Ok(folder),
        None => bail!(
            "ui_missing: the built user interface was not found beside the program or in its \
             checkout; nothing was started; build it with `npm run build`, or name its folder in \
             {UI}"
        ),
    }
}
