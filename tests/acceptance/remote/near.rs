//! The app on this machine, in front of hosts on others.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use holdfast_api::app::{Nothing, Tab, TabSubmit};
use holdfast_api::desktop::{
    AppEvent, Freshness, OpenSession, RuntimeSession, RuntimeStateProjection, TabView,
};
use holdfast_api::hosts::{ConnectionState, HostChange, HostView, HostWay};
use holdfast_api::{App, SessionHost};
use holdfast_controller::config::Config;
use holdfast_controller::models::{ConfiguredModels, RequestLimits};
use holdfast_controller::source::SystemSource;
use holdfast_controller::{Host, HostOptions};
use holdfast_desktop::{Desktop, DesktopOptions, Events, StoredKeys};
use holdfast_domain::runtime::snapshot::RuntimeState;
use holdfast_testkit::LyingHost;
use holdfast_testkit::wait::SOON;

use crate::agent::scene::{Scene, eventually};

/// What outlives the app.
pub(crate) struct Near {
    folder: tempfile::TempDir,
    pub(crate) silence: Duration,
}

/// The app.
pub(crate) struct Stand {
    pub(crate) app: Desktop,
    host: Host,
}

impl Near {
    pub(crate) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            silence: holdfast_desktop::HOST_SILENCE,
        }
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub(crate) fn start(&self) -> Stand {
        let config = Config::read(&self.data().join("config.toml")).unwrap();
        let keys = Arc::new(StoredKeys::new(&self.data(), None));
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
            demo_folder: self.data().join("demo"),
            retry_enabled: false,
            host_silence: self.silence,
        })
        .unwrap();
        Stand { app, host }
    }
}

impl Stand {
    pub(crate) async fn quit(self) {
        drop(self.app);
        self.host.close().await;
    }

    /// Puts a host on the list, and waits until its connection stands.
    pub(crate) async fn add(&self, name: &str, network: &LyingHost, token: &str) -> String {
        let list = self
            .app
            .save_host(HostChange {
                host_id: String::new(),
                name: name.to_owned(),
                way: HostWay::Direct { url: network.url() },
                token: token.to_owned(),
            })
            .await
            .unwrap();
        let host = list.hosts.into_iter().find(|host| host.name == name);
        let host_id = host.unwrap().host_id;
        self.stands(&host_id, ConnectionState::Connected).await;
        host_id
    }

    pub(crate) async fn view(&self, host_id: &str) -> HostView {
        let list = self.app.list_hosts(Nothing {}).await.unwrap();
        let mut hosts = list.hosts.into_iter();
        hosts.find(|host| host.host_id == host_id).unwrap()
    }

    pub(crate) async fn stands(&self, host_id: &str, state: ConnectionState) -> HostView {
        eventually(&format!("{state:?}"), SOON, async || {
            let view = self.view(host_id).await;
            (view.state == state).then_some(view)
        })
        .await
    }

    /// A tab of a session over there, confirmed.
    pub(crate) async fn open(&self, host_id: &str, session: &str) -> TabView {
        let open = OpenSession {
            session_id: session.to_owned(),
            host_id: host_id.to_owned(),
        };
        let tab = self.app.open_session(open).await.unwrap();
        self.until(&tab, "the first confirmation", |_, freshness| {
            freshness == Freshness::Synced
        })
        .await;
        tab
    }

    pub(crate) async fn projection(&self) -> RuntimeStateProjection {
        self.app
            .get_runtime_state_snapshot(Nothing {})
            .await
            .unwrap()
    }

    pub(crate) async fn row(&self, tab: &TabView) -> Option<RuntimeSession> {
        let sessions = self.projection().await.sessions;
        sessions.into_iter().find(|row| row.tab_id == tab.tab_id)
    }

    /// Waits for the tab's session to be so.
    pub(crate) async fn until(
        &self,
        tab: &TabView,
        what: &str,
        wanted: impl Fn(&RuntimeState, Freshness) -> bool,
    ) -> RuntimeSession {
        eventually(what, SOON, async || {
            let row = self.row(tab).await?;
            let state = row.state.snapshot()?;
            wanted(state, row.freshness).then(|| row.clone())
        })
        .await
    }

    pub(crate) async fn submit(&self, tab: &TabView, input: &str) -> String {
        let submit = TabSubmit {
            tab_id: tab.tab_id.clone(),
            input: input.to_owned(),
            submission_id: format!("key of {input}"),
        };
        self.app.submit(submit).await.unwrap().turn_id
    }
}

/// A host over there and the network before it.
pub(crate) async fn far(mode: &'static str) -> (Scene, LyingHost) {
    let scene = Scene::new(mode).await;
    let network = LyingHost::start(Some(scene.host.url()));
    (scene, network)
}

pub(crate) fn tab_of(tab: &TabView) -> Tab {
    Tab {
        tab_id: tab.tab_id.clone(),
    }
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
