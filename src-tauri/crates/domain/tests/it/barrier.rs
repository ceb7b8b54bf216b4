//! The barrier: which attempts it stands on, whom it names, what it says.

use holdfast_domain::recovery::attempt::{EFFECT_UNKNOWN, Resolution};
use holdfast_domain::recovery::barrier::{InFlight, refusal_text, refuses, unresolved};
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::transcript::record::Superseded;

use crate::log::{Log, open_failure, receipt};

#[test]
fn tr_19_the_first_line_of_the_refusal_is_the_contracts() {
    let log = Log::with_attempt(AttemptState::Unknown, false);
    let text = refusal_text(log.attempt("a"));
    let mut lines = text.lines();
    assert_eq!(
        lines.next(),
        Some(
            "blocked: recovery_required: inspect and resolve the previous uncertain tool effect \
             before another write"
        )
    );
    let how = lines.collect::<String>();
    for part in ["attempt a", "shell", "unknown", "confirm", "dismiss"] {
        assert!(how.contains(part), "{how}");
    }
}

#[test]
fn tr_19_the_barrier_stands_on_exactly_the_unresolved_states() {
    for state in AttemptState::ALL {
        let holds = matches!(
            state,
            AttemptState::Started | AttemptState::Running | AttemptState::Unknown
        );
        let log = Log::with_attempt(state, false);
        assert_eq!(log.attempt("a").state, state);
        let named = refuses(log.session.attempts(), &InFlight::new(), None);
        assert_eq!(named.is_some(), holds, "{state:?}");
        assert_eq!(log.session.unresolved(&InFlight::new()), u64::from(holds));

        let reading = Log::with_attempt(state, true);
        let named = refuses(reading.session.attempts(), &InFlight::new(), None);
        assert!(named.is_none(), "a read-only {state:?} blocks");
    }
}

#[test]
fn tr_09_a_failure_that_left_its_effect_open_blocks() {
    let mut log = Log::with_attempt(AttemptState::Started, false);
    log.add(open_failure("a", "the connection dropped"));
    assert_eq!(log.attempt("a").state, AttemptState::Failed);
    assert_eq!(log.attempt("a").effect_summary, EFFECT_UNKNOWN);
    assert!(refuses(log.session.attempts(), &InFlight::new(), None).is_some());
    log.resolve("a", Resolution::Confirm);
    assert!(refuses(log.session.attempts(), &InFlight::new(), None).is_none());
}

#[test]
fn tr_19_what_this_host_runs_now_is_not_uncertain() {
    let log = Log::with_attempt(AttemptState::Running, false);
    let in_flight = InFlight::from(["a".to_owned()]);
    assert!(refuses(log.session.attempts(), &in_flight, None).is_none());
}

#[test]
fn tr_05_only_the_attempt_that_is_retried_is_exempt() {
    let mut log = Log::with_attempt(AttemptState::Unknown, false);
    let none = InFlight::new();
    assert!(refuses(log.session.attempts(), &none, Some("a")).is_none());
    log.receipt("b", "c2", "shell").start("b");
    let named = refuses(log.session.attempts(), &none, Some("a")).unwrap();
    assert_eq!(named.identity.attempt_id, "b");
    let named = refuses(log.session.attempts(), &none, Some("b")).unwrap();
    assert_eq!(named.identity.attempt_id, "a");
}

#[test]
fn tr_25_unresolved_attempts_come_newest_first_and_the_newest_is_named() {
    let mut log = Log::new();
    for id in ["z", "m", "a"] {
        log.receipt(id, id, "shell").start(id);
    }
    let none = InFlight::new();
    let ids: Vec<_> = unresolved(log.session.attempts(), &none)
        .iter()
        .map(|attempt| attempt.identity.attempt_id.as_str())
        .collect();
    assert_eq!(ids, ["a", "m", "z"]);
    let named = refuses(log.session.attempts(), &none, None).unwrap();
    assert_eq!(named.identity.attempt_id, "a");
}

#[test]
fn tr_36_a_superseded_attempt_blocks_no_more_and_its_successor_does() {
    let mut log = Log::with_attempt(AttemptState::Unknown, false);
    let mut retry = receipt("b", "retry_1", "shell");
    retry.idempotency_key = log.attempt("a").idempotency_key.clone();
    log.add(retry)
        .add(Superseded {
            attempt_id: "a".to_owned(),
            by: "b".to_owned(),
        })
        .start("b");
    let none = InFlight::new();
    let named = refuses(log.session.attempts(), &none, None).unwrap();
    assert_eq!(named.identity.attempt_id, "b");
    assert_eq!(log.session.unresolved(&none), 1);
    // The retry carries the original's key although its identity is another one.
    assert_eq!(
        log.attempt("b").idempotency_key,
        log.attempt("a").idempotency_key
    );
    assert_ne!(
        log.attempt("b").idempotency_key,
        log.attempt("b").identity.idempotency_key()
    );
    // An old request can't make another attempt take its place.
    log.add(Superseded {
        attempt_id: "a".to_owned(),
        by: "x".to_owned(),
    });
    assert_eq!(log.attempt("a").superseded_by.as_deref(), Some("b"));
}
