//! One host: its connection, what is known of its sessions, and when it is looked at again.
//!
//! Guarantees: subscribed first and read then, so that nothing falls between; facts stay when the
//! connection goes and are marked unconfirmed (RS-36); a refused token is not tried again by itself;
//! reads in flight are shared (RS-33).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{BoxFuture, Shared};
use holdfast_api::event::Frame;
use holdfast_domain::runtime::remote::{Counters, Known, RemoteSessions};
use tokio::sync::{Notify, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::client::Client;
use crate::dialect::Dialect;
use crate::error::RemoteError;
use crate::link::Link;
use crate::places::Places;
use crate::{follow, verify};

/// How a connection stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// It is being made.
    Connecting,
    /// It stands.
    Connected,
    /// It is gone; the next try comes by itself.
    Waiting {
        /// When.
        until: tokio::time::Instant,
        /// Stable code of the failure.
        code: String,
        /// For a person.
        message: String,
    },
    /// The host refused in a way that trying again does not change.
    Refused {
        /// Stable code.
        code: String,
        /// For a person.
        message: String,
    },
}

/// What is shown of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConnectionView {
    /// How it stands.
    pub condition: Condition,
    /// RS-37.
    pub counters: (u64, u64, u64),
}

/// Where frames go.
pub trait FrameSink: Send + Sync {
    /// Passes a frame on, and answers its number in our own stream.
    fn frame(&self, frame: &Frame) -> u64;
    /// Frames are missing: what is shown of these sessions, by path, is read anew.
    fn gap(&self, paths: &[String]);
    /// Facts, or what is known of their freshness, changed.
    fn changed(&self);
    /// The newest number of our own stream.
    fn latest(&self) -> u64;
    /// How our own stream writes a number.
    fn id(&self, number: u64) -> String;
}

/// What a connection is made of.
pub struct ConnectionOptions {
    /// How its client comes about.
    pub link: Arc<dyn Link>,
    /// Where frames go.
    pub sink: Arc<dyn FrameSink>,
}

/// A connection; it ends when the last clone is dropped.
#[derive(Clone)]
pub struct Connection {
    pub(crate) inner: Arc<Inner>,
    _task: Arc<DropGuard>,
}

pub(crate) type Verification = Shared<BoxFuture<'static, bool>>;

pub(crate) struct Inner {
    pub(crate) link: Arc<dyn Link>,
    /// The client of the latest connection.
    client: Mutex<Option<Client>>,
    pub(crate) sink: Arc<dyn FrameSink>,
    sessions: Mutex<RemoteSessions>,
    places: Mutex<Places>,
    condition: watch::Sender<Condition>,
    /// A person does not want to wait.
    pub(crate) now: Notify,
    /// Something asks for a read.
    pub(crate) doubt: Notify,
    /// The read that is on its way, if one is.
    pub(crate) reading: Mutex<Option<Verification>>,
    /// RS-34: on this generation the list of states is not supported.
    pub(crate) without_list: Mutex<Option<u64>>,
    /// How the host of the latest connection speaks.
    dialect: Mutex<Dialect>,
    /// Something changed of what a host without numbered frames shows.
    pub(crate) stale: Notify,
}

impl Connection {
    /// Begins to connect. Must be called inside a tokio runtime.
    pub fn start(options: ConnectionOptions) -> Self {
        let inner = Arc::new(Inner {
            link: options.link,
            client: Mutex::default(),
            sink: options.sink,
            sessions: Mutex::default(),
            places: Mutex::default(),
            condition: watch::Sender::new(Condition::Connecting),
            now: Notify::new(),
            doubt: Notify::new(),
            reading: Mutex::default(),
            without_list: Mutex::default(),
            dialect: Mutex::default(),
            stale: Notify::new(),
        });
        let stopped = CancellationToken::new();
        tokio::spawn({
            let (inner, stopped) = (Arc::clone(&inner), stopped.clone());
            async move {
                tokio::select! {
                    () = stopped.cancelled() => {}
                    () = follow::run(&inner) => {}
                    () = verify::run(&inner) => {}
                    () = follow::reread(&inner) => {}
                }
            }
        });
        Self {
            inner,
            _task: Arc::new(stopped.drop_guard()),
        }
    }

    /// How it stands, and every change of it.
    pub fn condition(&self) -> watch::Receiver<Condition> {
        self.inner.condition.subscribe()
    }

    /// How its host speaks, as far as was found on the latest connection.
    pub fn dialect(&self) -> Dialect {
        self.inner.dialect()
    }

    /// How it stands, with its counters.
    pub fn view(&self) -> ConnectionView {
        let Counters {
            stale,
            conflicts,
            failures,
        } = self.inner.sessions().counters();
        ConnectionView {
            condition: self.inner.condition.borrow().clone(),
            counters: (stale, conflicts, failures),
        }
    }

    /// What is known of the sessions, by path.
    pub fn sessions(&self) -> Vec<(String, Known)> {
        let sessions = self.inner.sessions();
        let known = sessions.sessions().iter();
        known
            .map(|(path, known)| (path.clone(), known.clone()))
            .collect()
    }

    /// Which connection this is, counted from 1; 0 before the first.
    pub fn generation(&self) -> u64 {
        self.inner.sessions().generation()
    }

    /// Sessions that tabs show and that are not confirmed now, by path.
    pub fn unconfirmed(&self) -> Vec<String> {
        let sessions = self.inner.sessions();
        let bound = sessions.bound();
        let synced = |path: &String| {
            sessions
                .sessions()
                .get(path)
                .is_some_and(|known| known.synced)
        };
        bound.into_iter().filter(|path| !synced(path)).collect()
    }

    /// A tab shows this session.
    pub fn bind(&self, path: &str) {
        self.inner.sessions().bind(path);
        self.inner.doubt.notify_one();
    }

    /// No tab shows it any more.
    pub fn unbind(&self, path: &str) {
        self.inner.sessions().unbind(path);
    }

    /// RS-20, RS-25: reads now, or shares the read that is on its way; whether every bound session
    /// is confirmed then.
    pub async fn verify(&self) -> bool {
        verify::shared(&self.inner).await
    }

    /// Tries again now, also after a refusal.
    pub fn retry_now(&self) {
        self.inner.now.notify_one();
    }
}

impl Inner {
    /// The client of the latest connection.
    pub(crate) fn client(&self) -> Result<Client, RemoteError> {
        let client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        client.clone().ok_or(RemoteError::Disconnected)
    }

    pub(crate) fn dialect(&self) -> Dialect {
        *self.dialect.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn speak(&self, dialect: Dialect) {
        *self.dialect.lock().unwrap_or_else(PoisonError::into_inner) = dialect;
    }

    pub(crate) fn use_client(&self, client: Client) {
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = Some(client);
    }

    pub(crate) fn sessions(&self) -> MutexGuard<'_, RemoteSessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn is_connected(&self) -> bool {
        *self.condition.borrow() == Condition::Connected
    }

    pub(crate) fn stand(&self, condition: Condition) {
        self.condition.send_replace(condition);
        self.sink.changed();
    }
}
