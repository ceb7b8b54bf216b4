//! The one projection from which every indicator comes (RS-18, RS-19, RS-21).
//!
//! Guarantees: states are read from the last published snapshots, outside the app's lock, and count
//! only when every binding is the same before and after; revision and content are assigned
//! together, and the revision grows exactly when the content changed.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use holdfast_api::desktop::{
    Freshness, RuntimeSession, RuntimeStateProjection, Topic, TopicStatus,
};
use holdfast_api::session::SessionRow;
use holdfast_domain::runtime::display::{Shown, shown_at_rest, shown_observed};
use holdfast_domain::runtime::observed::Observed;
use tokio::sync::watch;

/// Samples before a refresh gives up until the next boundary.
pub const TRIES: usize = 3;

/// RS-19: what a state belongs to. Any difference makes a sample void.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Binding {
    /// Id of the tab; empty for a session that runs without one.
    pub tab_id: String,
    /// `session-id:<32 hex>`.
    pub session_path: String,
    /// `local`, or the id of the remote host.
    pub scope: String,
    /// Absolute path of the workspace.
    pub workspace_root: String,
    /// The session's id.
    pub topic_id: String,
    /// Which binding of the tab this is.
    pub session_generation: u64,
    /// A tab shows it.
    pub open: bool,
    /// It runs on another machine.
    pub remote: bool,
    /// That machine.
    pub host_id: Option<String>,
    /// Which instance answers for the session: the epoch of its states, on another machine with the
    /// connection that told it. Empty when none does.
    pub controller: String,
}

/// The last published state of a session, with the instance whose it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stated {
    /// As in [`Binding::controller`].
    pub controller: String,
    /// Whether it is confirmed.
    pub freshness: Freshness,
    /// The state.
    pub state: Observed,
}

/// Last published states, by scope and path of the session.
pub type Published = BTreeMap<(String, String), Stated>;

/// Where bindings come from; each call is one copy, made under the app's lock.
pub trait Bindings {
    /// All bindings now.
    fn bindings(&self) -> Vec<Binding>;
}

/// Where states come from: the last published ones.
pub trait States {
    /// All of them, from one moment.
    fn states(&self) -> Published;
}

/// RS-19: sessions with their states, or `None` when the bindings moved at every try.
pub fn sample(bindings: &dyn Bindings, states: &dyn States) -> Option<Vec<RuntimeSession>> {
    (0..TRIES).find_map(|_| {
        let mut before = bindings.bindings();
        let states = states.states();
        let mut after = bindings.bindings();
        before.sort();
        after.sort();
        if before != after {
            return None;
        }
        joined(before, &states)
    })
}

/// `None` when a state is of another instance than its binding. A binding that no instance answers
/// for has no state, and none is made up (RS-03).
fn joined(bindings: Vec<Binding>, states: &Published) -> Option<Vec<RuntimeSession>> {
    bindings
        .into_iter()
        .filter(|binding| !binding.controller.is_empty())
        .map(|binding| {
            let stated = states
                .get(&(binding.scope.clone(), binding.session_path.clone()))
                .filter(|stated| stated.controller == binding.controller)?;
            Some(RuntimeSession {
                tab_id: binding.tab_id,
                scope: binding.scope,
                workspace_root: binding.workspace_root,
                topic_id: binding.topic_id,
                session_path: binding.session_path,
                session_generation: binding.session_generation,
                open: binding.open,
                remote: binding.remote,
                host_id: binding.host_id,
                freshness: stated.freshness,
                state: stated.state.clone(),
            })
        })
        .collect()
}

/// What a machine's list says of its sessions.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// `local`, or the id of the host.
    pub scope: String,
    /// Whether the list is of now.
    pub freshness: Freshness,
    /// Its sessions.
    pub rows: Vec<SessionRow>,
}

impl Listed {
    /// This machine's list.
    pub fn local(rows: Vec<SessionRow>) -> Self {
        Self {
            scope: LOCAL.to_owned(),
            freshness: Freshness::Synced,
            rows,
        }
    }

    fn topic(&self, row: &SessionRow) -> Topic {
        let failed = row.state.turn_status == "failed";
        Topic {
            scope: self.scope.clone(),
            workspace_root: row.workspace.clone(),
            topic_id: row.session_id.clone(),
            title: row.title.clone(),
            status: word(shown_at_rest(row.state.pending_prompt, failed)),
            background_jobs: row.state.background_jobs,
            unresolved: row.state.unresolved,
            freshness: self.freshness,
        }
    }
}

/// RS-17, RS-21: one row for each session, however many tabs show it; sorted by scope, workspace
/// and session.
pub fn topics(sessions: &[RuntimeSession], lists: &[Listed], titles: &Titles) -> Vec<Topic> {
    let mut topics = BTreeMap::new();
    for list in lists {
        for row in &list.rows {
            let key = (list.scope.clone(), row.session_id.clone());
            topics.insert(key, list.topic(row));
        }
    }
    for session in sessions {
        let key = (session.scope.clone(), session.topic_id.clone());
        let topic = topics.entry(key).or_insert_with(|| Topic {
            scope: session.scope.clone(),
            workspace_root: session.workspace_root.clone(),
            topic_id: session.topic_id.clone(),
            title: titles
                .get(&(session.scope.clone(), session.topic_id.clone()))
                .cloned()
                .unwrap_or_default(),
            status: TopicStatus::Idle,
            background_jobs: 0,
            unresolved: 0,
            freshness: session.freshness,
        });
        topic.status = word(shown_observed(&session.state));
        topic.freshness = session.freshness;
        // What a host does not tell stays as its list has it.
        if let Some(jobs) = session.state.background_jobs() {
            topic.background_jobs = jobs;
        }
        if let Some(state) = session.state.snapshot() {
            topic.unresolved = state.unresolved;
        }
    }
    let mut topics: Vec<Topic> = topics.into_values().collect();
    topics.sort_by(|a, b| {
        (&a.scope, &a.workspace_root, &a.topic_id).cmp(&(&b.scope, &b.workspace_root, &b.topic_id))
    });
    topics
}

/// Titles of sessions that tabs know, by scope and the session's id.
pub type Titles = BTreeMap<(String, String), String>;

/// The scope of this machine.
pub const LOCAL: &str = "local";

fn word(shown: Shown) -> TopicStatus {
    match shown {
        Shown::Finishing => TopicStatus::Finishing,
        Shown::Cancelling => TopicStatus::Cancelling,
        Shown::WaitingConfirmation => TopicStatus::WaitingConfirmation,
        Shown::Streaming => TopicStatus::Streaming,
        Shown::Thinking => TopicStatus::Thinking,
        Shown::BackgroundJobs => TopicStatus::BackgroundJobs,
        Shown::Error => TopicStatus::Error,
        Shown::Paused => TopicStatus::Paused,
        Shown::AwaitingDelivery => TopicStatus::AwaitingDelivery,
        Shown::Idle => TopicStatus::Idle,
    }
}

/// What was published last.
#[derive(Debug)]
pub struct Board {
    published: watch::Sender<RuntimeStateProjection>,
    /// One refresh at a time, so that an older sample is never published over a newer one.
    refreshing: Mutex<()>,
}

impl Board {
    /// An empty projection at revision 1. `epoch` is 32 hex digits.
    pub fn new(epoch: String) -> Self {
        Self {
            published: watch::Sender::new(RuntimeStateProjection {
                epoch,
                revision: 1,
                sessions: Vec::new(),
                topics: Vec::new(),
            }),
            refreshing: Mutex::default(),
        }
    }

    /// RS-20: the projection as it is.
    pub fn current(&self) -> RuntimeStateProjection {
        self.published.borrow().clone()
    }

    /// Learns of every new projection; the latest wins.
    pub fn subscribe(&self) -> watch::Receiver<RuntimeStateProjection> {
        self.published.subscribe()
    }

    /// Samples and publishes; false when the bindings moved at every try: what was published stays,
    /// and the caller tries again at the next boundary. `describe` makes the topics of the sessions.
    pub fn refresh(
        &self,
        bindings: &dyn Bindings,
        states: &dyn States,
        describe: impl FnOnce(&[RuntimeSession]) -> Vec<Topic>,
    ) -> bool {
        let _one = self
            .refreshing
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let Some(sessions) = sample(bindings, states) else {
            return false;
        };
        let topics = describe(&sessions);
        self.published.send_if_modified(|held| {
            if held.sessions == sessions && held.topics == topics {
                return false;
            }
            held.revision += 1;
            held.sessions = sessions;
            held.topics = topics;
            true
        });
        true
    }
}
