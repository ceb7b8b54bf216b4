//! The host's event stream: one bounded ring for all sessions, and one slot for each session's
//! latest state.
//!
//! Guarantees: publishing never waits for a reader (RS-12); a reader that falls behind the ring
//! gets a `gap` and then the latest states (RS-29); a state is handed out only after all frames that
//! were published before it, so none crosses the `session_changed` barrier (RS-28); states are not
//! in the ring.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_api::event::{Event, Frame};
use holdfast_api::session::{RuntimeStateRow, RuntimeStates, session_path};
use holdfast_domain::runtime::snapshot::{Activity, Phase, RuntimeState};
use tokio::sync::watch;

/// Frames kept for readers that come back.
const RING_FRAMES: usize = 8192;
/// Bytes kept for readers that come back.
const RING_BYTES: usize = 8 * 1024 * 1024;
/// Frames handed out at once.
const BATCH_FRAMES: usize = 256;

/// The stream of one host.
#[derive(Debug)]
pub struct Hub {
    epoch: String,
    inner: Mutex<Inner>,
    tick: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    ring: VecDeque<Kept>,
    bytes: usize,
    next: u64,
    stamp: u64,
    revision: u64,
    states: BTreeMap<String, Slot>,
    current: String,
}

#[derive(Debug, Clone)]
struct Kept {
    n: u64,
    session_id: String,
    /// Its session was the current one when it was published.
    current: bool,
    data: Arc<str>,
}

#[derive(Debug, Clone)]
struct Slot {
    stamp: u64,
    state: RuntimeState,
    /// The session is open here; else this is its last word, for readers from before its end.
    open: bool,
    /// It was the current one when it ended.
    ended_as_current: bool,
}

/// A frame as it goes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// `<epoch>.<n>`; `None` for states, which are not resumable.
    pub id: Option<String>,
    /// JSON.
    pub data: Arc<str>,
}

/// One reader's place in the stream.
#[derive(Debug)]
pub struct Reader {
    hub: Arc<Hub>,
    changes: watch::Receiver<u64>,
    position: u64,
    stamp: u64,
    /// The latest stamp when the reader came.
    born: u64,
    all: bool,
    session: Option<String>,
    gap: bool,
}

impl Hub {
    /// An empty stream with its epoch, 32 hex digits.
    pub fn new(epoch: String) -> Self {
        Self {
            epoch,
            inner: Mutex::default(),
            tick: watch::Sender::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The host's epoch.
    pub fn epoch(&self) -> &str {
        &self.epoch
    }

    /// Publishes one frame; never waits.
    pub fn publish(&self, frame: &Frame) {
        if let Some(data) = json_of(frame) {
            self.lock().keep(&frame.session_id, data);
            self.wake();
        }
    }

    /// RS-12: puts a session's committed state into its slot; the latest wins.
    pub fn publish_state(&self, session_id: &str, state: RuntimeState) {
        self.lock().put(session_id, state, true);
        self.wake();
    }

    /// A session is no longer open here. Whoever read its states ends with a closed one.
    pub fn remove_state(&self, session_id: &str) {
        let mut inner = self.lock();
        let Some(last) = inner.states.get(session_id).filter(|slot| slot.open) else {
            return;
        };
        let mut state = last.state.clone();
        if state.phase != Phase::Closed || state.running {
            // Its owner ended without a last word of its own.
            state.phase = Phase::Closed;
            state.revision += 1;
            state.running = false;
            state.cancel_requested = false;
            state.cancellable = state.pending_prompt;
            state.background_jobs = 0;
            state.activity = Activity::None;
        }
        let was_current = inner.current == session_id;
        inner.put(session_id, state, false);
        if was_current {
            inner.current.clear();
            if let Some(slot) = inner.states.get_mut(session_id) {
                slot.ended_as_current = true;
            }
        }
        drop(inner);
        self.wake();
    }

    /// Another session is current. The frame goes out before any of its states (RS-28): both are
    /// done at once, so that no reader sees one without the other.
    pub fn make_current(&self, session_id: &str) {
        let frame = json_of(&Frame {
            session_id: session_id.to_owned(),
            turn_id: String::new(),
            seq: None,
            event: Event::SessionChanged {
                session_path: session_path(session_id),
            },
        });
        let mut inner = self.lock();
        if inner.current != session_id {
            session_id.clone_into(&mut inner.current);
            inner.revision += 1;
        }
        if let Some(data) = frame {
            inner.keep(session_id, data);
        }
        // Its state is due again, now that it is the current one.
        inner.stamp += 1;
        let stamp = inner.stamp;
        if let Some(slot) = inner.states.get_mut(session_id) {
            slot.stamp = stamp;
        }
        drop(inner);
        self.wake();
    }

    /// The current session, or empty.
    pub fn current(&self) -> String {
        self.lock().current.clone()
    }

    /// A session's latest published state.
    pub fn state(&self, session_id: &str) -> Option<RuntimeState> {
        self.lock()
            .states
            .get(session_id)
            .filter(|slot| slot.open)
            .map(|slot| slot.state.clone())
    }

    /// RS-26: all open sessions, from memory.
    pub fn runtime_states(&self) -> RuntimeStates {
        let inner = self.lock();
        RuntimeStates {
            schema_version: 1,
            epoch: self.epoch.clone(),
            revision: inner.revision.max(1),
            sessions: inner
                .states
                .iter()
                .filter(|(_, slot)| slot.open)
                .map(|(id, slot)| RuntimeStateRow {
                    session_path: session_path(id),
                    current: *id == inner.current,
                    state: slot.state.clone(),
                })
                .collect(),
        }
    }

    /// Id of the latest frame: what a transcript snapshot speaks up to.
    pub fn latest_id(&self) -> String {
        format!("{}.{}", self.epoch, self.lock().next)
    }

    /// A reader of the current session (`all` false), of one session, or of all. `last_event_id`
    /// resumes (RS-29).
    pub fn reader(
        self: &Arc<Self>,
        all: bool,
        session: Option<String>,
        last_event_id: Option<&str>,
    ) -> Reader {
        let changes = self.tick.subscribe();
        let inner = self.lock();
        let latest = inner.next;
        let born = inner.stamp;
        let oldest = inner.ring.front().map_or(latest + 1, |kept| kept.n);
        drop(inner);
        let resumed = last_event_id.map(|id| {
            id.strip_prefix(&self.epoch)
                .and_then(|rest| rest.strip_prefix('.'))
                .and_then(|n| n.parse::<u64>().ok())
                .filter(|n| *n <= latest && *n + 1 >= oldest)
        });
        let (position, gap) = match resumed {
            None => (latest, false),
            Some(Some(position)) => (position, false),
            Some(None) => (latest, true),
        };
        Reader {
            hub: Arc::clone(self),
            changes,
            position,
            stamp: 0,
            born,
            all,
            session,
            gap,
        }
    }

    fn wake(&self) {
        self.tick.send_modify(|tick| *tick = tick.wrapping_add(1));
    }
}

impl Inner {
    fn keep(&mut self, session_id: &str, data: Arc<str>) {
        self.next += 1;
        self.bytes += data.len();
        self.ring.push_back(Kept {
            n: self.next,
            session_id: session_id.to_owned(),
            current: self.current == session_id,
            data,
        });
        while self.ring.len() > RING_FRAMES || self.bytes > RING_BYTES {
            let Some(oldest) = self.ring.pop_front() else {
                break;
            };
            self.bytes -= oldest.data.len();
        }
    }

    fn put(&mut self, session_id: &str, state: RuntimeState, open: bool) {
        self.stamp += 1;
        self.revision += 1;
        let slot = Slot {
            stamp: self.stamp,
            state,
            open,
            ended_as_current: false,
        };
        self.states.insert(session_id.to_owned(), slot);
    }
}

fn json_of(frame: &Frame) -> Option<Arc<str>> {
    serde_json::to_string(frame)
        .inspect_err(|_| tracing::error!("a frame could not be written as JSON and was left out"))
        .ok()
        .map(Arc::from)
}

impl Reader {
    /// Waits until there is something for this reader; at most 256 frames at once.
    pub async fn next(&mut self) -> Vec<Outgoing> {
        loop {
            self.changes.mark_unchanged();
            let batch = self.take();
            if !batch.is_empty() {
                return batch;
            }
            // The hub outlives its readers, so the channel can't be closed.
            if self.changes.changed().await.is_err() {
                return Vec::new();
            }
        }
    }

    fn take(&mut self) -> Vec<Outgoing> {
        let inner = self.hub.lock();
        let mut batch = Vec::new();
        let oldest = inner.ring.front().map_or(inner.next + 1, |kept| kept.n);
        if self.position + 1 < oldest {
            self.gap = true;
            self.position = inner.next;
        }
        if self.gap {
            self.gap = false;
            self.stamp = 0;
            let frame = Frame {
                session_id: String::new(),
                turn_id: String::new(),
                seq: None,
                event: Event::Gap {},
            };
            batch.push(Outgoing {
                id: Some(format!("{}.{}", self.hub.epoch, self.position)),
                data: serde_json::to_string(&frame).unwrap_or_default().into(),
            });
        }
        let skip = usize::try_from((self.position + 1).saturating_sub(oldest)).unwrap_or(0);
        for kept in inner.ring.iter().skip(skip) {
            if batch.len() >= BATCH_FRAMES {
                return batch;
            }
            self.position = kept.n;
            if self.wants(&kept.session_id, kept.current) {
                batch.push(Outgoing {
                    id: Some(format!("{}.{}", self.hub.epoch, kept.n)),
                    data: Arc::clone(&kept.data),
                });
            }
        }
        for (session_id, slot) in &inner.states {
            let is_current = slot.ended_as_current || *session_id == inner.current;
            let is_news = slot.stamp > self.stamp && (slot.open || slot.stamp > self.born);
            if is_news && self.wants(session_id, is_current) {
                let frame = Frame {
                    session_id: session_id.clone(),
                    turn_id: slot.state.turn_id.clone(),
                    seq: None,
                    event: Event::RuntimeState {
                        session_path: session_path(session_id),
                        session_current: *session_id == inner.current,
                        runtime_state: slot.state.clone(),
                    },
                };
                batch.push(Outgoing {
                    id: None,
                    data: serde_json::to_string(&frame).unwrap_or_default().into(),
                });
            }
        }
        self.stamp = inner.stamp;
        batch
    }

    fn wants(&self, session_id: &str, is_current: bool) -> bool {
        if self.all || session_id.is_empty() {
            return true;
        }
        match &self.session {
            Some(wanted) => wanted == session_id,
            None => is_current,
        }
    }
}
