//! A data folder, two projects, two scripted providers, and an app over a real host.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_api::app::{Nothing, Tab};
use holdfast_api::desktop::{AppEvent, NewSession, RuntimeStateProjection, TabView, Topic};
use holdfast_api::session::PendingPrompt;
use holdfast_api::{App, SessionHost};
use holdfast_controller::config::Config;
use holdfast_controller::models::{ConfiguredModels, RequestLimits};
use holdfast_controller::source::SystemSource;
use holdfast_controller::{Host, HostOptions};
use holdfast_desktop::{Desktop, DesktopOptions, Events, KeyStore, StoredKeys};
use holdfast_testkit::ModelServer;
use holdfast_testkit::wait::SOON;
use tempfile::TempDir;

/// Everything that outlives an app.
pub(crate) struct Stage {
    folder: TempDir,
    pub(crate) left: ModelServer,
    pub(crate) right: ModelServer,
    pub(crate) keychain: Option<Arc<dyn KeyStore>>,
}

/// An app and its host.
pub(crate) struct Stand {
    pub(crate) app: Desktop,
    pub(crate) host: Host,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let stage = Self {
            folder: TempDir::new().unwrap(),
            left: ModelServer::start(Vec::new()),
            right: ModelServer::start(Vec::new()),
            keychain: None,
        };
        for folder in ["data", "left", "right"] {
            std::fs::create_dir(stage.path(folder)).unwrap();
        }
        let config = format!(
            "# mine\ndefault_model = \"left/one\" # keep\n\n[providers.left]\nbase_url = {:?}\nmodels = \
             [\"one\"]\n\n[providers.right]\nbase_url = {:?}\nmodels = [\"one\"]\n",
            stage.left.url(),
            stage.right.url(),
        );
        std::fs::write(stage.config(), config).unwrap();
        stage
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.path("data")
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.data().join("config.toml")
    }

    pub(crate) fn layout_file(&self) -> PathBuf {
        self.data().join("desktop.json")
    }

    /// A host and an app on what is there.
    pub(crate) fn start(&self) -> Stand {
        let config = Config::read(&self.config()).unwrap();
        let keys = Arc::new(StoredKeys::new(&self.data(), self.keychain.clone()));
        let models =
            ConfiguredModels::new(config.clone(), RequestLimits::default()).with_keys(keys.clone());
        let host = Host::new(HostOptions::new(
            self.data(),
            config,
            Arc::new(SystemSource),
            Arc::new(models.clone()),
        ))
        .unwrap();
        let app = Desktop::start(DesktopOptions {
            data: self.data(),
            host: Arc::new(host.clone()) as Arc<dyn SessionHost>,
            hub: Arc::clone(host.hub()),
            models,
            keys,
            surface: "window".to_owned(),
            demo_folder: self.path("demo"),
            retry_enabled: false,
            host_silence: holdfast_desktop::HOST_SILENCE,
        })
        .unwrap();
        Stand { app, host }
    }
}

impl Stand {
    pub(crate) async fn tab(&self, workspace: &Path, model: &str, mode: &str) -> TabView {
        self.app
            .new_session(NewSession {
                workspace_root: workspace.to_string_lossy().into_owned(),
                model: model.to_owned(),
                mode: mode.to_owned(),
                host_id: String::new(),
            })
            .await
            .unwrap()
    }

    /// The host ends as at a quit, and the app with it.
    pub(crate) async fn quit(self) {
        drop(self.app);
        self.host.close().await;
    }

    pub(crate) async fn projection(&self) -> RuntimeStateProjection {
        self.app
            .get_runtime_state_snapshot(Nothing {})
            .await
            .unwrap()
    }

    /// The projection, as soon as it is as wanted; it may be already.
    pub(crate) async fn reach(
        &self,
        events: &mut Events,
        what: &str,
        wanted: impl Fn(&RuntimeStateProjection) -> bool,
    ) -> RuntimeStateProjection {
        let now = self.projection().await;
        if wanted(&now) {
            return now;
        }
        wait_for_projection(events, what, wanted).await
    }

    pub(crate) async fn prompts(&self, tab: &TabView) -> Vec<PendingPrompt> {
        self.app.pending_prompts(tab_of(tab)).await.unwrap()
    }
}

pub(crate) fn tab_of(tab: &TabView) -> Tab {
    Tab {
        tab_id: tab.tab_id.clone(),
    }
}

pub(crate) fn topic<'a>(
    projection: &'a RuntimeStateProjection,
    tab: &TabView,
) -> Option<&'a Topic> {
    projection
        .topics
        .iter()
        .find(|topic| topic.topic_id == tab.session_id)
}

/// Waits for an event, with a deadline.
pub(crate) async fn wait_for<T>(
    events: &mut Events,
    what: &str,
    mut wanted: impl FnMut(AppEvent) -> Option<T>,
) -> T {
    tokio::time::timeout(SOON, async {
        loop {
            if let Some(found) = wanted(events.next().await) {
                return found;
            }
        }
    })
    .await
    .unwrap_or_else(|_| panic!("waited in vain for: {what}"))
}

/// Waits for a projection.
pub(crate) async fn wait_for_projection(
    events: &mut Events,
    what: &str,
    wanted: impl Fn(&RuntimeStateProjection) -> bool,
) -> RuntimeStateProjection {
    wait_for(events, what, |event| match event {
        AppEvent::RuntimeStateChanged(projection) if wanted(&projection) => Some(projection),
        _ => None,
    })
    .await
}
