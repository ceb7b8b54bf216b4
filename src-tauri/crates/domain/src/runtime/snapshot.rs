//! The runtime state of one session: a snapshot, how it is derived, and its revisions.
//!
//! Guarantees: a revision has one content for ever; it grows by one only when the meaning changed,
//! so that text deltas publish nothing (RS-11).

use serde::{Deserialize, Serialize};

/// Largest revision (RS-04): 2^53 − 1.
pub const MAX_REVISION: u64 = (1 << 53) - 1;

/// RS-04: what a session does now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Nothing runs.
    Idle,
    /// A turn runs.
    Executing,
    /// A turn stores its end.
    Finishing,
    /// The session is closed.
    Closed,
}

/// RS-04: what the model does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    /// Nothing to show.
    #[serde(rename = "")]
    None,
    /// Text arrives.
    Streaming,
    /// All else of a running turn.
    Thinking,
}

/// RS-04: how the latest turn stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum TurnStatus {
    /// There is no turn.
    #[serde(rename = "")]
    None,
    /// It runs.
    InProgress,
    /// It ended as it should.
    Completed,
    /// It ended with an error.
    Failed,
    /// A person stopped it.
    Cancelled,
    /// The program ended during it.
    Interrupted,
}

impl TurnStatus {
    /// The status of a turn's stored end.
    pub fn of_end(word: &str) -> Self {
        match word {
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "cancelled" => Self::Cancelled,
            _ => Self::Interrupted,
        }
    }
}

/// RS-04: an additive fact for the indicators.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing to show.
    #[serde(rename = "")]
    None,
    /// The latest turn failed.
    Error,
    /// The queue is paused.
    Paused,
    /// A result waits to be delivered.
    AwaitingDelivery,
}

/// RS-04: one snapshot, all fields explicit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeState {
    /// Always 1.
    pub schema_version: u32,
    /// 32 hex digits; new when path or turn ledger change (RS-08).
    pub runtime_epoch: String,
    /// 1…2^53−1, from 1 in each epoch.
    #[specta(type = f64)]
    pub revision: u64,
    /// What it does.
    pub phase: Phase,
    /// The running or the finishing flag, whatever the phase.
    pub running: bool,
    /// Latest turn, or empty.
    pub turn_id: String,
    /// How it stands.
    pub turn_status: TurnStatus,
    /// Place of the turn's last record when this was committed; alone it is no change (RS-11).
    #[specta(type = f64)]
    pub turn_event_seq: u64,
    /// A person is asked.
    pub pending_prompt: bool,
    /// Stop was asked for and has not taken effect.
    pub cancel_requested: bool,
    /// Stop would do something.
    pub cancellable: bool,
    /// Jobs that have not exited.
    #[specta(type = f64)]
    pub background_jobs: u64,
    /// What the model does.
    pub activity: Activity,
    /// Attempts behind the barrier.
    #[specta(type = f64)]
    pub unresolved: u64,
    /// How the latest turn ended, when that matters.
    pub outcome: Outcome,
}

impl RuntimeState {
    /// RS-05.
    pub fn active_work(&self) -> bool {
        self.running || self.pending_prompt || self.background_jobs > 0
    }

    /// RS-37: the part of the epoch that logs carry, 8 hex digits.
    pub fn epoch_mark(&self) -> &str {
        self.runtime_epoch.get(..8).unwrap_or_default()
    }

    /// RS-06: a snapshot of which a reader may believe anything. No count is larger than what every
    /// reader can hold exactly.
    pub fn is_valid(&self) -> bool {
        self.schema_version == 1
            && !self.runtime_epoch.is_empty()
            && (1..=MAX_REVISION).contains(&self.revision)
            && [self.turn_event_seq, self.background_jobs, self.unresolved]
                .iter()
                .all(|count| *count <= MAX_REVISION)
    }
}

/// The flags that a controller samples at a commit boundary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sample {
    /// The session is closed or closing.
    pub closed: bool,
    /// A turn's loop runs.
    pub running: bool,
    /// The loop is done and its end is being stored.
    pub finishing: bool,
    /// Stop was asked for.
    pub cancelling: bool,
    /// Text arrives now.
    pub streaming: bool,
    /// A person is asked.
    pub pending_prompt: bool,
    /// Latest turn, or empty.
    pub turn_id: String,
    /// Stored end of the latest turn; empty while it has none.
    pub turn_end: String,
    /// Place of the last record.
    pub turn_event_seq: u64,
    /// Jobs that have not exited.
    pub background_jobs: u64,
    /// Attempts behind the barrier.
    pub unresolved: u64,
    /// Messages wait, and none of them runs until a person resumes.
    pub queue_paused: bool,
}

/// RS-09: the snapshot that a sample means, without epoch and revision.
pub fn derive(sample: &Sample) -> RuntimeState {
    let phase = if sample.closed {
        Phase::Closed
    } else if sample.running {
        Phase::Executing
    } else if sample.finishing {
        Phase::Finishing
    } else {
        Phase::Idle
    };
    let executing = phase == Phase::Executing;
    let turn_status = match (sample.turn_id.is_empty(), sample.turn_end.as_str()) {
        (true, _) => TurnStatus::None,
        (false, "") => TurnStatus::InProgress,
        (false, end) => TurnStatus::of_end(end),
    };
    RuntimeState {
        schema_version: 1,
        runtime_epoch: String::new(),
        revision: 0,
        phase,
        running: sample.running || sample.finishing,
        turn_id: sample.turn_id.clone(),
        turn_status,
        turn_event_seq: sample.turn_event_seq,
        pending_prompt: sample.pending_prompt,
        cancel_requested: sample.cancelling,
        cancellable: !sample.finishing
            && (sample.running || sample.pending_prompt || sample.cancelling),
        background_jobs: sample.background_jobs,
        activity: match (executing, sample.streaming) {
            (false, _) => Activity::None,
            (true, true) => Activity::Streaming,
            (true, false) => Activity::Thinking,
        },
        unresolved: sample.unresolved,
        outcome: if turn_status == TurnStatus::Failed {
            Outcome::Error
        } else if sample.queue_paused {
            Outcome::Paused
        } else {
            Outcome::None
        },
    }
}

/// RS-08, RS-11: gives samples their epoch and revision.
#[derive(Debug, Clone)]
pub struct Commits {
    current: RuntimeState,
    binding: String,
}

impl Commits {
    /// First commit in a new epoch (32 hex digits). `binding` is the session's path.
    pub fn new(epoch: String, binding: String, sample: &Sample) -> Self {
        let current = RuntimeState {
            runtime_epoch: epoch,
            revision: 1,
            ..derive(sample)
        };
        Self { current, binding }
    }

    /// The latest committed snapshot.
    pub fn current(&self) -> &RuntimeState {
        &self.current
    }

    /// The path that the epoch belongs to.
    pub fn binding(&self) -> &str {
        &self.binding
    }

    /// Commits a sample; returns the new snapshot when its meaning changed.
    pub fn commit(&mut self, sample: &Sample) -> Option<&RuntimeState> {
        let next = RuntimeState {
            runtime_epoch: self.current.runtime_epoch.clone(),
            revision: self.current.revision,
            turn_event_seq: self.current.turn_event_seq,
            ..derive(sample)
        };
        if next == self.current {
            return None;
        }
        self.current = RuntimeState {
            revision: self.current.revision + 1,
            turn_event_seq: sample.turn_event_seq,
            ..next
        };
        Some(&self.current)
    }

    /// RS-08: another path or another ledger begins a new epoch.
    pub fn rebind(&mut self, epoch: String, binding: String, sample: &Sample) {
        *self = Self::new(epoch, binding, sample);
    }
}
