//! The data folder, and a host on it.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use holdfast_controller::config::Config;
use holdfast_controller::models::{ConfiguredModels, RequestLimits};
use holdfast_controller::source::SystemSource;
use holdfast_controller::{Host, HostOptions};
use holdfast_desktop::{StoredKeys, retry_enabled};
use holdfast_serve::LocalSocket;

use crate::keychain::keychain;

/// The data folder: as given, else `holdfast` in the platform's local data folder.
pub(crate) fn folder(given: Option<PathBuf>) -> anyhow::Result<PathBuf> {
    let folder = match given {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => dirs::data_local_dir()
            .context(
                "this user has no data folder; say with --data where everything is to be kept",
            )?
            .join("holdfast"),
    };
    std::path::absolute(&folder)
        .with_context(|| format!("{} can't be used as data folder", folder.display()))
}

/// A host, and what it was made of.
pub(crate) struct Parts {
    pub(crate) data: PathBuf,
    pub(crate) host: Host,
    pub(crate) models: ConfiguredModels,
    pub(crate) keys: Arc<StoredKeys>,
    /// Where this host is asked about sessions that it holds.
    pub(crate) local: Option<LocalSocket>,
}

/// A host on that folder, with its configuration. `workspace` is the default of new sessions.
pub(crate) fn host(data: PathBuf, workspace: Option<PathBuf>) -> anyhow::Result<Host> {
    Ok(make(data, workspace, None, true)?.host)
}

/// The same with its parts, and with a local socket; must be called inside a tokio runtime.
pub(crate) fn parts(data: PathBuf, workspace: Option<PathBuf>) -> anyhow::Result<Parts> {
    make(data, workspace, LocalSocket::for_user(rand::random()), true)
}

/// The same for one task; without anybody who can be asked, unless `attended`.
pub(crate) fn parts_of_task(data: PathBuf, attended: bool) -> anyhow::Result<Parts> {
    make(data, None, LocalSocket::for_user(rand::random()), attended)
}

fn make(
    data: PathBuf,
    workspace: Option<PathBuf>,
    local: Option<LocalSocket>,
    attended: bool,
) -> anyhow::Result<Parts> {
    holdfast_files::create_private_folder(&data).with_context(|| {
        format!(
            "the data folder {} can't be made; choose another with --data",
            data.display()
        )
    })?;
    let config = Config::read(&data.join("config.toml"))?;
    let keys = Arc::new(StoredKeys::new(&data, Some(keychain(&data))));
    let models =
        ConfiguredModels::new(config.clone(), RequestLimits::default()).with_keys(keys.clone());
    let mut options = HostOptions::new(
        data.clone(),
        config,
        Arc::new(SystemSource),
        Arc::new(models.clone()),
    );
    options.retry_enabled = retry_enabled();
    options.attended = attended;
    options.workspace = workspace
        .map(|path| {
            std::fs::canonicalize(&path).with_context(|| {
                format!(
                    "the workspace {} does not exist or can't be read; choose another folder",
                    path.display()
                )
            })
        })
        .transpose()?;
    options.local_socket = local.as_ref().map(|socket| socket.path().to_path_buf());
    Ok(Parts {
        data,
        host: Host::new(options)?,
        models,
        keys,
        local,
    })
}
