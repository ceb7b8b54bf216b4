//! What comes next in a turn, read off the session's state alone.
//!
//! Guarantee: the same function drives a live turn and its continuation after a restart, so the
//! two can't differ. Mutating calls run one at a time in the model's order, read-only ones side by
//! side between them (TR-49).

use std::collections::BTreeSet;

use super::record::ProposedCall;
use super::session::Session;
use crate::recovery::lifecycle::AttemptState;

/// Model requests that one turn may make.
pub const MAX_STEPS: u32 = 400;

/// What comes next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Ask the model.
    Model,
    /// Take up these calls; read-only ones together, or one mutating one.
    Calls(Vec<String>),
    /// A call's outcome is unknown: tell the model so in place of a result.
    Synthetic(String),
    /// Calls are running; wait for one of them.
    Wait,
    /// The model has nothing more to do.
    Completed,
    /// The turn made as many model requests as it may.
    TooManySteps,
}

/// TR-49. `running` are calls whose executor this host owns now; `read_only` tells it of a call.
pub fn next(
    session: &Session,
    running: &BTreeSet<String>,
    read_only: impl Fn(&ProposedCall) -> bool,
) -> Next {
    let calls = session.latest_calls();
    let turn_has_spoken = session.turn.as_ref().is_some_and(|turn| turn.steps > 0);
    let mut reads = Vec::new();
    let mut waiting = false;
    for call in &calls {
        let id = &call.proposed.call_id;
        if session.answer(id).is_some() {
            continue;
        }
        let reads_only = read_only(&call.proposed);
        if running.contains(id) {
            if !reads_only {
                return Next::Wait;
            }
            waiting = true;
            continue;
        }
        let attempt = session.attempt_of(id);
        if attempt.is_some_and(|attempt| attempt.state != AttemptState::Pending) {
            return if waiting || !reads.is_empty() {
                start_or_wait(reads)
            } else {
                Next::Synthetic(id.clone())
            };
        }
        if reads_only {
            reads.push(id.clone());
        } else if waiting || !reads.is_empty() {
            return start_or_wait(reads);
        } else {
            return Next::Calls(vec![id.clone()]);
        }
    }
    if waiting || !reads.is_empty() {
        return start_or_wait(reads);
    }
    if turn_has_spoken && calls.is_empty() {
        return Next::Completed;
    }
    if session
        .turn
        .as_ref()
        .is_some_and(|turn| turn.steps >= MAX_STEPS)
    {
        return Next::TooManySteps;
    }
    Next::Model
}

fn start_or_wait(reads: Vec<String>) -> Next {
    if reads.is_empty() {
        Next::Wait
    } else {
        Next::Calls(reads)
    }
}
