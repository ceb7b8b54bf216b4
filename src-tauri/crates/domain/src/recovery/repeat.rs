//! The repeat guard: before an effect whose earlier attempt a model may know too little of could
//! happen a second time, a person is asked (TR-46).
//!
//! Guarantees: what guards and what is used up is read off the log alone, so it is the same after a
//! restart, in a copy, and for every client; an allowance is used up by a start, never by an answer
//! that led to none.

use super::attempt::Attempt;
use super::barrier::InFlight;
use super::identity::Triple;
use super::lifecycle::AttemptState;
use crate::transcript::notes::end_of;
use crate::transcript::session::Session;

/// A mutating call that is about to be started. A retry is none: it is asked for by a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// What it would do, as [`Triple::within`] its session.
    pub effect: Triple,
    /// It runs a command.
    pub shell: bool,
}

/// What a call may repeat.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Earlier<'a> {
    /// The earlier attempt.
    pub attempt: &'a Attempt,
    /// The call has its triple. Else the call is only the first command behind a restart that found
    /// the attempt open: a space more in the command is another digest.
    pub same_call: bool,
}

/// TR-46: the attempt because of which a person is asked, in every mode: the latest one of the same
/// triple, else the latest one that a restart found open.
pub fn earlier<'a>(
    session: &'a Session,
    in_flight: &InFlight,
    call: &Proposal,
) -> Option<Earlier<'a>> {
    let guards = |attempt: &&Attempt| guards(attempt, in_flight);
    let same = session
        .attempts()
        .rev()
        .filter(guards)
        .filter(|attempt| attempt.identity.effect() == call.effect)
        // Allowed once, all that was there before is used up.
        .find(|attempt| !is_used_up(session, attempt))
        .map(|attempt| (attempt, true));
    let after_restart = || {
        session
            .attempts()
            .rev()
            .filter(guards)
            .filter(|attempt| attempt.found_seq != 0 && !attempt.first_turn_over)
            .find(|attempt| call.shell && !has_run_a_command_since(session, attempt.found_seq))
            .map(|attempt| (attempt, false))
    };
    same.or_else(after_restart)
        .map(|(attempt, same_call)| Earlier { attempt, same_call })
}

/// The attempt has an end of the kind that guards, whatever runs now.
pub fn has_guarding_end(attempt: &Attempt) -> bool {
    !attempt.read_only
        && match attempt.state {
            AttemptState::UserConfirmed
            | AttemptState::UserDismissed
            | AttemptState::Interrupted => true,
            AttemptState::Completed | AttemptState::Failed => attempt.is_recovered(),
            AttemptState::Pending
            | AttemptState::Started
            | AttemptState::Running
            | AttemptState::Unknown
            | AttemptState::Cancelled
            | AttemptState::NotStarted => false,
        }
}

fn guards(attempt: &Attempt, in_flight: &InFlight) -> bool {
    has_guarding_end(attempt)
        || (!attempt.read_only
            && attempt.found_open
            && attempt.result.is_none()
            && in_flight.contains(&attempt.identity.attempt_id))
}

/// A person allowed this effect again behind that attempt, and it was started.
fn is_used_up(session: &Session, attempt: &Attempt) -> bool {
    let effect = attempt.identity.effect();
    session.attempts().any(|later| {
        later.allowed_repeat
            && later.receipt_seq > attempt.receipt_seq
            && has_run(later)
            && later.identity.effect() == effect
    })
}

/// A command that a model asked for was started behind that place of the log.
fn has_run_a_command_since(session: &Session, seq: u64) -> bool {
    session.attempts().any(|later| {
        later.receipt_seq > seq
            && later.supervised
            && !later.read_only
            && has_run(later)
            && !session.is_retry(&later.identity.attempt_id)
    })
}

/// It was started, and it is not proven that it never ran.
fn has_run(attempt: &Attempt) -> bool {
    attempt.started_at.is_some()
        && match attempt.state {
            AttemptState::Pending | AttemptState::Cancelled | AttemptState::NotStarted => false,
            AttemptState::Started
            | AttemptState::Running
            | AttemptState::Completed
            | AttemptState::Failed
            | AttemptState::Unknown
            | AttemptState::UserConfirmed
            | AttemptState::Interrupted
            | AttemptState::UserDismissed => true,
        }
}

/// How the earlier attempt ended, as a sentence: never its arguments or its output.
pub fn outcome(attempt: &Attempt, in_flight: &InFlight) -> String {
    let words = match attempt.state {
        AttemptState::UserConfirmed => {
            "a person looked and says that its effect happened".to_owned()
        }
        AttemptState::UserDismissed => {
            "its outcome is unknown, and a person decided to go on without knowing".to_owned()
        }
        AttemptState::Pending
        | AttemptState::Started
        | AttemptState::Running
        | AttemptState::Unknown
            if in_flight.contains(&attempt.identity.attempt_id) =>
        {
            "it was found running after a restart, and it still runs".to_owned()
        }
        AttemptState::Pending
        | AttemptState::Started
        | AttemptState::Running
        | AttemptState::Unknown => "its outcome is unknown".to_owned(),
        AttemptState::Cancelled | AttemptState::NotStarted => "it never ran".to_owned(),
        AttemptState::Completed | AttemptState::Failed | AttemptState::Interrupted => attempt
            .result
            .as_ref()
            .map_or_else(|| "it ended".to_owned(), end_of),
    };
    match &attempt.late {
        Some(late) => format!("{words}; found later: {}", end_of(late)),
        None if attempt.is_recovered() => format!("{words} (found after a restart)"),
        None => words,
    }
}

/// Why it is asked, for the person, in one sentence.
pub fn question(earlier: &Earlier<'_>, in_flight: &InFlight) -> String {
    let outcome = outcome(earlier.attempt, in_flight);
    if earlier.same_call {
        format!("the same call was started before: {outcome}")
    } else {
        format!(
            "it is the first command after a restart, and may repeat what the restart found open: \
             {outcome}"
        )
    }
}

/// TR-46: the result of such a call where nobody can be asked.
pub fn refusal_text(earlier: &Earlier<'_>, in_flight: &InFlight) -> String {
    format!(
        "refused: repeat_refused: {}. Only a person may allow that it happens again, and nobody is \
         there to ask. Nothing was run. Look at the outside state, and go on without repeating it.",
        question(earlier, in_flight)
    )
}
