//! One host: its connection, the list of its sessions, and what its tabs know of them.
//!
//! Guarantees: a tab whose session can't be asked about keeps what is known of it; only a host's own
//! word that there is no such session makes a tab unusable; one read serves all tabs (RS-33).

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_api::desktop::Freshness;
use holdfast_api::host::Selector;
use holdfast_api::hosts::{ConnectionState, HostView, HostWay};
use holdfast_api::session::session_path;
use holdfast_api::{ApiError, SessionHost};
use holdfast_controller::models::Keys;
use holdfast_remote::{
    Address, Client, Condition, Connection, ConnectionOptions, Destination, Dialect, Direct, Link,
    LinkError, RemoteHost, Tunnel,
};
use secrecy::SecretString;
use tokio::time::Instant;

use super::relay::{News, Relay};
use crate::catalogue::Catalogue;
use crate::desktop::Inner;
use crate::keys::StoredKeys;
use crate::projection::{Listed, Stated};
use crate::remembered::HostRecord;

/// A host that is attached.
pub(crate) struct Attached {
    id: String,
    pub(crate) host: RemoteHost,
    pub(crate) catalogue: Catalogue,
    news: Arc<News>,
}

/// The token of a host, among the keys.
pub(crate) fn key_name(host_id: &str) -> String {
    format!("host:{host_id}")
}

/// How a host is reached. `token` is taken instead of the stored one when it is not empty.
pub(crate) fn link_of(
    keys: &Arc<StoredKeys>,
    record: &HostRecord,
    token: &str,
    silence: Duration,
) -> Result<Arc<dyn Link>, LinkError> {
    let broken = |error: holdfast_remote::RemoteError| LinkError {
        code: "host_address_invalid",
        message: error.to_string(),
        lasting: true,
    };
    match &record.way {
        HostWay::Ssh {
            destination,
            program,
        } => {
            let destination = Destination {
                destination: destination.clone(),
                program: program.clone(),
                ssh_arguments: Vec::new(),
            };
            Ok(Arc::new(Tunnel::new(destination, silence)?))
        }
        HostWay::Direct { url } if token.is_empty() => Ok(Arc::new(Keyed {
            keys: Arc::clone(keys),
            host_id: record.host_id.clone(),
            address: Address::parse(url).map_err(broken)?,
            silence,
        })),
        HostWay::Direct { url } => {
            let address = Address::parse(url).map_err(broken)?;
            let client = Client::new(address, SecretString::from(token), silence);
            Ok(Arc::new(Direct(client.map_err(broken)?)))
        }
    }
}

/// A link whose token is looked up at each new connection.
struct Keyed {
    keys: Arc<StoredKeys>,
    host_id: String,
    address: Address,
    silence: Duration,
}

#[async_trait]
impl Link for Keyed {
    async fn open(&self) -> Result<Client, LinkError> {
        let refused = |message: String| LinkError {
            code: "host_token_missing",
            message,
            lasting: true,
        };
        let (keys, name) = (Arc::clone(&self.keys), key_name(&self.host_id));
        let token = tokio::task::spawn_blocking(move || keys.key(&name))
            .await
            .map_err(|_| refused("the token could not be read by a defect".to_owned()))?
            .map_err(|reason| {
                refused(format!(
                    "the token of this host can't be read ({reason}); nothing was sent; unlock \
                     the keychain or give the token again, then try again"
                ))
            })?
            .ok_or_else(|| {
                refused(
                    "no token is stored for this host; nothing was sent; give it in the settings"
                        .to_owned(),
                )
            })?;
        Client::new(
            self.address.clone(),
            SecretString::from(token),
            self.silence,
        )
        .map_err(|error| refused(error.to_string()))
    }
}

/// A link that can't be made: what is written about the host is no address.
struct Broken(LinkError);

#[async_trait]
impl Link for Broken {
    async fn open(&self) -> Result<Client, LinkError> {
        Err(self.0.clone())
    }
}

impl Attached {
    /// Begins to connect.
    pub(super) fn start(inner: &Inner, record: &HostRecord, silence: Duration) -> Self {
        let link = link_of(&inner.keys, record, "", silence)
            .unwrap_or_else(|error| Arc::new(Broken(error)));
        let news = Arc::<News>::default();
        let sink = Arc::new(Relay {
            hub: Arc::clone(&inner.hosts.relay),
            news: Arc::clone(&news),
            dirty: Arc::clone(&inner.dirty),
        });
        Self {
            id: record.host_id.clone(),
            host: RemoteHost::new(Connection::start(ConnectionOptions { link, sink })),
            catalogue: Catalogue::default(),
            news,
        }
    }

    /// Its id.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Its connection, for a person.
    pub(crate) fn view(&self, record: &HostRecord, has_token: bool) -> HostView {
        let view = self.host.connection().view();
        let (stale, conflicts, failures) = view.counters;
        let (state, code, message, retry_in_ms) = match view.condition {
            Condition::Connecting => (
                ConnectionState::Connecting,
                String::new(),
                String::new(),
                None,
            ),
            Condition::Connected => (
                ConnectionState::Connected,
                String::new(),
                String::new(),
                None,
            ),
            Condition::Waiting {
                until,
                code,
                message,
            } => {
                let left = until.saturating_duration_since(Instant::now());
                let left = u64::try_from(left.as_millis()).unwrap_or(u64::MAX);
                (ConnectionState::Waiting, code, message, Some(left))
            }
            Condition::Refused { code, message } => (ConnectionState::Refused, code, message, None),
        };
        HostView {
            host_id: record.host_id.clone(),
            name: record.name.clone(),
            way: record.way.clone(),
            has_token,
            state,
            code,
            message,
            retry_in_ms,
            stale,
            conflicts,
            failures,
        }
    }

    /// RS-18: last known states, by path. A session of which nothing is known has none (RS-03).
    pub(crate) fn stated(&self) -> Vec<(String, Stated)> {
        let connection = self.host.connection();
        let generation = connection.generation();
        let sessions = connection.sessions();
        let known = sessions.into_iter().filter_map(|(path, known)| {
            let state = known.state?;
            Some((
                path,
                Stated {
                    controller: format!("{generation}.{}", state.epoch()),
                    freshness: if known.synced {
                        Freshness::Synced
                    } else {
                        Freshness::Unknown
                    },
                    state,
                },
            ))
        });
        known.collect()
    }

    /// The list of its sessions.
    pub(crate) fn listed(&self) -> Listed {
        Listed {
            scope: self.id.clone(),
            freshness: if self.is_connected() {
                Freshness::Synced
            } else {
                Freshness::Unknown
            },
            rows: self.catalogue.rows(),
        }
    }

    fn is_connected(&self) -> bool {
        *self.host.connection().condition().borrow() == Condition::Connected
    }

    /// RS-20: reads all states once. What is not confirmed by it is looked after in the background, so
    /// that a host that is slow holds up no verification of the others.
    pub(crate) async fn verify(&self) {
        if !self.host.connection().verify().await {
            self.news.rang.notify_one();
        }
    }

    /// A session that a tab shows and that the host has not open is opened there, as a local one would
    /// be, and looked at once more.
    async fn open_unconfirmed(&self, inner: &Inner) {
        let connection = self.host.connection();
        let mut opened = false;
        for path in connection.unconfirmed() {
            let id = path.trim_start_matches("session-id:");
            opened |= self.learn(inner, id).await;
        }
        if opened {
            connection.verify().await;
        }
    }

    /// Keeps the list and the tabs up to date, for as long as the host is attached.
    pub(super) async fn tend(&self, inner: &Arc<Inner>) {
        let mut condition = self.host.connection().condition();
        loop {
            let connected = *condition.borrow_and_update() == Condition::Connected;
            inner.hosts.tell(&self.id);
            inner.dirty.notify_one();
            tokio::select! {
                changed = condition.changed() => {
                    if changed.is_err() {
                        return;
                    }
                }
                () = self.attend(inner, connected) => {}
            }
        }
    }

    /// Ends only by being given up.
    async fn attend(&self, inner: &Arc<Inner>, connected: bool) {
        if connected {
            self.host.connection().verify().await;
            self.open_unconfirmed(inner).await;
            self.read_list(inner, true).await;
        }
        loop {
            self.news.rang.notified().await;
            if connected {
                for session_id in self.news.take_settings() {
                    self.learn(inner, &session_id).await;
                }
                self.open_unconfirmed(inner).await;
                self.read_list(inner, false).await;
            }
        }
    }

    async fn read_list(&self, inner: &Inner, whole: bool) {
        let read = if whole {
            self.catalogue.read_all(&self.host).await
        } else {
            self.catalogue.read_latest(&self.host).await
        };
        if let Err(error) = read {
            tracing::info!(code = %error.code, "the list of a host's sessions could not be read");
            return;
        }
        let rows = self.catalogue.rows();
        inner.shelf.change(|remembered| {
            for tab in &mut remembered.tabs {
                let row = rows.iter().find(|row| tab.shows(&self.id, &row.session_id));
                if let Some(row) = row {
                    tab.title.clone_from(&row.title);
                    tab.workspace_root.clone_from(&row.workspace);
                }
            }
        });
        inner.dirty.notify_one();
    }

    /// Asks a session that a tab shows for its title, mode and model; whether it answered.
    pub(crate) async fn learn(&self, inner: &Inner, session_id: &str) -> bool {
        let shown = |tab: &crate::remembered::TabRecord| tab.shows(&self.id, session_id);
        if !inner
            .shelf
            .read(|remembered| remembered.tabs.iter().any(shown))
        {
            return false;
        }
        let status = self.host.status(&Selector::of(session_id)).await;
        let answered = status.is_ok();
        inner.shelf.change(|remembered| {
            for tab in remembered.tabs.iter_mut().filter(|tab| shown(tab)) {
                match &status {
                    Ok(status) => tab.learn(status),
                    Err(error) if is_gone(error) => tab.problem.clone_from(&error.message),
                    Err(_) => {}
                }
            }
        });
        if let Err(error) = inner.shelf.save().await {
            tracing::warn!(code = error.code(), "{error}");
        }
        inner.dirty.notify_one();
        answered
    }

    /// A host of another make has one session at a time: the one that a person chooses here becomes
    /// the current one there. Ours need nothing.
    ///
    /// # Errors
    /// What the host says, such as that another session is at work.
    pub(crate) async fn choose(&self, session_id: &str) -> Result<(), ApiError> {
        match self.host.connection().dialect() {
            Dialect::Own => Ok(()),
            Dialect::Reasonix => self.host.resume(session_id).await,
        }
    }

    /// A tab shows this session from now on.
    pub(crate) fn bind(&self, session_id: &str) {
        self.host.connection().bind(&session_path(session_id));
    }

    /// No tab shows it any more.
    pub(crate) fn unbind(&self, session_id: &str) {
        self.host.connection().unbind(&session_path(session_id));
    }

    /// The list of sessions has to be read again.
    pub(crate) fn list_changed(&self) {
        self.news.rang.notify_one();
    }
}

/// The host itself says that the session can't be used; anything else may pass.
fn is_gone(error: &ApiError) -> bool {
    error.status == 404 || error.code == "session_held"
}
