//! What a model is told about outcomes: synthetic results in place of missing ones, and host notes
//! for what is learnt afterwards (TR-15).
//!
//! Guarantee: texts name tool, time and meaning, never arguments; they are stored when first sent.

use super::record::{CallRefused, HostNote, Record, SyntheticResult, ToolResult};
use super::session::{Call, Session, Sight};
use crate::recovery::attempt::{Attempt, Resolution};
use crate::recovery::lifecycle::AttemptState;
use crate::recovery::process::EndedBy;

/// Longest part of a recovered output that a note repeats, in bytes.
const NOTE_OUTPUT: usize = 4096;

/// TR-15: in place of a missing result.
pub fn synthetic_text(attempt: Option<&Attempt>) -> String {
    match attempt {
        Some(attempt) => format!(
            "[host] The outcome of this call is unknown{}. It may have happened, in part or whole. \
             Look at the outside state before repeating it.",
            attempt
                .started_at
                .map(|at| format!(" (started {})", utc(at)))
                .unwrap_or_default()
        ),
        None => "[host] The outcome of this call is unknown. Look at the outside state before \
                 repeating it."
            .to_owned(),
    }
}

/// TR-15, TR-51: the records that give every earlier call its one result before a new message:
/// calls that never started are closed, open ones get a synthetic result.
pub fn closings(session: &Session) -> Vec<Record> {
    session
        .unanswered()
        .into_iter()
        .map(|call| closing(session, call))
        .collect()
}

/// The record that gives one call its result.
pub fn closing(session: &Session, call: &Call) -> Record {
    match session.attempt_of(&call.proposed.call_id) {
        None => CallRefused {
            turn_id: call.turn_id.clone(),
            call_id: call.proposed.call_id.clone(),
            code: "not_started".to_owned(),
            text: "not started: the turn ended before this call was run".to_owned(),
        }
        .into(),
        Some(attempt) => SyntheticResult {
            turn_id: call.turn_id.clone(),
            call_id: call.proposed.call_id.clone(),
            attempt_id: Some(attempt.identity.attempt_id.clone()),
            text: synthetic_text(Some(attempt)),
        }
        .into(),
    }
}

/// TR-15: one note about everything that was learnt since the model was told "unknown"; `None`
/// when there is nothing to tell. To be computed on the session with its closings applied.
pub fn host_note(session: &Session) -> Option<HostNote> {
    let told: Vec<(&Attempt, String)> = session
        .attempts()
        .filter(|attempt| !attempt.told && was_told_less(session, attempt))
        .filter_map(|attempt| meaning(session, attempt).map(|words| (attempt, words)))
        .collect();
    if told.is_empty() {
        return None;
    }
    let lines: Vec<String> = told
        .iter()
        .map(|(attempt, words)| {
            let job = if attempt.background.is_some() {
                format!("job {}, ", attempt.identity.attempt_id)
            } else {
                String::new()
            };
            format!(
                "- {job}{} started {}: {words}",
                attempt.identity.canonical_tool,
                attempt
                    .started_at
                    .map_or_else(|| "at an unknown time".to_owned(), utc),
            )
        })
        .collect();
    let jobs = told
        .iter()
        .filter(|(attempt, _)| attempt.background.is_some())
        .count();
    let about = match (jobs, told.len() - jobs) {
        (_, 0) => "What became of jobs that ran in the background",
        (0, _) => "What is now known about calls whose outcome was unknown",
        (_, _) => "What is now known about calls whose outcome was unknown, and about jobs",
    };
    Some(HostNote {
        text: format!("[host note] {about}:\n{}", lines.join("\n")),
        attempts: told
            .iter()
            .map(|(attempt, _)| attempt.identity.attempt_id.clone())
            .collect(),
    })
}

/// The model's knowledge of the attempt may be behind: it was told "unknown", or that a job runs, or that
/// a failure left the effect open, or nothing at all since the call is not in its transcript, or not
/// any more
/// (TR-22). What a retry came to is told with the attempt that it took the place of.
fn was_told_less(session: &Session, attempt: &Attempt) -> bool {
    if attempt.retry_of.is_some() {
        return false;
    }
    let decided = attempt.resolution.is_some() || attempt.superseded_by.is_some();
    attempt.synthetic_sent
        || attempt.background.is_some()
        || attempt.late.is_some()
        || attempt.result.as_ref().is_some_and(Session::failed_open)
        || match session.sight(&attempt.identity.call_id) {
            Sight::InView => false,
            Sight::Never => decided,
            Sight::UpTo(seen) => decided || (attempt.is_recovered() && attempt.result_seq > seen),
        }
}

/// What is known now, in words; `None` when that is no more than the model was told.
fn meaning(session: &Session, attempt: &Attempt) -> Option<String> {
    if let Some(retry) = &attempt.superseded_by {
        let outcome = session
            .attempt(retry)
            .filter(|retry| retry.state.is_final() || retry.superseded_by.is_some())
            .and_then(|retry| settled(session, retry))?;
        return Some(format!(
            "the person had it run again behind a fence. Of that run: {outcome}"
        ));
    }
    match &attempt.result {
        // The model has this result already.
        Some(result)
            if !attempt.synthetic_sent
                && attempt.background.is_none()
                && Session::failed_open(result)
                && attempt.resolution.is_none() =>
        {
            None
        }
        Some(_) | None => settled(session, attempt),
    }
}

fn settled(session: &Session, attempt: &Attempt) -> Option<String> {
    if attempt.superseded_by.is_some() {
        return meaning(session, attempt);
    }
    let words = match (attempt.state, attempt.resolution) {
        (AttemptState::UserConfirmed, _) => Some(
            "the person looked and says that the effect happened; there is no tool output. Do not \
             repeat it."
                .to_owned(),
        ),
        (AttemptState::UserDismissed, _) => Some(
            "the outcome stays unknown; the person decided to go on without knowing. Look before \
             you rely on it."
                .to_owned(),
        ),
        (AttemptState::Cancelled, _) if attempt.started_at.is_some() => {
            Some("it was cut short; it only reads and has no effect".to_owned())
        }
        (AttemptState::NotStarted | AttemptState::Cancelled, _) => {
            Some("it is proven that it never started".to_owned())
        }
        (_, Some(Resolution::Reject)) if attempt.is_unresolved(false) => Some(
            "the person refused a retry; that proves nothing about the effect, and the outcome \
             stays unknown"
                .to_owned(),
        ),
        // The model was told that it runs.
        (AttemptState::Unknown, _) if attempt.background.is_some() => Some(
            "it does not run any more, and its outcome is unknown: it may have happened, in part \
             or whole. Look at the outside state before repeating it."
                .to_owned(),
        ),
        (_, _) => attempt.result.as_ref().map(ending),
    };
    match (words, &attempt.late) {
        (Some(words), Some(late)) => Some(format!("{words} Found later: {}", ending(late))),
        (words, _) => words,
    }
}

/// A result in words, with the first part of its output.
fn ending(result: &ToolResult) -> String {
    let end = end_of(result);
    let output = head(&result.text, NOTE_OUTPUT);
    if output.is_empty() {
        format!("{end}. Do not repeat it without need.")
    } else {
        format!("{end}. Do not repeat it without need. Its output:\n{output}")
    }
}

/// How an attempt with that result ended, in words.
pub fn end_of(result: &ToolResult) -> String {
    result.exit.as_ref().map_or_else(
        || {
            if Session::failed_open(result) {
                "it failed, and whether it had an effect is not known".to_owned()
            } else {
                format!("it ended as {}", result.state.as_str())
            }
        },
        |exit| match (exit.ended_by, exit.code, exit.signal) {
            (EndedBy::Itself, Some(code), _) => {
                format!("it ended by itself, exit status {code}")
            }
            (EndedBy::Itself, None, Some(signal)) => format!("it was ended by signal {signal}"),
            (EndedBy::Itself, None, None) => "it ended by itself".to_owned(),
            (EndedBy::Stop, ..) => "it was stopped; effects may be partial".to_owned(),
            (EndedBy::Timeout, ..) => {
                "it ran out of time and was ended; effects may be partial".to_owned()
            }
            (EndedBy::HostLoss | EndedBy::External, ..) => {
                "it was ended from outside; effects may be partial".to_owned()
            }
        },
    )
}

/// The first `limit` bytes, at a character's border.
fn head(text: &str, limit: usize) -> &str {
    let mut end = text.len().min(limit);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text.get(..end).unwrap_or_default()
}

/// Unix milliseconds as `YYYY-MM-DDTHH:MM:SSZ`.
pub fn utc(ms: u64) -> String {
    let seconds = ms / 1000;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Civil date from days since 1970-01-01, counted in years that begin in March.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z",
        rest / 3600,
        rest / 60 % 60,
        rest % 60
    )
}
