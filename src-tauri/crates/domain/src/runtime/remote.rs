//! What a client knows of another host's sessions: two sources, one reducer (RS-30…RS-36).
//!
//! Guarantees: a read of the whole list is authoritative and the stream is not; nothing that came
//! later is overwritten by something asked for earlier; facts stay when the connection goes, and
//! are marked unconfirmed instead; a frame or an answer of an earlier connection changes nothing.

use std::collections::BTreeMap;

use super::observed::Observed;
use super::snapshot::RuntimeState;

/// What became of a state that came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteVerdict {
    /// It is what is known now.
    Accepted,
    /// It was known.
    Duplicate,
    /// It is older (RS-31).
    Stale,
    /// It contradicts what is known; `resync` once for each (RS-31).
    Conflict {
        /// This contradiction is new: read again.
        resync: bool,
    },
    /// RS-30: a path or an epoch that only the stream knows waits for a read.
    Deferred,
    /// RS-06: it can't be believed; read again (RS-35).
    Invalid,
    /// It belongs to another connection (RS-32).
    Fenced,
}

/// One session as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The last facts; `None` before anything was confirmed.
    pub state: Option<Observed>,
    /// They are confirmed on this connection.
    pub synced: bool,
    /// When it changed last, on this reducer's own count.
    changed: u64,
    /// Since when it is bound to a tab; `None` while it is not.
    bound: Option<u64>,
    /// The last contradiction, so that it asks for one read only.
    contradiction: Option<RuntimeState>,
}

/// RS-37.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// States that were older than what is known.
    pub stale: u64,
    /// Contradictions.
    pub conflicts: u64,
    /// Reads that failed or could not be understood.
    pub failures: u64,
}

/// A read on its way: what was true when it was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadBegun {
    generation: u64,
    tick: u64,
}

/// What a read answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadAnswer {
    /// The whole list: each path with its state, or with what was wrong with it.
    List(Vec<(String, Option<RuntimeState>)>),
    /// RS-34: one session, by its older status.
    One(String, Observed),
    /// It could not be understood (RS-35).
    Garbled,
    /// No answer.
    Failed,
}

/// One host's sessions.
#[derive(Debug, Clone, Default)]
pub struct RemoteSessions {
    generation: u64,
    connected: bool,
    tick: u64,
    sessions: BTreeMap<String, Known>,
    counters: Counters,
}

impl RemoteSessions {
    /// All sessions by path.
    pub fn sessions(&self) -> &BTreeMap<String, Known> {
        &self.sessions
    }

    /// RS-37.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Which connection this is; answers and frames of earlier ones are fenced off.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The connection stands.
    pub fn is_connected(&self) -> bool {
        self.connected
    }

    /// RS-20: every bound session is confirmed.
    pub fn is_synced(&self) -> bool {
        self.connected
            && self
                .sessions
                .values()
                .all(|known| known.synced || known.bound.is_none())
    }

    /// A tab shows this path from now on. Reads that were asked before say nothing about it.
    pub fn bind(&mut self, path: &str) {
        self.tick += 1;
        let tick = self.tick;
        let known = self.sessions.entry(path.to_owned()).or_insert(Known {
            state: None,
            synced: false,
            changed: tick,
            bound: None,
            contradiction: None,
        });
        known.bound.get_or_insert(tick);
    }

    /// No tab shows this path any more.
    pub fn unbind(&mut self, path: &str) {
        self.tick += 1;
        if let Some(known) = self.sessions.get_mut(path) {
            known.bound = None;
        }
        self.sessions
            .retain(|_, known| known.bound.is_some() || known.state.is_some());
    }

    /// A new connection. Nothing is confirmed on it yet. Answers its generation.
    pub fn connect(&mut self) -> u64 {
        self.disconnect();
        self.generation += 1;
        self.connected = true;
        self.generation
    }

    /// RS-36: the connection is gone; facts stay.
    pub fn disconnect(&mut self) {
        self.connected = false;
        for known in self.sessions.values_mut() {
            known.synced = false;
        }
    }

    /// Paths that a tab shows.
    pub fn bound(&self) -> Vec<String> {
        let bound = self
            .sessions
            .iter()
            .filter(|(_, known)| known.bound.is_some());
        bound.map(|(path, _)| path.clone()).collect()
    }

    /// A read is asked for now.
    pub fn begin_read(&self) -> ReadBegun {
        ReadBegun {
            generation: self.generation,
            tick: self.tick,
        }
    }

    /// RS-30…RS-35: a frame of the stream of that connection; `None` when it could not be read.
    pub fn stream(
        &mut self,
        generation: u64,
        path: &str,
        state: Option<&RuntimeState>,
    ) -> RemoteVerdict {
        if !self.is_current(generation) {
            return RemoteVerdict::Fenced;
        }
        let Some(known) = self.sessions.get_mut(path) else {
            return RemoteVerdict::Deferred;
        };
        let Some(state) = state else {
            known.synced = false;
            self.counters.failures += 1;
            return RemoteVerdict::Invalid;
        };
        let Some(Observed::Snapshot(held)) = &known.state else {
            return RemoteVerdict::Deferred;
        };
        if held.runtime_epoch != state.runtime_epoch {
            return RemoteVerdict::Deferred;
        }
        self.settle(path, state, None)
    }

    /// RS-30…RS-35: what a read answered. Whether another read is due now.
    pub fn finish_read(&mut self, begun: ReadBegun, answer: &ReadAnswer) -> bool {
        if !self.is_current(begun.generation) {
            return false;
        }
        match answer {
            ReadAnswer::List(rows) => self.take_list(begun, rows),
            ReadAnswer::One(path, observed) => self.take_one(begun, path, observed),
            ReadAnswer::Garbled => {
                self.counters.failures += 1;
                self.doubt_all();
                true
            }
            ReadAnswer::Failed => {
                self.counters.failures += 1;
                self.doubt_all();
                false
            }
        }
    }

    fn is_current(&self, generation: u64) -> bool {
        self.connected && generation == self.generation
    }

    fn doubt_all(&mut self) {
        for known in self.sessions.values_mut() {
            known.synced = false;
        }
    }

    fn take_list(&mut self, begun: ReadBegun, rows: &[(String, Option<RuntimeState>)]) -> bool {
        let mut again = false;
        for (path, state) in rows {
            let Some(state) = state else {
                self.counters.failures += 1;
                if let Some(known) = self.sessions.get_mut(path) {
                    known.synced = false;
                }
                again = true;
                continue;
            };
            again |= match self.read_row(begun, path, state) {
                RemoteVerdict::Conflict { resync } => resync,
                RemoteVerdict::Deferred => true,
                _ => false,
            };
        }
        // RS-35: what a good read leaves out.
        self.sessions.retain(|path, known| {
            if rows.iter().any(|(row, _)| row == path) || known.changed > begun.tick {
                return true;
            }
            if known.bound.is_some_and(|bound| bound <= begun.tick) {
                known.synced = false;
            }
            known.bound.is_some()
        });
        again
    }

    fn read_row(&mut self, begun: ReadBegun, path: &str, state: &RuntimeState) -> RemoteVerdict {
        let Some(known) = self.sessions.get_mut(path) else {
            self.tick += 1;
            self.sessions.insert(
                path.to_owned(),
                Known {
                    state: Some(Observed::Snapshot(state.clone())),
                    synced: true,
                    changed: self.tick,
                    bound: None,
                    contradiction: None,
                },
            );
            return RemoteVerdict::Accepted;
        };
        // RS-32: the binding is newer than the question.
        if known.bound.is_some_and(|bound| bound > begun.tick) {
            return RemoteVerdict::Deferred;
        }
        match &known.state {
            Some(Observed::Snapshot(held)) if held.runtime_epoch == state.runtime_epoch => {
                self.settle(path, state, Some(begun))
            }
            // RS-32: the stream moved on in its epoch meanwhile; which is later can't be told.
            Some(Observed::Snapshot(_)) if known.changed > begun.tick => RemoteVerdict::Deferred,
            // RS-30: an epoch, or a first word, that a read confirms.
            Some(Observed::Snapshot(_) | Observed::Legacy(_)) | None => {
                self.adopt(path, Observed::Snapshot(state.clone()), true);
                RemoteVerdict::Accepted
            }
        }
    }

    fn take_one(&mut self, begun: ReadBegun, path: &str, observed: &Observed) -> bool {
        let fresh = self
            .sessions
            .get(path)
            .and_then(|known| known.bound)
            .is_some_and(|bound| bound <= begun.tick);
        if !fresh {
            return false;
        }
        match observed {
            Observed::Snapshot(state) => matches!(
                self.read_row(begun, path, state),
                RemoteVerdict::Deferred | RemoteVerdict::Conflict { resync: true }
            ),
            // RS-14: replaced as a whole.
            Observed::Legacy(_) => {
                self.adopt(path, observed.clone(), true);
                false
            }
        }
    }

    /// RS-31: within one epoch the revision decides, whoever says it. Only a read confirms.
    fn settle(
        &mut self,
        path: &str,
        state: &RuntimeState,
        read: Option<ReadBegun>,
    ) -> RemoteVerdict {
        let Some(known) = self.sessions.get_mut(path) else {
            return RemoteVerdict::Deferred;
        };
        let Some(Observed::Snapshot(held)) = &known.state else {
            return RemoteVerdict::Deferred;
        };
        if state.revision < held.revision {
            self.counters.stale += 1;
            // A read that was asked after all that is known, and knows less, confirms nothing.
            if read.is_some_and(|begun| known.changed <= begun.tick) {
                known.synced = false;
            }
            return RemoteVerdict::Stale;
        }
        if state.revision > held.revision {
            let synced = known.synced || read.is_some();
            self.adopt(path, Observed::Snapshot(state.clone()), synced);
            return RemoteVerdict::Accepted;
        }
        if held == state {
            if read.is_some() {
                known.synced = true;
                known.contradiction = None;
            }
            return RemoteVerdict::Duplicate;
        }
        known.synced = false;
        self.counters.conflicts += 1;
        let resync = known.contradiction.as_ref() != Some(state);
        known.contradiction = Some(state.clone());
        RemoteVerdict::Conflict { resync }
    }

    fn adopt(&mut self, path: &str, observed: Observed, synced: bool) {
        self.tick += 1;
        if let Some(known) = self.sessions.get_mut(path) {
            known.state = Some(observed);
            known.synced = synced;
            known.changed = self.tick;
            known.contradiction = None;
        }
    }
}
