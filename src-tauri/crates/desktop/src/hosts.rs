//! Other machines: one connection each, for all tabs that show their sessions (RS-25, RS-33).
//!
//! Guarantees: a host is attached once, and its connection ends when it is taken away; frames of all
//! hosts go into one stream of their own, so that readers of this machine's stream never see them.

mod attached;
mod relay;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_controller::hub::Hub;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

pub(crate) use self::attached::{Attached, key_name, link_of};
use crate::desktop::Inner;
use crate::remembered::HostRecord;

/// RS-29: an event stream without a byte for this long is opened anew.
pub(crate) const SILENCE: Duration = Duration::from_secs(45);

/// How often each host's connection changed.
pub(crate) type Changes = BTreeMap<String, u64>;

/// The hosts that are attached.
#[derive(Default)]
struct Held {
    by_id: BTreeMap<String, (Arc<Attached>, CancellationToken)>,
}

/// All hosts.
pub(crate) struct Hosts {
    held: Mutex<Held>,
    changes: watch::Sender<Changes>,
    /// Frames of all hosts.
    pub(crate) relay: Arc<Hub>,
    /// The projection must be made anew.
    dirty: Arc<Notify>,
    /// Ends with the app.
    stopped: CancellationToken,
    /// As [`SILENCE`].
    silence: Duration,
}

impl Hosts {
    pub(crate) fn new(
        epoch: String,
        dirty: Arc<Notify>,
        stopped: CancellationToken,
        silence: Duration,
    ) -> Self {
        Self {
            held: Mutex::default(),
            changes: watch::Sender::default(),
            relay: Arc::new(Hub::new(epoch)),
            dirty,
            stopped,
            silence,
        }
    }

    /// A host that is attached.
    pub(crate) fn get(&self, host_id: &str) -> Option<Arc<Attached>> {
        self.lock()
            .by_id
            .get(host_id)
            .map(|(attached, _)| Arc::clone(attached))
    }

    /// All that are attached.
    pub(crate) fn all(&self) -> Vec<Arc<Attached>> {
        let held = self.lock();
        let all = held.by_id.values();
        all.map(|(attached, _)| Arc::clone(attached)).collect()
    }

    /// As [`SILENCE`].
    pub(crate) fn silence(&self) -> Duration {
        self.silence
    }

    /// Every change of a connection, by host.
    pub(crate) fn changes(&self) -> watch::Receiver<Changes> {
        self.changes.subscribe()
    }

    /// Something about this connection is another than before.
    pub(crate) fn tell(&self, host_id: &str) {
        self.changes.send_modify(|changes| {
            *changes.entry(host_id.to_owned()).or_default() += 1;
        });
    }

    /// Takes a host away: its connection ends.
    pub(crate) fn detach(&self, host_id: &str) {
        let gone = self.lock().by_id.remove(host_id);
        if let Some((_, stopped)) = gone {
            stopped.cancel();
        }
        self.tell(host_id);
        self.dirty.notify_one();
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Connects to a host and shows its tabs' sessions; in place of an earlier connection to it.
    /// Must be called inside a tokio runtime.
    pub(crate) fn attach(self: &Arc<Self>, record: &HostRecord) {
        self.hosts.detach(&record.host_id);
        let attached = Arc::new(Attached::start(self, record, self.hosts.silence));
        let paths = self.shelf.read(|remembered| {
            let tabs = remembered.tabs.iter();
            let own = tabs.filter(|tab| tab.host_id == record.host_id);
            own.map(|tab| tab.view().session_path)
                .collect::<Vec<String>>()
        });
        for path in paths {
            attached.host.connection().bind(&path);
        }
        let stopped = self.hosts.stopped.child_token();
        tokio::spawn({
            let (inner, attached, stopped) =
                (Arc::clone(self), Arc::clone(&attached), stopped.clone());
            async move {
                tokio::select! {
                    () = stopped.cancelled() => {}
                    () = attached.tend(&inner) => {}
                }
            }
        });
        let id = record.host_id.clone();
        self.hosts.lock().by_id.insert(id, (attached, stopped));
    }

    /// RS-20, RS-33: reads every host once, all at the same time.
    pub(crate) async fn verify_hosts(&self) {
        let hosts = self.hosts.all();
        futures_util::future::join_all(hosts.iter().map(|host| host.verify())).await;
    }
}
