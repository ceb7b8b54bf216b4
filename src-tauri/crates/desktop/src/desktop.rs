//! The app itself: what it is made of, and its life from start to end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use holdfast_api::SessionHost;
use holdfast_api::desktop::{Freshness, RuntimeStateProjection};
use holdfast_api::event::{Event, Frame};
use holdfast_api::session::session_path;
use holdfast_controller::hub::Hub;
use holdfast_controller::models::ConfiguredModels;
use holdfast_domain::canonical::hex;
use holdfast_domain::runtime::observed::Observed;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::catalogue::Catalogue;
use crate::config_file::ConfigFile;
use crate::error::DesktopError;
use crate::events::Events;
use crate::hosts::{Hosts, SILENCE};
use crate::keys::StoredKeys;
use crate::projection::{
    Binding, Bindings, Board, LOCAL, Listed, Published, Stated, States, Titles, topics,
};
use crate::shelf::Shelf;
use crate::{restore, watcher};

/// What the app is made of.
pub struct DesktopOptions {
    /// The data folder; it exists.
    pub data: PathBuf,
    /// The host of this machine's sessions.
    pub host: Arc<dyn SessionHost>,
    /// Its event stream.
    pub hub: Arc<Hub>,
    /// Its models; a changed provider holds for the next request.
    pub models: ConfiguredModels,
    /// Where keys are kept; the same that the models were given.
    pub keys: Arc<StoredKeys>,
    /// Name of the surface in recovery records (TR-29): `window` or `web`.
    pub surface: String,
    /// Where sample projects are made; outside the data folder.
    pub demo_folder: PathBuf,
    /// Retry of unknown effects is allowed on this host (TR-35).
    pub retry_enabled: bool,
    /// RS-29: a host's event stream without a byte for this long is opened anew;
    /// [`HOST_SILENCE`] but in tests.
    pub host_silence: Duration,
}

/// RS-29: 45 s.
pub const HOST_SILENCE: Duration = SILENCE;

/// TR-35: whether the person who started this program allows it a person's retry.
pub fn retry_enabled() -> bool {
    std::env::var_os("REASONIX_TOOL_RECOVERY_RETRY").is_some_and(|value| value == "1")
}

/// The app. Clones are the same app; its tasks end when the last clone is dropped.
#[derive(Clone)]
pub struct Desktop {
    pub(crate) inner: Arc<Inner>,
    _tasks: Arc<DropGuard>,
}

/// What the app's operations and tasks share.
pub(crate) struct Inner {
    pub(crate) data: PathBuf,
    pub(crate) host: Arc<dyn SessionHost>,
    pub(crate) hub: Arc<Hub>,
    pub(crate) models: ConfiguredModels,
    pub(crate) keys: Arc<StoredKeys>,
    pub(crate) surface: String,
    pub(crate) demo_folder: PathBuf,
    pub(crate) retry_enabled: bool,
    pub(crate) shelf: Shelf,
    pub(crate) config: ConfigFile,
    pub(crate) catalogue: Catalogue,
    pub(crate) board: Board,
    pub(crate) hosts: Hosts,
    /// The projection must be made anew.
    pub(crate) dirty: Arc<Notify>,
    /// The catalogue must be read anew.
    pub(crate) rows_changed: Notify,
    /// RS-25: grows with every resync that any reader was told.
    pub(crate) recovery_version: Arc<AtomicU64>,
    /// What a person should hear when the app is first shown.
    pub(crate) first_words: Vec<Frame>,
}

impl Desktop {
    /// Reads what was left, opens the sessions of its tabs in the background so that recovery runs,
    /// and begins to watch. Must be called inside a tokio runtime. Blocking for one small file.
    ///
    /// # Errors
    /// `layout_unusable`.
    pub fn start(options: DesktopOptions) -> Result<Self, DesktopError> {
        let (shelf, aside) = Shelf::open(&options.data)?;
        let first_words = aside.map(|name| {
            tracing::warn!("the layout could not be read and was kept aside as {name}");
            notice(
                "",
                "layout_kept_aside",
                format!(
                    "The tabs of last time could not be read. The file is kept as {name} in the \
                     data folder; all sessions are intact and in the list."
                ),
            )
        });
        let stopped = CancellationToken::new();
        let dirty = Arc::<Notify>::default();
        let epoch = || hex(&rand::random::<[u8; 16]>());
        let inner = Arc::new(Inner {
            shelf,
            config: ConfigFile::new(&options.data),
            data: options.data,
            host: options.host,
            hub: options.hub,
            models: options.models,
            keys: options.keys,
            surface: options.surface,
            demo_folder: options.demo_folder,
            retry_enabled: options.retry_enabled,
            catalogue: Catalogue::default(),
            board: Board::new(epoch()),
            hosts: Hosts::new(
                epoch(),
                Arc::clone(&dirty),
                stopped.clone(),
                options.host_silence,
            ),
            dirty,
            rows_changed: Notify::new(),
            recovery_version: Arc::default(),
            first_words: first_words.into_iter().collect(),
        });
        watcher::start(&inner, &stopped);
        for record in inner.shelf.read(|remembered| remembered.hosts.clone()) {
            inner.attach(&record);
        }
        restore::start(&inner, &stopped);
        Ok(Self {
            inner,
            _tasks: Arc::new(stopped.drop_guard()),
        })
    }

    /// The events from now on. Each reader pulls at its own pace and delays nobody (RS-12).
    pub fn events(&self) -> Events {
        Events::new(&self.inner)
    }
}

impl Inner {
    /// RS-18: the projection, made anew from what is published now.
    pub(crate) fn refreshed(&self) -> RuntimeStateProjection {
        let titles: Titles = self.shelf.read(|remembered| {
            let tabs = remembered.tabs.iter();
            tabs.map(|tab| {
                (
                    (scope_of(&tab.host_id), tab.session_id.clone()),
                    tab.title.clone(),
                )
            })
            .collect()
        });
        let fresh = self.board.refresh(self, self, |sessions| {
            let mut lists = vec![Listed::local(self.catalogue.rows())];
            lists.extend(self.hosts.all().iter().map(|host| host.listed()));
            topics(sessions, &lists, &titles)
        });
        if !fresh {
            // The bindings kept moving: their last move is a boundary of its own.
            self.dirty.notify_one();
        }
        self.board.current()
    }

    /// Tells all readers something that a person should know.
    pub(crate) fn tell(&self, session_id: &str, code: &str, message: &str) {
        self.hub
            .publish(&notice(session_id, code, message.to_owned()));
    }
}

fn notice(session_id: &str, code: &str, message: String) -> Frame {
    Frame {
        session_id: session_id.to_owned(),
        turn_id: String::new(),
        seq: None,
        event: Event::Notice {
            code: code.to_owned(),
            message,
        },
    }
}

impl Bindings for Inner {
    fn bindings(&self) -> Vec<Binding> {
        let mut bindings: Vec<Binding> = self.shelf.read(|remembered| {
            remembered
                .tabs
                .iter()
                .map(|tab| Binding {
                    tab_id: tab.tab_id.clone(),
                    session_path: session_path(&tab.session_id),
                    scope: scope_of(&tab.host_id),
                    workspace_root: tab.workspace_root.clone(),
                    topic_id: tab.session_id.clone(),
                    session_generation: tab.generation,
                    open: true,
                    remote: !tab.host_id.is_empty(),
                    host_id: Some(tab.host_id.clone()).filter(|id| !id.is_empty()),
                    controller: String::new(),
                })
                .collect()
        });
        // Outside the app's lock; a difference between the two looks makes the sample void.
        let mut shown = BTreeMap::<(String, String), Vec<usize>>::new();
        for (at, binding) in bindings.iter().enumerate() {
            let key = (binding.scope.clone(), binding.session_path.clone());
            shown.entry(key).or_default().push(at);
        }
        for ((scope, path), stated) in self.states() {
            match shown.get(&(scope.clone(), path.clone())) {
                Some(tabs) => {
                    for at in tabs {
                        bindings[*at].controller.clone_from(&stated.controller);
                    }
                }
                None => bindings.push(self.detached(scope, path, stated.controller)),
            }
        }
        bindings
    }
}

/// The scope of a host; this machine's id is empty.
fn scope_of(host_id: &str) -> String {
    if host_id.is_empty() {
        LOCAL.to_owned()
    } else {
        host_id.to_owned()
    }
}

impl Inner {
    /// A session that runs without a tab.
    fn detached(&self, scope: String, session_path: String, controller: String) -> Binding {
        let id = session_path
            .strip_prefix("session-id:")
            .unwrap_or(&session_path)
            .to_owned();
        let remote = scope != LOCAL;
        let workspace = if remote {
            let host = self.hosts.get(&scope);
            host.and_then(|host| host.catalogue.workspace(&id))
        } else {
            self.catalogue.workspace(&id)
        };
        Binding {
            tab_id: String::new(),
            workspace_root: workspace.unwrap_or_default(),
            topic_id: id,
            session_path,
            session_generation: 0,
            open: false,
            remote,
            host_id: remote.then(|| scope.clone()),
            scope,
            controller,
        }
    }
}

impl States for Inner {
    fn states(&self) -> Published {
        let own = self.hub.runtime_states().sessions.into_iter().map(|row| {
            let stated = Stated {
                controller: row.state.runtime_epoch.clone(),
                freshness: Freshness::Synced,
                state: Observed::Snapshot(row.state),
            };
            ((LOCAL.to_owned(), row.session_path), stated)
        });
        let mut states: Published = own.collect();
        for host in self.hosts.all() {
            let scope = host.id();
            let known = host.stated().into_iter();
            states.extend(known.map(|(path, stated)| ((scope.to_owned(), path), stated)));
        }
        states
    }
}
