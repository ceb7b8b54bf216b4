//! What a model is told: synthetic results, closings, host notes.

use holdfast_domain::recovery::attempt::Resolution;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::EndedBy;
use holdfast_domain::transcript::notes::{closings, host_note, synthetic_text, utc};
use holdfast_domain::transcript::record::{
    CallRefused, NotStarted, Record, ResultSource, Superseded, ToolResult,
};

use crate::log::{Log, exit, open_failure, receipt, result};

use AttemptState as S;

/// Gives every call its one result, and returns how many needed one.
fn close(log: &mut Log) -> usize {
    let records = closings(&log.session);
    let count = records.len();
    for record in records {
        log.add(record);
    }
    count
}

/// Tells what there is to tell.
fn tell(log: &mut Log) -> Option<String> {
    let note = host_note(&log.session)?;
    let text = note.text.clone();
    log.add(note);
    Some(text)
}

/// An attempt whose call was answered with "unknown".
fn told_unknown() -> Log {
    let mut log = Log::with_attempt(S::Unknown, false);
    assert_eq!(close(&mut log), 1);
    assert_eq!(tell(&mut log), None);
    log.end("t1", "interrupted");
    log
}

#[test]
fn tr_15_the_missing_result_is_synthetic_and_neither_success_nor_failure() {
    let log = told_unknown();
    let text = log.session.answer("c1").unwrap();
    assert_eq!(text, synthetic_text(Some(log.attempt("a"))));
    assert!(text.contains("outcome of this call is unknown"), "{text}");
    assert!(text.contains("Look at the outside state before repeating"));
    assert!(text.contains("started 2026-11-30T12:00:06Z"), "{text}");
    for word in ["SUBJECT", "\"of\"", "succeeded", "failed", "cancelled"] {
        assert!(!text.contains(word), "{word} in {text}");
    }
    assert!(synthetic_text(None).contains("unknown"));
}

#[test]
fn tr_15_closings_give_each_call_its_one_result() {
    let mut log = Log::new();
    log.turn("t1").says(
        "t1",
        1,
        &[
            ("c1", "shell"),
            ("c2", "shell"),
            ("c3", "shell"),
            ("c4", "shell"),
            ("c5", "shell"),
        ],
    );
    log.receipt("a1", "c1", "shell")
        .start("a1")
        .add(result("a1", S::Completed, "done"));
    log.receipt("a2", "c2", "shell")
        .start("a2")
        .change("a2", S::Unknown);
    log.receipt("a3", "c3", "shell")
        .resolve("a3", Resolution::Confirm);
    log.add(NotStarted {
        attempt_id: "a3".to_owned(),
        reason: "stopped before its start".to_owned(),
    });
    log.add(CallRefused {
        turn_id: "t1".to_owned(),
        call_id: "c4".to_owned(),
        code: "denied".to_owned(),
        text: "denied by the person".to_owned(),
    });
    let records = closings(&log.session);
    assert!(matches!(
        records.as_slice(),
        [Record::SyntheticResult(unknown), Record::CallRefused(open)]
            if unknown.call_id == "c2" && open.call_id == "c5" && open.code == "not_started"
    ));
    close(&mut log);
    assert_eq!(close(&mut log), 0);
    let answers: Vec<_> = ["c1", "c3", "c4"]
        .into_iter()
        .map(|id| log.session.answer(id).unwrap())
        .collect();
    assert_eq!(
        answers,
        [
            "done",
            "not started: stopped before its start",
            "denied by the person"
        ]
    );
}

#[test]
fn tr_15_if_nothing_was_sent_the_real_result_takes_its_place() {
    let mut log = Log::with_attempt(S::Unknown, false);
    log.add(ToolResult {
        source: ResultSource::Recovered,
        ..result("a", S::Completed, "the real output")
    });
    assert_eq!(close(&mut log), 0);
    assert_eq!(tell(&mut log), None);
    assert_eq!(log.session.answer("c1").as_deref(), Some("the real output"));
}

#[test]
fn tr_15_what_was_sent_stays_and_what_is_learnt_goes_into_a_note() {
    let mut log = told_unknown();
    let sent = log.session.answer("c1").unwrap();
    log.add(ToolResult {
        source: ResultSource::Recovered,
        exit: Some(exit("a", EndedBy::Itself, Some(3))),
        ..result("a", S::Failed, "the real output")
    });
    assert_eq!(log.session.answer("c1"), Some(sent));
    let note = tell(&mut log).unwrap();
    for part in [
        "[host note]",
        "shell started 2026-11-30T12:00:06Z",
        "exit status 3",
        "the real output",
        "Do not repeat it without need",
    ] {
        assert!(note.contains(part), "{part} in {note}");
    }
    for word in ["SUBJECT", "\"of\""] {
        assert!(!note.contains(word), "no arguments: {note}");
    }
    assert_eq!(tell(&mut log), None, "told once");
}

#[test]
fn tr_15_every_kind_of_end_is_told_as_it_was() {
    for (ended_by, state, words) in [
        (
            EndedBy::Stop,
            S::Interrupted,
            "it was stopped; effects may be partial",
        ),
        (EndedBy::Timeout, S::Interrupted, "ran out of time"),
        (EndedBy::HostLoss, S::Interrupted, "ended from outside"),
        (EndedBy::External, S::Interrupted, "ended from outside"),
    ] {
        let mut log = told_unknown();
        log.add(ToolResult {
            exit: Some(exit("a", ended_by, None)),
            ..result("a", state, "")
        });
        let note = tell(&mut log).unwrap();
        assert!(note.contains(words), "{note}");
        assert!(!note.contains("Its output"), "{note}");
    }
    let mut log = told_unknown();
    log.add(NotStarted {
        attempt_id: "a".to_owned(),
        reason: "fenced".to_owned(),
    });
    assert!(tell(&mut log).unwrap().contains("never started"));
}

#[test]
fn tr_15_tr_23_a_persons_word_is_told_and_never_as_output() {
    for (resolution, words) in [
        (
            Resolution::Confirm,
            "the person looked and says that the effect happened",
        ),
        (Resolution::Dismiss, "the outcome stays unknown"),
        (Resolution::Reject, "the person refused a retry"),
    ] {
        let mut log = told_unknown();
        let sent = log.session.answer("c1");
        log.resolve("a", resolution);
        let note = tell(&mut log).unwrap();
        assert!(note.contains(words), "{note}");
        assert!(!note.contains("Its output"), "{note}");
        assert_eq!(log.session.answer("c1"), sent);
        assert_eq!(log.attempt("a").result, None);
        assert_eq!(tell(&mut log), None);
    }
}

#[test]
fn tr_15_what_is_learnt_after_a_note_is_told_too() {
    let mut log = told_unknown();
    log.resolve("a", Resolution::Reject);
    assert!(tell(&mut log).unwrap().contains("refused a retry"));
    log.resolve("a", Resolution::Dismiss);
    assert!(tell(&mut log).unwrap().contains("decided to go on"));
    log.add(result("a", S::Completed, "found at last"));
    let note = tell(&mut log).unwrap();
    assert!(note.contains("decided to go on"), "{note}");
    assert!(
        note.contains("Found later: it ended as completed"),
        "{note}"
    );
    assert!(note.contains("found at last"), "{note}");
    assert_eq!(tell(&mut log), None);
}

#[test]
fn tr_15_a_real_result_after_a_told_rejection_is_told_too() {
    let mut log = told_unknown();
    log.resolve("a", Resolution::Reject);
    assert!(tell(&mut log).is_some());
    log.add(result("a", S::Completed, "the real output"));
    let note = tell(&mut log).unwrap();
    assert!(note.contains("it ended as completed") && note.contains("the real output"));
    assert!(!note.contains("refused a retry"), "{note}");
    assert_eq!(tell(&mut log), None);
}

#[test]
fn tr_15_the_word_on_an_open_failure_is_told_although_it_had_a_result() {
    let mut log = Log::with_attempt(S::Started, false);
    log.add(open_failure("a", "the connection dropped"));
    assert_eq!(close(&mut log), 0);
    assert_eq!(tell(&mut log), None, "the model has the failure itself");
    log.resolve("a", Resolution::Confirm);
    assert!(
        tell(&mut log)
            .unwrap()
            .contains("says that the effect happened")
    );
    assert_eq!(
        log.session.answer("c1").as_deref(),
        Some("the connection dropped")
    );
}

#[test]
fn tr_39_the_word_on_an_attempt_without_a_call_is_told() {
    let mut log = Log::new();
    log.start("ghost");
    assert_eq!(tell(&mut log), None);
    log.resolve("ghost", Resolution::Dismiss);
    assert!(tell(&mut log).unwrap().contains("decided to go on"));
}

#[test]
fn tr_36_a_retry_is_told_with_the_attempt_that_it_took_the_place_of() {
    let retried = || {
        let mut log = told_unknown();
        log.add(receipt("b", "retry_1", "shell"))
            .add(Superseded {
                attempt_id: "a".to_owned(),
                by: "b".to_owned(),
            })
            .start("b");
        log
    };
    let mut log = retried();
    assert_eq!(tell(&mut log), None, "it still runs");
    log.add(result("b", S::Completed, "of the retry"));
    let note = tell(&mut log).unwrap();
    assert_eq!(note.matches("\n- ").count(), 1, "{note}");
    assert!(note.contains("run again behind a fence"), "{note}");
    assert!(note.contains("of the retry"), "{note}");
    assert_eq!(tell(&mut log), None);

    let mut log = retried();
    log.change("b", S::Unknown);
    assert_eq!(tell(&mut log), None);
    log.resolve("b", Resolution::Dismiss);
    let note = tell(&mut log).unwrap();
    assert_eq!(note.matches("\n- ").count(), 1, "{note}");
    assert!(note.contains("decided to go on"), "{note}");
    assert_eq!(tell(&mut log), None);
}

#[test]
fn tr_15_a_log_that_supersedes_in_a_circle_still_opens() {
    let mut log = told_unknown();
    log.receipt("b", "retry_1", "shell").start("b");
    for (attempt_id, by) in [("a", "b"), ("b", "a")] {
        log.add(Superseded {
            attempt_id: attempt_id.to_owned(),
            by: by.to_owned(),
        });
    }
    assert_eq!(host_note(&log.session), None);
}

#[test]
fn tr_15_several_are_told_in_one_note_and_long_output_in_part() {
    let mut log = Log::new();
    log.turn("t1").says(
        "t1",
        1,
        &[("c1", "shell"), ("c2", "write_file"), ("c3", "shell")],
    );
    for (id, call, tool) in [
        ("a1", "c1", "shell"),
        ("a2", "c2", "write_file"),
        ("a3", "c3", "shell"),
    ] {
        log.receipt(id, call, tool).start(id).change(id, S::Unknown);
    }
    close(&mut log);
    // 3 bytes a letter: the cut falls inside one.
    log.add(result("a1", S::Completed, &"界".repeat(5000)));
    log.resolve("a2", Resolution::Confirm);
    let note = host_note(&log.session).unwrap();
    assert_eq!(note.attempts, ["a1", "a2"]);
    assert_eq!(note.text.matches('界').count(), 4096 / 3);
    assert_eq!(note.text.matches("\n- ").count(), 2);
}

#[test]
fn utc_of_known_moments() {
    for (seconds, text) in [
        (0, "1970-01-01T00:00:00Z"),
        (86_399, "1970-01-01T23:59:59Z"),
        (86_400, "1970-01-02T00:00:00Z"),
        (68_169_600, "1972-02-29T00:00:00Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (951_868_800, "2000-03-01T00:00:00Z"),
        (978_307_199, "2000-12-31T23:59:59Z"),
        (1_000_000_000, "2001-09-09T01:46:40Z"),
        (1_234_567_890, "2009-02-13T23:31:30Z"),
        (1_709_164_800, "2024-02-29T00:00:00Z"),
        (1_735_689_599, "2024-12-31T23:59:59Z"),
        (1_796_040_000, "2026-11-30T12:00:00Z"),
        (2_147_483_647, "2038-01-19T03:14:07Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
        (253_402_300_799, "9999-12-31T23:59:59Z"),
    ] {
        assert_eq!(utc(seconds * 1000), text);
        assert_eq!(utc(seconds * 1000 + 999), text);
    }
}
