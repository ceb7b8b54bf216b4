//! The barrier: no new mutating call while an earlier effect is unknown (TR-19).

use std::collections::BTreeSet;

use super::attempt::Attempt;
use super::lifecycle::AttemptState;

/// Attempts whose executor this host owns now.
pub type InFlight = BTreeSet<String>;

/// Unresolved attempts, newest first (TR-25).
pub fn unresolved<'a>(
    attempts: impl DoubleEndedIterator<Item = &'a Attempt>,
    in_flight: &InFlight,
) -> Vec<&'a Attempt> {
    attempts
        .rev()
        .filter(|attempt| attempt.is_unresolved(in_flight.contains(&attempt.identity.attempt_id)))
        .collect()
}

/// TR-05 (2), TR-19: the attempt that refuses a mutating call, if any; the newest one is named.
/// `retried` is exempt.
pub fn refuses<'a>(
    attempts: impl DoubleEndedIterator<Item = &'a Attempt>,
    in_flight: &InFlight,
    retried: Option<&str>,
) -> Option<&'a Attempt> {
    unresolved(attempts, in_flight)
        .into_iter()
        .find(|attempt| Some(attempt.identity.attempt_id.as_str()) != retried)
}

/// TR-19: the result text of a refused call. Its first line is part of the contract.
pub fn refusal_text(attempt: &Attempt) -> String {
    format!(
        "blocked: recovery_required: inspect and resolve the previous uncertain tool effect before \
         another write\nattempt {} ({} on {}) is {}. The person can inspect it and then confirm or \
         dismiss it. Reading, \
         searching, fetch and shell with read_only still work; do not repeat the earlier call.",
        attempt.identity.attempt_id,
        attempt.identity.canonical_tool,
        attempt.subject,
        AttemptState::as_str(attempt.state),
    )
}
