//! The app itself: what it is made of, and its life from start to end.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use holdfast_api::SessionHost;
use holdfast_api::desktop::RuntimeStateProjection;
use holdfast_api::event::{Event, Frame};
use holdfast_api::session::session_path;
use holdfast_controller::hub::Hub;
use holdfast_controller::models::ConfiguredModels;
use holdfast_domain::canonical::hex;
use holdfast_domain::runtime::snapshot::RuntimeState;
use tokio::sync::Notify;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::catalogue::Catalogue;
use crate::config_file::ConfigFile;
use crate::error::DesktopError;
use crate::events::Events;
use crate::keys::StoredKeys;
use crate::projection::{Binding, Bindings, Board, LOCAL, States, topics};
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
}

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
    /// The projection must be made anew.
    pub(crate) dirty: Notify,
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
            board: Board::new(hex(&rand::random::<[u8; 16]>())),
            dirty: Notify::new(),
            rows_changed: Notify::new(),
            recovery_version: Arc::default(),
            first_words: first_words.into_iter().collect(),
        });
        let stopped = CancellationToken::new();
        watcher::start(&inner, &stopped);
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
        let titles: BTreeMap<String, String> = self.shelf.read(|remembered| {
            remembered
                .tabs
                .iter()
                .map(|tab| (tab.session_id.clone(), tab.title.clone()))
                .collect()
        });
        let fresh = self.board.refresh(self, self, |sessions| {
            topics(sessions, &self.catalogue.rows(), &titles)
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
                    scope: LOCAL.to_owned(),
                    workspace_root: tab.workspace_root.clone(),
                    topic_id: tab.session_id.clone(),
                    session_generation: tab.generation,
                    open: true,
                    remote: false,
                    host_id: None,
                    controller: String::new(),
                })
                .collect()
        });
        // Outside the app's lock; a difference between the two looks makes the sample void.
        for row in self.hub.runtime_states().sessions {
            let mut shown = false;
            for binding in &mut bindings {
                if binding.session_path == row.session_path {
                    shown = true;
                    binding.controller.clone_from(&row.state.runtime_epoch);
                }
            }
            if !shown {
                bindings.push(self.detached(row.session_path, row.state.runtime_epoch));
            }
        }
        bindings
    }
}

impl Inner {
    /// A session that runs without a tab.
    fn detached(&self, session_path: String, controller: String) -> Binding {
        let id = session_path
            .strip_prefix("session-id:")
            .unwrap_or_default()
            .to_owned();
        Binding {
            tab_id: String::new(),
            scope: LOCAL.to_owned(),
            workspace_root: self.catalogue.workspace(&id).unwrap_or_default(),
            topic_id: id,
            session_path,
            session_generation: 0,
            open: false,
            remote: false,
            host_id: None,
            controller,
        }
    }
}

impl States for Inner {
    fn states(&self) -> BTreeMap<String, RuntimeState> {
        self.hub
            .runtime_states()
            .sessions
            .into_iter()
            .map(|row| (row.session_path, row.state))
            .collect()
    }
}
