//! What a person sees of a runtime state: one word for each session, the first that is true (RS-15).
//!
//! Guarantee: a pure function of the committed snapshot; nothing here looks at a clock or guesses.

use super::observed::{LegacyState, Observed};
use super::snapshot::{Activity, Outcome, Phase, RuntimeState};

/// RS-15, highest priority first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shown {
    /// The turn's end is being stored.
    Finishing,
    /// Stop was asked for.
    Cancelling,
    /// A person is asked.
    WaitingConfirmation,
    /// Text arrives.
    Streaming,
    /// All else of a running turn.
    Thinking,
    /// Only jobs run.
    BackgroundJobs,
    /// The latest turn failed.
    Error,
    /// The queue is paused.
    Paused,
    /// A result waits to be delivered.
    AwaitingDelivery,
    /// Nothing.
    Idle,
}

/// RS-15: what is shown of a session. A closed session shows no activity, whatever its flags say
/// (RS-09); its jobs, its question and its outcome stay.
pub fn shown(state: &RuntimeState) -> Shown {
    let closed = state.phase == Phase::Closed;
    if state.phase == Phase::Finishing {
        Shown::Finishing
    } else if state.cancel_requested && !closed {
        Shown::Cancelling
    } else if state.pending_prompt {
        Shown::WaitingConfirmation
    } else if state.phase == Phase::Executing {
        match state.activity {
            Activity::Streaming => Shown::Streaming,
            Activity::Thinking | Activity::None => Shown::Thinking,
        }
    } else if state.background_jobs > 0 {
        Shown::BackgroundJobs
    } else {
        match state.outcome {
            Outcome::Error => Shown::Error,
            Outcome::Paused => Shown::Paused,
            Outcome::AwaitingDelivery => Shown::AwaitingDelivery,
            Outcome::None => Shown::Idle,
        }
    }
}

/// RS-14, RS-15: the same for what another host tells. An older one can't tell finishing, text from
/// thought, or an outcome, so none of them is shown (RS-03).
pub fn shown_observed(observed: &Observed) -> Shown {
    match observed {
        Observed::Snapshot(state) => shown(state),
        Observed::Legacy(state) => shown_legacy(state),
    }
}

fn shown_legacy(state: &LegacyState) -> Shown {
    if state.cancel_requested == Some(true) {
        Shown::Cancelling
    } else if state.pending_prompt == Some(true) {
        Shown::WaitingConfirmation
    } else if state.running {
        Shown::Thinking
    } else if state.background_jobs.is_some_and(|jobs| jobs > 0) {
        Shown::BackgroundJobs
    } else {
        Shown::Idle
    }
}

/// What is shown of a session that no host has open: what its log says and nothing more.
pub fn shown_at_rest(pending_prompt: bool, turn_failed: bool) -> Shown {
    if pending_prompt {
        Shown::WaitingConfirmation
    } else if turn_failed {
        Shown::Error
    } else {
        Shown::Idle
    }
}
