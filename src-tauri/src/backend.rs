//! What is behind the window: the host of this machine's sessions, and the app on top of it.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use holdfast_controller::config::Config;
use holdfast_controller::models::{ConfiguredModels, RequestLimits};
use holdfast_controller::source::SystemSource;
use holdfast_controller::{Host, HostOptions};
use holdfast_desktop::{Desktop, DesktopOptions, StoredKeys, retry_enabled};
use holdfast_serve::LocalSocket;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::home::Home;
use crate::keychain::Keychain;

/// The host and the app. Opens no port; this user's command line reaches it by a local socket.
pub struct Backend {
    /// What the commands call.
    pub desktop: Desktop,
    host: Host,
    _stop: DropGuard,
}

impl Backend {
    /// Starts on a data folder, which is made when there is none. Must be called inside a tokio
    /// runtime. `demo_folder` is where sample projects are made.
    ///
    /// # Errors
    /// The folder can't be used, or the configuration in it can't be read; nothing was changed.
    pub fn start(home: &Home, demo_folder: PathBuf) -> anyhow::Result<Self> {
        let data = home.folder.clone();
        holdfast_files::create_private_folder(&data).with_context(|| {
            format!(
                "the data folder {} can't be made; choose another with HOLDFAST_HOME",
                data.display()
            )
        })?;
        let config = Config::read(&data.join("config.toml"))?;
        let keychain = Keychain {
            service: holdfast_desktop::keychain_service(&home.folder),
        };
        let keys = Arc::new(StoredKeys::new(&data, Some(Arc::new(keychain))));
        let models = ConfiguredModels::new(config.clone(), RequestLimits::default())
            .with_keys(Arc::<StoredKeys>::clone(&keys));
        let retry_enabled = retry_enabled();
        let local = LocalSocket::for_user(rand::random());
        let mut options = HostOptions::new(
            data.clone(),
            config,
            Arc::new(SystemSource),
            Arc::new(models.clone()),
        );
        options.retry_enabled = retry_enabled;
        options.local_socket = local.as_ref().map(|socket| socket.path().to_path_buf());
        let host = Host::new(options)?;
        let stopped = CancellationToken::new();
        if let Some(socket) = local {
            tokio::spawn(socket.run(host.clone(), stopped.clone()));
        }
        let desktop = Desktop::start(DesktopOptions {
            data,
            host: Arc::new(host.clone()),
            hub: Arc::clone(host.hub()),
            models,
            keys,
            surface: "window".to_owned(),
            demo_folder,
            retry_enabled,
            host_silence: holdfast_desktop::HOST_SILENCE,
        })?;
        Ok(Self {
            desktop,
            host,
            _stop: stopped.drop_guard(),
        })
    }

    /// Gives all sessions back. Kept commands go on under their supervisors and are found again at
    /// the next start; others are stopped, and what came of them is stored (SV-09).
    pub async fn close(self, keep: bool) {
        drop(self.desktop);
        if keep {
            self.host.release().await;
        } else {
            self.host.close().await;
        }
    }
}
