//! Every move of an attempt, and what no record may undo.

use holdfast_domain::recovery::attempt::{Attempt, Resolution};
use holdfast_domain::recovery::barrier::InFlight;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::restart::{Findings, plan};
use holdfast_domain::transcript::record::{
    AttemptPresumed, CallRefused, JobEnded, LateEvidence, NotStarted, PromptAnswered, PromptAsked,
    Record, Restarted, ResultSource, Superseded, SyntheticResult, ToolResult, ToolStarted,
    UserMessage, WriteReset,
};
use holdfast_domain::transcript::session::Grant;

use crate::log::{
    Log, changed, exit, identity, inspected, open_failure, process, receipt, resolved, result,
};
use crate::restart::carry_out;
use holdfast_domain::recovery::process::{EndedBy, ExitReceipt};

use AttemptState as S;

/// Records about attempt `a` that name a state or an end.
fn moves() -> Vec<(&'static str, Record)> {
    let mut moves: Vec<(&'static str, Record)> = vec![
        ("receipt", receipt("a", "c1", "shell").into()),
        (
            "start",
            ToolStarted {
                attempt_id: "a".to_owned(),
                boot_id: "boot-2".to_owned(),
            }
            .into(),
        ),
        (
            "not_started",
            NotStarted {
                attempt_id: "a".to_owned(),
                reason: "later words".to_owned(),
            }
            .into(),
        ),
        (
            "write_reset",
            WriteReset {
                not_started: vec!["a".to_owned()],
                lost_records: 1,
            }
            .into(),
        ),
        (
            "presumed",
            AttemptPresumed {
                identity: identity("a", "c1", "shell"),
                reason: "damage".to_owned(),
                supervised: false,
            }
            .into(),
        ),
        (
            "late",
            LateEvidence {
                result: result("a", S::Completed, "late"),
            }
            .into(),
        ),
        ("confirm", resolved("a", Resolution::Confirm).into()),
        ("reject", resolved("a", Resolution::Reject).into()),
        ("dismiss", resolved("a", Resolution::Dismiss).into()),
    ];
    for state in S::ALL {
        moves.push(("change", changed("a", state).into()));
        moves.push(("result", result("a", state, "a later result").into()));
    }
    moves
}

/// The contract's answer: the state that a move leads to.
fn expected(from: &Attempt, name: &str, record: &Record) -> AttemptState {
    let state = from.state;
    let open = matches!(state, S::Started | S::Running | S::Unknown);
    let undecided = open || state == S::Pending;
    match (name, record) {
        ("start", _) if state == S::Pending => S::Started,
        ("not_started" | "write_reset", _) if undecided => S::NotStarted,
        ("change", Record::AttemptChanged(change)) if undecided => match change.state {
            S::Running => S::Running,
            S::Unknown => S::Unknown,
            S::Cancelled if state == S::Pending || from.read_only => S::Cancelled,
            _ => state,
        },
        ("result", Record::ToolResult(result)) if undecided => match result.state {
            S::Completed | S::Failed | S::Interrupted => result.state,
            _ => S::Unknown,
        },
        ("confirm", _) if open && !from.read_only => S::UserConfirmed,
        ("dismiss", _) if open && !from.read_only => S::UserDismissed,
        _ => state,
    }
}

#[test]
fn tr_12_every_move_from_every_state() {
    for state in S::ALL {
        for read_only in [false, true] {
            if read_only && state.is_by_person() {
                continue;
            }
            for (name, record) in moves() {
                let mut log = Log::with_attempt(state, read_only);
                let before = log.attempt("a").clone();
                let answer = log.session.answer("c1");
                assert_eq!(before.state, state);
                log.add(record.clone());
                let after = log.attempt("a");
                assert_eq!(
                    after.state,
                    expected(&before, name, &record),
                    "{state:?} (read-only: {read_only}), {name}: {record:?}"
                );
                // At most one result, and an answer that was given stays (TR-15).
                if before.result.is_some() {
                    assert_eq!(after.result, before.result);
                }
                if answer.is_some() {
                    assert_eq!(log.session.answer("c1"), answer, "{state:?} {name}");
                }
                assert_eq!(after.receipt_seq, before.receipt_seq);
                assert_eq!(log.session.attempts().count(), 1);
            }
        }
    }
}

#[test]
fn tr_10_a_persons_word_is_never_overwritten_and_later_evidence_is_attached() {
    for state in [S::UserConfirmed, S::UserDismissed] {
        let mut log = Log::with_attempt(state, false);
        for (_, record) in moves() {
            log.add(record);
            assert_eq!(log.attempt("a").state, state);
        }
        let attempt = log.attempt("a");
        assert_eq!(attempt.result, None);
        assert_eq!(attempt.late.as_ref().unwrap().text, "late");
        assert_eq!(attempt.resolution_source, "test");
    }
}

#[test]
fn tr_10_a_real_result_that_comes_later_goes_to_the_same_attempt() {
    let mut log = Log::with_attempt(S::Unknown, false);
    log.add(result("a", S::Completed, "the real output"));
    assert_eq!(log.attempt("a").state, S::Completed);
    assert_eq!(log.session.answer("c1").as_deref(), Some("the real output"));
    assert_eq!(log.session.unresolved(&InFlight::new()), 0);
}

#[test]
fn tr_38_of_two_resolutions_the_first_wins_also_after_a_reload() {
    let choices = [Resolution::Confirm, Resolution::Dismiss];
    for first in choices {
        for second in choices {
            let mut log = Log::with_attempt(S::Unknown, false);
            log.resolve("a", first);
            let won = log.attempt("a").clone();
            log.resolve("a", second);
            assert_eq!(log.attempt("a"), &won);
            let reloaded =
                holdfast_domain::transcript::session::Session::from_entries(&log.entries);
            assert_eq!(reloaded.attempt("a"), Some(&won));
            assert_eq!(reloaded.unresolved(&InFlight::new()), 0);
        }
    }
}

#[test]
fn tr_33_a_rejection_lifts_nothing_and_the_attempt_can_still_be_settled() {
    for last in [Resolution::Confirm, Resolution::Dismiss] {
        let mut log = Log::with_attempt(S::Unknown, false);
        log.resolve("a", Resolution::Reject);
        assert_eq!(log.attempt("a").state, S::Unknown);
        assert_eq!(log.attempt("a").resolution, Some(Resolution::Reject));
        assert_eq!(log.session.unresolved(&InFlight::new()), 1);
        log.resolve("a", last);
        assert_eq!(log.session.unresolved(&InFlight::new()), 0);
        assert_eq!(log.attempt("a").resolution, Some(last));
    }
}

#[test]
fn tr_08_a_result_that_claims_another_kind_of_end_is_unknown() {
    let mut log = Log::with_attempt(S::Started, false);
    log.add(result("a", S::UserConfirmed, "pretended"));
    assert_eq!(log.attempt("a").state, S::Unknown);
    assert_eq!(log.session.unresolved(&InFlight::new()), 1);
}

#[test]
fn tr_38_a_second_receipt_of_an_attempt_undoes_nothing() {
    let mut log = Log::with_attempt(S::UserConfirmed, false);
    let before = log.attempt("a").clone();
    log.receipt("a", "c1", "shell").start("a");
    assert_eq!(log.attempt("a"), &before);
}

#[test]
fn tr_14_a_start_whose_receipt_is_lost_still_blocks() {
    let mut log = Log::new();
    log.start("ghost");
    let attempt = log.attempt("ghost");
    assert_eq!(attempt.state, S::Started);
    assert!(!attempt.read_only);
    assert_eq!(log.session.unresolved(&InFlight::new()), 1);
    log.add(result("ghost", S::Completed, "done"));
    assert_eq!(log.session.unresolved(&InFlight::new()), 0);
}

#[test]
fn tr_15_an_answer_is_not_replaced_by_a_refusal_or_a_synthetic_result() {
    let refusal = || CallRefused {
        turn_id: "t1".to_owned(),
        call_id: "c1".to_owned(),
        code: "recovery_required".to_owned(),
        text: "refused".to_owned(),
    };
    let synthetic = || SyntheticResult {
        turn_id: "t1".to_owned(),
        call_id: "c1".to_owned(),
        attempt_id: Some("a".to_owned()),
        text: "unknown".to_owned(),
    };
    let mut log = Log::with_attempt(S::Completed, false);
    log.add(refusal()).add(synthetic());
    assert_eq!(log.session.answer("c1").as_deref(), Some("output"));
    assert_eq!(log.session.blocked, 0);
    assert!(!log.attempt("a").synthetic_sent);

    let mut log = Log::with_attempt(S::Unknown, false);
    log.add(synthetic())
        .add(refusal())
        .add(result("a", S::Completed, "late output"));
    assert_eq!(log.session.answer("c1").as_deref(), Some("unknown"));
    assert_eq!(
        log.attempt("a").result.as_ref().unwrap().text,
        "late output"
    );

    let mut log = Log::new();
    log.turn("t1").says("t1", 1, &[("c1", "shell")]);
    log.add(refusal()).add(synthetic());
    log.receipt("a", "c1", "shell")
        .start("a")
        .add(result("a", S::Completed, "output"));
    assert_eq!(log.session.answer("c1").as_deref(), Some("refused"));
}

#[test]
fn tr_48_what_a_failed_batch_lost_did_not_start() {
    let mut log = Log::with_attempt(S::Pending, false);
    log.receipt("b", "c2", "shell").start("b");
    log.add(WriteReset {
        not_started: vec!["a".to_owned(), "b".to_owned(), "never seen".to_owned()],
        lost_records: 3,
    });
    for id in ["a", "b"] {
        assert_eq!(log.attempt(id).state, S::NotStarted);
    }
    assert_eq!(log.session.attempts().count(), 2);
    assert_eq!(
        log.session.answer("c1").as_deref(),
        Some("not started: its receipt could not be stored")
    );
}

#[test]
fn tr_28_statistics_are_counted_from_the_evidence() {
    let mut log = Log::new();
    let calls: Vec<String> = (0..9).map(|n| format!("c{n}")).collect();
    let proposals: Vec<_> = calls.iter().map(|id| (id.as_str(), "shell")).collect();
    log.turn("t1").says("t1", 1, &proposals);
    for n in 0..7 {
        let id = format!("a{n}");
        log.receipt(&id, &format!("c{n}"), "shell").start(&id);
    }
    log.resolve("a0", Resolution::Confirm)
        .resolve("a1", Resolution::Confirm)
        .resolve("a2", Resolution::Dismiss)
        .resolve("a3", Resolution::Reject)
        .add(open_failure("a4", "dropped"))
        .add(result("a5", S::Completed, "done"))
        .add(receipt("b", "retry_1", "shell"))
        .add(Superseded {
            attempt_id: "a6".to_owned(),
            by: "b".to_owned(),
        })
        .start("b");
    for (call, code) in [
        ("c7", "recovery_required"),
        ("c7", "recovery_required"),
        ("c8", "denied"),
    ] {
        log.add(CallRefused {
            turn_id: "t1".to_owned(),
            call_id: call.to_owned(),
            code: code.to_owned(),
            text: "no".to_owned(),
        });
    }
    let counts = log.session.statistics(&InFlight::new());
    // a3, a4 and b.
    assert_eq!(counts.unknown, 3);
    assert_eq!(counts.confirmed, 2);
    assert_eq!(counts.dismissed, 1);
    assert_eq!(counts.rejected, 1);
    assert_eq!(counts.retried, 1);
    assert_eq!(counts.blocked, 1);
    let running = InFlight::from(["b".to_owned()]);
    assert_eq!(log.session.statistics(&running).unknown, 2);
    // What is true now: the rejected attempt is settled.
    log.resolve("a3", Resolution::Dismiss);
    let counts = log.session.statistics(&InFlight::new());
    assert_eq!(
        (counts.unknown, counts.rejected, counts.dismissed),
        (2, 0, 2)
    );
}

#[test]
fn tr_50_what_lives_on_after_a_command_is_a_job_until_it_ends() {
    let mut log = Log::with_attempt(S::Started, false);
    log.add(ToolResult {
        exit: Some(ExitReceipt {
            survivors: vec![process(9, "server")],
            ..exit("a", EndedBy::Itself, Some(0))
        }),
        ..result("a", S::Completed, "out")
    });
    assert!(log.attempt("a").job);
    assert_eq!(log.session.unresolved(&InFlight::new()), 0);
    log.add(JobEnded {
        attempt_id: "a".to_owned(),
        reason: "exited".to_owned(),
    });
    assert!(!log.attempt("a").job);
}

#[test]
fn tr_32_the_latest_inspection_counts() {
    let mut log = Log::with_attempt(S::Unknown, false);
    log.add(inspected("a", "i1")).add(inspected("a", "i2"));
    let inspection = log.attempt("a").inspection.as_ref().unwrap();
    assert_eq!(inspection.inspection_id, "i2");
    assert_eq!(log.attempt("a").state, S::Unknown);
}

#[test]
fn tr_18_a_recovered_result_is_marked_so() {
    let mut log = Log::with_attempt(S::Unknown, false);
    log.add(Restarted {
        boot_id: "boot-2".to_owned(),
        attempts: vec!["a".to_owned()],
    })
    .add(ToolResult {
        source: ResultSource::Recovered,
        ..result("a", S::Completed, "found")
    });
    assert!(log.attempt("a").found_open);
    assert!(log.attempt("a").is_recovered());
    assert_eq!(log.session.recovered().count(), 1);
}

fn prompt(generation: u64) -> PromptAsked {
    PromptAsked {
        prompt_id: "p1".to_owned(),
        prompt: "approval".to_owned(),
        turn_id: "t1".to_owned(),
        call_id: "c1".to_owned(),
        tool: "shell".to_owned(),
        subject: "cargo test".to_owned(),
        generation,
        grant: "digest".to_owned(),
        ..PromptAsked::default()
    }
}

fn answer(generation: u64, scope: &str) -> PromptAnswered {
    PromptAnswered {
        prompt_id: "p1".to_owned(),
        generation,
        allow: true,
        scope: scope.to_owned(),
        reason: String::new(),
    }
}

#[test]
fn tr_51_an_answer_counts_for_the_state_that_was_shown() {
    let mut log = Log::new();
    log.turn("t1").says("t1", 1, &[("c1", "shell")]);
    log.add(prompt(1)).add(prompt(2)).add(answer(1, "session"));
    assert_eq!(log.session.prompt.as_ref().unwrap().generation, 2);
    assert!(log.session.grants.is_empty());
    // An older question does not come back over a newer one.
    log.add(prompt(1));
    assert_eq!(log.session.prompt.as_ref().unwrap().generation, 2);
    log.add(answer(2, "session"));
    assert_eq!(log.session.prompt, None);
    assert!(log.session.answered.contains("p1"));
    assert_eq!(
        log.session.grants.iter().collect::<Vec<_>>(),
        [&Grant {
            tool: "shell".to_owned(),
            key: "digest".to_owned()
        }]
    );
}

#[test]
fn tr_51_approved_but_not_started_is_asked_again_after_a_restart() {
    let mut log = Log::new();
    log.turn("t1").says("t1", 1, &[("c1", "shell")]);
    log.add(prompt(1)).add(answer(1, "once"));
    assert_eq!(log.session.prompt, None);
    let steps = plan(&log.session, &Findings::default());
    carry_out(&mut log, &steps);
    let asked = log.session.prompt.clone().unwrap();
    assert_eq!((asked.prompt_id.as_str(), asked.generation), ("p1", 2));
    // A second restart asks nothing more, and the earlier answer does not count for it.
    assert_eq!(plan(&log.session, &Findings::default()), []);
    log.add(answer(1, "once"));
    assert!(log.session.prompt.is_some());
}

#[test]
fn tr_51_what_was_started_or_refused_after_the_answer_is_not_asked_again() {
    let mut started = Log::new();
    started.turn("t1").says("t1", 1, &[("c1", "shell")]);
    started.add(prompt(1)).add(answer(1, "once"));
    started.add(receipt("a1", "c1", "shell"));
    assert_eq!(started.session.approved, None);
    let mut refused = Log::new();
    refused.turn("t1").says("t1", 1, &[("c1", "shell")]);
    refused.add(prompt(1)).add(answer(1, "once"));
    refused.add(CallRefused {
        turn_id: "t1".to_owned(),
        call_id: "c1".to_owned(),
        code: "recovery_required".to_owned(),
        text: "blocked".to_owned(),
    });
    assert_eq!(refused.session.approved, None);
}

#[test]
fn tr_51_an_open_question_outlives_the_turn_and_a_new_message_closes_it() {
    let mut log = Log::new();
    log.turn("t1").says("t1", 1, &[("c1", "shell")]);
    log.add(prompt(1)).end("t1", "interrupted");
    assert!(log.session.prompt.is_some());
    log.add(UserMessage {
        turn_id: "t2".to_owned(),
        text: "something else".to_owned(),
        submission_id: "key".to_owned(),
        steer_item: String::new(),
    });
    assert_eq!(log.session.prompt, None);
    assert!(log.session.answered.contains("p1"));
    log.add(answer(1, "session"));
    assert!(
        log.session.grants.is_empty(),
        "a late answer grants nothing"
    );
    let known = log.session.inbox.known("key").unwrap();
    assert_eq!(known.turn_id, "t2");
    assert!(known.is_same_input("something else"));
}
