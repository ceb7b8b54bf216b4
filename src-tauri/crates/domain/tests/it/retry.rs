//! What a retry needs, what may be foreseen of it, and what its records make of a session.

use std::collections::BTreeSet;

use holdfast_domain::recovery::admission::Refusal;
use holdfast_domain::recovery::attempt::{Attempt, Inspection, InspectionState, Resolution};
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::retry::{
    Outlook, Presence, Target, admit, foresee, identity, records,
};
use holdfast_domain::transcript::notes::{closings, host_note};
use holdfast_domain::transcript::record::{Receipt, Record, Superseded};
use holdfast_domain::transcript::session::Item;
use holdfast_domain::transcript::view::{check_pairing, outbound};

use crate::log::{Log, inspected, open_failure, receipt, result};

fn target(attempt: &Attempt) -> Target<'_> {
    Target {
        read_only: false,
        presence: Presence::Absent,
        fenced: true,
        scope: Some(&attempt.identity.resource_scope),
        call: Some((
            &attempt.identity.canonical_tool,
            &attempt.identity.argument_digest,
        )),
    }
}

/// A retry of `of` as attempt `by`, by the records of the domain.
fn retry(log: &mut Log, of: &str, by: &str) {
    let original = log.attempt(of).clone();
    let identity = identity(&original.identity, &by.repeat(32), by.to_owned());
    let new = Receipt {
        identity,
        idempotency_key: String::new(),
        ..receipt("", "", "")
    };
    for record in records(&original, new, "boot-1") {
        log.add(record);
    }
}

#[test]
fn tr_36_only_what_is_proven_absent_and_fenced_may_run_again() {
    let log = Log::with_attempt(AttemptState::Unknown, false);
    let attempt = log.attempt("a");
    let mut admitted = Vec::new();
    for presence in [Presence::Present, Presence::Absent, Presence::Unknown] {
        for fenced in [false, true] {
            for read_only in [false, true] {
                let asked = Target {
                    presence,
                    fenced,
                    read_only,
                    ..target(attempt)
                };
                match admit(attempt, Some(asked)) {
                    Ok(()) => admitted.push((presence, fenced)),
                    Err(refusal) => assert_eq!(refusal, Refusal::NotFenced),
                }
            }
        }
    }
    // That the tool only reads now says nothing about the recorded effect.
    assert_eq!(admitted, [(Presence::Absent, true); 2]);
    // What both the record and the tool call a look needs no proof.
    let mut look = attempt.clone();
    look.read_only = true;
    let unproven = Target {
        presence: Presence::Unknown,
        fenced: false,
        ..target(&look)
    };
    assert_eq!(admit(&look, Some(unproven)), Err(Refusal::NotFenced));
    let read = Target {
        read_only: true,
        ..unproven
    };
    assert_eq!(admit(&look, Some(read)), Ok(()));
}

#[test]
fn tr_30_the_causes_of_a_retry_are_checked_in_order() {
    let log = Log::with_attempt(AttemptState::Unknown, false);
    let attempt = log.attempt("a");
    let good = target(attempt);
    let mut asked = Target {
        presence: Presence::Unknown,
        scope: Some("file:/elsewhere"),
        call: Some(("another", "digest")),
        ..good
    };
    let mut seen = vec![admit(attempt, None).unwrap_err()];
    let mut note = |asked: Target<'_>| seen.push(admit(attempt, Some(asked)).unwrap_err());
    note(asked);
    asked.presence = Presence::Absent;
    note(asked);
    asked.scope = None;
    note(asked);
    asked.scope = good.scope;
    note(asked);
    asked.call = Some((&attempt.identity.canonical_tool, "another digest"));
    note(asked);
    assert_eq!(
        seen,
        [
            Refusal::ToolUnavailable,
            Refusal::NotFenced,
            Refusal::SinkChanged,
            Refusal::SinkChanged,
            Refusal::RetryTargetChanged,
            Refusal::RetryTargetChanged,
        ]
    );
    assert_eq!(admit(attempt, Some(good)), Ok(()));
    // A call that its own checks refuse is refused with their code, behind these.
    asked.call = None;
    assert_eq!(admit(attempt, Some(asked)), Ok(()));
}

#[test]
fn tr_32_an_absence_without_a_fence_proves_nothing() {
    let states = |presence: Presence| (presence.as_inspected(false), presence.as_inspected(true));
    use InspectionState::{AbsentFenced, Present, Unknown};
    assert_eq!(states(Presence::Present), (Present, Present));
    assert_eq!(states(Presence::Absent), (Unknown, AbsentFenced));
    assert_eq!(states(Presence::Unknown), (Unknown, Unknown));
}

#[test]
fn tr_35_what_speaks_against_a_retry_is_foreseen_in_order() {
    let mut log = Log::with_attempt(AttemptState::Unknown, false);
    log.receipt("b", "c2", "shell").start("b");
    let nothing = BTreeSet::new();
    let mut now = Outlook {
        enabled: false,
        tool_known: false,
        mode_read_only: true,
        in_flight: &nothing,
    };
    let mut seen = Vec::new();
    let note = |log: &Log, now: &Outlook<'_>, seen: &mut Vec<&'static str>| {
        let (code, words) = foresee(&log.session, log.attempt("a"), now).unwrap();
        assert!(!words.is_empty());
        seen.push(code);
    };
    note(&log, &now, &mut seen);
    log.add(inspected("a", "i1"));
    note(&log, &now, &mut seen);
    now.enabled = true;
    note(&log, &now, &mut seen);
    now.tool_known = true;
    note(&log, &now, &mut seen);
    let mut fenced = inspected("a", "i2");
    fenced.inspection = Inspection {
        state: InspectionState::AbsentFenced,
        ..fenced.inspection
    };
    log.add(fenced);
    note(&log, &now, &mut seen);
    now.mode_read_only = false;
    note(&log, &now, &mut seen);
    assert_eq!(
        seen,
        [
            "not_inspected",
            "retry_disabled",
            "tool_unavailable",
            "not_fenced",
            "mode_read_only",
            "recovery_required",
        ]
    );
    // What this host runs itself is not uncertain.
    let runs = BTreeSet::from(["b".to_owned()]);
    now.in_flight = &runs;
    assert_eq!(foresee(&log.session, log.attempt("a"), &now), None);
}

#[test]
fn tr_36_a_retry_has_fresh_ids_the_same_key_and_the_stored_arguments() {
    let mut log = Log::with_attempt(AttemptState::Unknown, false);
    retry(&mut log, "a", "b");
    let (first, second) = (log.attempt("a").clone(), log.attempt("b").clone());
    assert_eq!(first.superseded_by.as_deref(), Some("b"));
    assert_eq!(second.retry_of.as_deref(), Some("a"));
    assert_eq!(first.idempotency_key, second.idempotency_key);
    assert_eq!(first.identity.triple(), second.identity.triple());
    let call = log.session.call(&second.identity.call_id).unwrap();
    assert_eq!(call.proposed.call_id, format!("retry_{}", "b".repeat(32)));
    let original = log.session.call("c1").unwrap();
    assert_eq!(call.proposed.arguments, original.proposed.arguments);
    assert_eq!(original.attempt_id.as_deref(), Some("a"));
    let kinds: Vec<&str> = log.entries[log.entries.len() - 3..]
        .iter()
        .map(|entry| entry.record.kind())
        .collect();
    assert_eq!(kinds, ["receipt", "superseded", "tool_started"]);
}

#[test]
fn tr_36_no_model_sees_a_retry_but_by_one_note() {
    let mut log = Log::with_attempt(AttemptState::Unknown, false);
    log.end("t1", "interrupted");
    retry(&mut log, "a", "b");
    log.add(result("b", AttemptState::Completed, "the retry's output"));
    assert!(matches!(log.session.items.last(), Some(Item::Retry { .. })));
    for closing in closings(&log.session) {
        log.add(closing);
    }
    let note = host_note(&log.session).unwrap();
    assert!(
        note.text.contains("run again behind a fence"),
        "{}",
        note.text
    );
    assert!(note.text.contains("the retry's output"), "{}", note.text);
    log.add(note);
    assert_eq!(host_note(&log.session), None, "told once");
    log.turn("t2");
    let messages = outbound(&log.session);
    check_pairing(&messages).unwrap();
    let sent = serde_json::to_string(&messages).unwrap();
    assert!(!sent.contains("retry_"), "{sent}");
    assert!(
        sent.contains("The outcome of this call is unknown"),
        "{sent}"
    );
}

#[test]
fn tr_15_the_end_of_a_chain_of_retries_is_told_with_the_first() {
    let mut log = Log::with_attempt(AttemptState::Unknown, false);
    log.end("t1", "interrupted");
    for closing in closings(&log.session) {
        log.add(closing);
    }
    retry(&mut log, "a", "b");
    log.change("b", AttemptState::Unknown);
    assert_eq!(host_note(&log.session), None, "nothing is known yet");
    retry(&mut log, "b", "c");
    assert_eq!(log.session.statistics(&BTreeSet::new()).retried, 2);
    log.add(open_failure("c", "hung up"));
    let note = host_note(&log.session).unwrap();
    assert_eq!(note.attempts, ["a"]);
    assert!(note.text.contains("not known"), "{}", note.text);
    log.add(note);
    // What a person says of the last one is news of the first.
    log.resolve("c", Resolution::Confirm);
    let note = host_note(&log.session).unwrap();
    assert!(note.text.contains("says that the effect happened"));
    log.add(note);
    // And so is what comes to light after that.
    log.add(result("c", AttemptState::Completed, "late"));
    let note = host_note(&log.session).unwrap();
    assert!(note.text.contains("Found later"), "{}", note.text);
}

#[test]
fn tr_36_a_place_that_nothing_has_taken_lifts_no_barrier() {
    let superseded = |attempt: &str, by: &str| Superseded {
        attempt_id: attempt.to_owned(),
        by: by.to_owned(),
    };
    let unresolved = |log: &Log| {
        log.session
            .attempts()
            .filter(|attempt| attempt.is_unresolved(false))
            .map(|attempt| attempt.identity.attempt_id.clone())
            .collect::<Vec<_>>()
    };
    // Its receipt was damaged.
    let mut log = Log::with_attempt(AttemptState::Unknown, false);
    log.add(superseded("a", "lost"));
    assert_eq!(unresolved(&log), ["a"]);
    log.start("lost");
    assert_eq!(unresolved(&log), ["a", "lost"], "both are open");
    // By itself, or by an earlier one.
    let mut log = Log::with_attempt(AttemptState::Unknown, false);
    log.receipt("b", "c2", "shell").start("b");
    log.add(superseded("a", "a")).add(superseded("b", "a"));
    assert_eq!(unresolved(&log), ["a", "b"]);
    // One attempt takes one place, once.
    log.receipt("c", "c3", "shell").start("c");
    log.add(superseded("a", "c")).add(superseded("b", "c"));
    log.add(superseded("a", "b"));
    assert_eq!(unresolved(&log), ["b", "c"]);
    assert_eq!(log.attempt("a").superseded_by.as_deref(), Some("c"));
}

#[test]
fn tr_05_every_prefix_of_a_retrys_records_is_safe() {
    let mut whole = Log::with_attempt(AttemptState::Unknown, false);
    whole.end("t1", "interrupted");
    let before = whole.entries.len();
    retry(&mut whole, "a", "b");
    let entries = whole.entries.clone();
    for length in before..=entries.len() {
        let mut log = Log::empty();
        for entry in &entries[..length] {
            log.add(entry.record.clone());
        }
        let open: Vec<String> = log
            .session
            .attempts()
            .filter(|attempt| attempt.is_unresolved(false))
            .map(|attempt| attempt.identity.attempt_id.clone())
            .collect();
        let wanted: &[&str] = match length - before {
            0 | 1 => &["a"],
            2 => &[],
            _ => &["b"],
        };
        assert_eq!(open, wanted, "{} of 3 records", length - before);
        // A retry that has no start record never started.
        let steps = holdfast_domain::recovery::restart::plan(
            &log.session,
            &holdfast_domain::recovery::restart::Findings::default(),
        );
        let cancelled = steps.iter().any(|step| {
            matches!(
                step,
                holdfast_domain::recovery::restart::RestartStep::Record(Record::AttemptChanged(
                    change
                )) if change.attempt_id == "b" && change.state == AttemptState::Cancelled
            )
        });
        assert_eq!(cancelled, matches!(length - before, 1 | 2));
    }
}
