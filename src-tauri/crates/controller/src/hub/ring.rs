//! The stream's content: frames in a bounded ring, the latest state of each session, the current
//! session. Plain data; the stream guards it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use holdfast_api::session::{RuntimeStateRow, session_path};
use holdfast_domain::runtime::snapshot::{Activity, Phase, RuntimeState};

/// Frames kept for readers that come back.
const RING_FRAMES: usize = 8192;
/// Bytes kept for readers that come back.
const RING_BYTES: usize = 8 * 1024 * 1024;

/// All that a stream holds.
#[derive(Debug, Default)]
pub struct Inner {
    pub(super) ring: VecDeque<Kept>,
    bytes: usize,
    /// Number of the latest frame.
    pub(super) next: u64,
    /// Grows with every change of a slot.
    pub(super) stamp: u64,
    /// RS-26: grows with the content of the list of states.
    pub(super) revision: u64,
    pub(super) states: BTreeMap<String, Slot>,
    pub(super) current: String,
}

#[derive(Debug)]
pub(super) struct Kept {
    pub(super) n: u64,
    pub(super) session_id: String,
    /// Its session was the current one when it was published.
    pub(super) current: bool,
    pub(super) data: Arc<str>,
}

#[derive(Debug)]
pub(super) struct Slot {
    pub(super) stamp: u64,
    pub(super) state: RuntimeState,
    /// The session is open here; else this is its last word, for readers from before its end.
    pub(super) open: bool,
    /// It was the current one when it ended.
    pub(super) ended_as_current: bool,
}

impl Inner {
    /// Number of the oldest frame that is still there, or of the next one.
    pub(super) fn oldest(&self) -> u64 {
        self.ring.front().map_or(self.next + 1, |kept| kept.n)
    }

    pub(super) fn keep(&mut self, session_id: &str, data: Arc<str>) {
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

    /// RS-12: the latest wins. Within an epoch nothing older replaces what is there, and nothing
    /// comes behind its end.
    pub(super) fn put(&mut self, session_id: &str, state: RuntimeState) {
        let is_late = self.states.get(session_id).is_some_and(|slot| {
            slot.state.runtime_epoch == state.runtime_epoch
                && (!slot.open || slot.state.revision >= state.revision)
        });
        if !is_late {
            self.set(session_id, state, true, false);
        }
    }

    /// Ends the opening of that epoch; a later one of the same session is not touched.
    pub(super) fn remove(&mut self, session_id: &str, epoch: &str) {
        let Some(last) = self
            .states
            .get(session_id)
            .filter(|slot| slot.open && slot.state.runtime_epoch == epoch)
        else {
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
        let was_current = self.current == session_id;
        if was_current {
            self.current.clear();
        }
        self.set(session_id, state, false, was_current);
    }

    pub(super) fn make_current(&mut self, session_id: &str) {
        if self.current != session_id {
            session_id.clone_into(&mut self.current);
            self.revision += 1;
        }
    }

    /// A session's state is due again, now that it is the current one.
    pub(super) fn renew(&mut self, session_id: &str) {
        self.stamp += 1;
        if let Some(slot) = self.states.get_mut(session_id) {
            slot.stamp = self.stamp;
        }
    }

    pub(super) fn open_state(&self, session_id: &str) -> Option<&RuntimeState> {
        let slot = self.states.get(session_id).filter(|slot| slot.open)?;
        Some(&slot.state)
    }

    /// Open sessions, sorted by path.
    pub(super) fn rows(&self) -> Vec<RuntimeStateRow> {
        self.states
            .iter()
            .filter(|(_, slot)| slot.open)
            .map(|(id, slot)| RuntimeStateRow {
                session_path: session_path(id),
                current: *id == self.current,
                state: slot.state.clone(),
            })
            .collect()
    }

    fn set(&mut self, session_id: &str, state: RuntimeState, open: bool, ended_as_current: bool) {
        self.stamp += 1;
        self.revision += 1;
        let slot = Slot {
            stamp: self.stamp,
            state,
            open,
            ended_as_current,
        };
        self.states.insert(session_id.to_owned(), slot);
    }
}
