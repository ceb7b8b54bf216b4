//! The host's event stream: one bounded ring for all sessions, and one slot for each session's
//! latest state.
//!
//! Guarantees: publishing never waits for a reader (RS-12); a reader that falls behind the ring
//! gets a `gap` and then the latest states (RS-29); a state is handed out only after all frames that
//! were published before it, so none crosses the `session_changed` barrier (RS-28); states are not
//! in the ring. The lock and the bell are abstract, so that hub/model.rs can try every interleaving.

#[cfg(test)]
mod model;
mod parts;
mod reader;
mod ring;

use std::sync::Arc;

use holdfast_api::event::{Event, Frame};
use holdfast_api::session::{RuntimeStates, session_path};
use holdfast_domain::runtime::snapshot::RuntimeState;

use self::parts::{Bell, Lock, Parts, System};
use self::ring::Inner;

/// The stream of one host.
pub type Hub = Stream<System>;
/// One reader's place in it.
pub type Reader = reader::Reader<System>;

/// A frame as it goes out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// `<epoch>.<n>`; `None` for states, which are not resumable.
    pub id: Option<String>,
    /// JSON.
    pub data: Arc<str>,
}

/// The stream, whatever its lock and its bell are made of.
#[derive(Debug)]
pub struct Stream<P: Parts> {
    epoch: String,
    inner: P::Lock,
    bell: P::Bell,
}

impl<P: Parts> Stream<P> {
    /// An empty stream with its epoch, 32 hex digits.
    pub fn new(epoch: String) -> Self {
        Self {
            epoch,
            inner: P::Lock::new(Inner::default()),
            bell: P::Bell::new(),
        }
    }

    /// The host's epoch.
    pub fn epoch(&self) -> &str {
        &self.epoch
    }

    /// Publishes one frame and answers its number; never waits.
    pub fn publish(&self, frame: &Frame) -> u64 {
        let Some(data) = json_of(frame) else {
            return self.latest();
        };
        let number = self.inner.with(|inner| {
            inner.keep(&frame.session_id, data.into());
            inner.next
        });
        self.bell.ring();
        number
    }

    /// Number of the latest frame.
    pub fn latest(&self) -> u64 {
        self.inner.with(|inner| inner.next)
    }

    /// How a number is written.
    pub fn id(&self, number: u64) -> String {
        format!("{}.{number}", self.epoch)
    }

    /// RS-12: puts a session's committed state into its slot; the latest wins.
    pub fn publish_state(&self, session_id: &str, state: RuntimeState) {
        self.inner.with(|inner| inner.put(session_id, state));
        self.bell.ring();
    }

    /// An opening of a session, named by its epoch, has ended here. Whoever read its states ends
    /// with a closed one. A later opening of the same session is not touched.
    pub fn remove_state(&self, session_id: &str, epoch: &str) {
        self.inner.with(|inner| inner.remove(session_id, epoch));
        self.bell.ring();
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
        self.inner.with(|inner| {
            inner.make_current(session_id);
            if let Some(data) = frame {
                inner.keep(session_id, data.into());
            }
            inner.renew(session_id);
        });
        self.bell.ring();
    }

    /// The current session, or empty.
    pub fn current(&self) -> String {
        self.inner.with(|inner| inner.current.clone())
    }

    /// A session's latest published state.
    pub fn state(&self, session_id: &str) -> Option<RuntimeState> {
        self.inner
            .with(|inner| inner.open_state(session_id).cloned())
    }

    /// RS-26: all open sessions, from memory.
    pub fn runtime_states(&self) -> RuntimeStates {
        let (revision, sessions) = self.inner.with(|inner| (inner.revision, inner.rows()));
        RuntimeStates {
            schema_version: 1,
            epoch: self.epoch.clone(),
            // From 1, which is the empty list's.
            revision: revision + 1,
            sessions,
        }
    }

    /// Id of the latest frame: what a transcript snapshot speaks up to.
    pub fn latest_id(&self) -> String {
        self.id(self.latest())
    }

    /// A reader of the current session (`all` false), of one session, or of all. `last_event_id`
    /// resumes (RS-29).
    pub fn reader(
        self: &Arc<Self>,
        all: bool,
        session: Option<String>,
        last_event_id: Option<&str>,
    ) -> reader::Reader<P> {
        reader::Reader::new(self, all, session, last_event_id)
    }
}

fn json_of(frame: &Frame) -> Option<String> {
    serde_json::to_string(frame)
        .inspect_err(|_| tracing::error!("a frame could not be written as JSON and was left out"))
        .ok()
}
