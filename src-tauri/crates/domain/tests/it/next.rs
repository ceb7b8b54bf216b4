//! What comes next in a turn.

use std::collections::BTreeSet;

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::restart::{Findings, plan};
use holdfast_domain::transcript::next::{MAX_STEPS, Next, next};
use holdfast_domain::transcript::notes::closings;
use holdfast_domain::transcript::record::{CallRefused, PromptAsked, Record, TurnStarted};

use crate::log::{Log, result};
use crate::restart::carry_out;

/// `read_file` reads only; the calls in `running` are run by this host.
fn ask(log: &Log, running: &[&str]) -> Next {
    let running: BTreeSet<String> = running.iter().map(|id| (*id).to_owned()).collect();
    next(&log.session, &running, |call| call.name == "read_file")
}

fn calls(ids: &[&str]) -> Next {
    Next::Calls(ids.iter().map(|id| (*id).to_owned()).collect())
}

/// Runs a call to its end.
fn done(log: &mut Log, call_id: &str, tool: &str) {
    let id = format!("a-{call_id}");
    log.receipt(&id, call_id, tool)
        .start(&id)
        .add(result(&id, AttemptState::Completed, "done"));
}

#[test]
fn tr_49_a_turn_begins_and_ends_with_the_model() {
    let mut log = Log::new();
    log.turn("t1");
    assert_eq!(ask(&log, &[]), Next::Model);
    log.says("t1", 1, &[("c1", "shell")]);
    assert_eq!(ask(&log, &[]), calls(&["c1"]));
    done(&mut log, "c1", "shell");
    assert_eq!(ask(&log, &[]), Next::Model);
    log.says("t1", 2, &[]);
    assert_eq!(ask(&log, &[]), Next::Completed);
    log.turn("t2");
    assert_eq!(ask(&log, &[]), Next::Model);
}

#[test]
fn c34_all_waits_behind_a_slow_edit_and_nothing_is_blocked() {
    let mut log = Log::new();
    log.turn("t1").says(
        "t1",
        1,
        &[("e", "edit_file"), ("s", "shell"), ("r", "read_file")],
    );
    assert_eq!(ask(&log, &[]), calls(&["e"]));
    log.receipt("a", "e", "edit_file").start("a");
    assert_eq!(ask(&log, &["e"]), Next::Wait);
    log.add(result("a", AttemptState::Completed, "edited"));
    assert_eq!(ask(&log, &[]), calls(&["s"]));
    done(&mut log, "s", "shell");
    assert_eq!(ask(&log, &[]), calls(&["r"]));
    assert_eq!(log.session.blocked, 0);
}

#[test]
fn tr_49_a_reading_call_waits_for_the_edit_before_it() {
    let mut log = Log::new();
    log.turn("t1").says(
        "t1",
        1,
        &[("r1", "read_file"), ("e", "edit_file"), ("r2", "read_file")],
    );
    done(&mut log, "r1", "read_file");
    log.receipt("a", "e", "edit_file").start("a");
    assert_eq!(ask(&log, &["e"]), Next::Wait);
}

#[test]
fn tr_49_reading_calls_run_side_by_side_between_mutating_ones() {
    let mut log = Log::new();
    log.turn("t1").says(
        "t1",
        1,
        &[
            ("r1", "read_file"),
            ("r2", "read_file"),
            ("e", "edit_file"),
            ("r3", "read_file"),
            ("s", "shell"),
        ],
    );
    assert_eq!(ask(&log, &[]), calls(&["r1", "r2"]));
    assert_eq!(ask(&log, &["r1"]), calls(&["r2"]));
    assert_eq!(ask(&log, &["r1", "r2"]), Next::Wait);
    done(&mut log, "r2", "read_file");
    assert_eq!(ask(&log, &["r1"]), Next::Wait, "the edit waits for r1");
    done(&mut log, "r1", "read_file");
    assert_eq!(ask(&log, &[]), calls(&["e"]));
    done(&mut log, "e", "edit_file");
    assert_eq!(ask(&log, &[]), calls(&["r3"]));
    done(&mut log, "r3", "read_file");
    assert_eq!(ask(&log, &[]), calls(&["s"]));
}

#[test]
fn tr_15_an_unknown_outcome_is_told_in_its_place() {
    let mut log = Log::new();
    log.turn("t1").says(
        "t1",
        1,
        &[("r", "read_file"), ("s1", "shell"), ("s2", "shell")],
    );
    log.receipt("a", "s1", "shell")
        .start("a")
        .change("a", AttemptState::Unknown);
    assert_eq!(ask(&log, &[]), calls(&["r"]));
    done(&mut log, "r", "read_file");
    assert_eq!(ask(&log, &[]), Next::Synthetic("s1".to_owned()));
    for record in closings(&log.session).into_iter().take(1) {
        log.add(record);
    }
    assert_eq!(ask(&log, &[]), calls(&["s2"]), "the barrier meets it there");
    log.add(CallRefused {
        turn_id: "t1".to_owned(),
        call_id: "s2".to_owned(),
        code: "recovery_required".to_owned(),
        text: "blocked".to_owned(),
    });
    assert_eq!(ask(&log, &[]), Next::Model);
}

#[test]
fn tr_49_a_turn_has_a_last_step() {
    let mut log = Log::new();
    log.turn("t1").says("t1", MAX_STEPS - 1, &[("c1", "shell")]);
    done(&mut log, "c1", "shell");
    assert_eq!(ask(&log, &[]), Next::Model);
    log.says("t1", MAX_STEPS, &[("c2", "shell")]);
    assert_eq!(ask(&log, &[]), calls(&["c2"]), "its calls still run");
    done(&mut log, "c2", "shell");
    assert_eq!(ask(&log, &[]), Next::TooManySteps);
}

/// Done, waiting for a person, not dispatched; then the host died and came back.
fn c36() -> Log {
    let mut log = Log::new();
    log.turn("t1").says(
        "t1",
        1,
        &[("c1", "shell"), ("c2", "shell"), ("c3", "shell")],
    );
    done(&mut log, "c1", "shell");
    log.add(PromptAsked {
        prompt_id: "p".to_owned(),
        call_id: "c2".to_owned(),
        generation: 1,
        ..PromptAsked::default()
    });
    let steps = plan(&log.session, &Findings::default());
    carry_out(&mut log, &steps);
    assert!(log.session.open_turn().is_none());
    assert!(log.session.prompt.is_some());
    assert_eq!(
        log.session.attempts().count(),
        1,
        "a proposal has no receipt"
    );
    log
}

#[test]
fn c36_allow_after_a_restart_goes_on_with_the_second_call_and_then_the_third() {
    let mut log = c36();
    log.add(TurnStarted {
        turn_id: "t1".to_owned(),
        continuation: true,
    });
    let turn = log.session.open_turn().unwrap();
    assert!(turn.continuation);
    assert_eq!(ask(&log, &[]), calls(&["c2"]));
    done(&mut log, "c2", "shell");
    assert_eq!(ask(&log, &[]), calls(&["c3"]));
    done(&mut log, "c3", "shell");
    assert_eq!(ask(&log, &[]), Next::Model);
}

#[test]
fn c36_a_new_message_closes_the_second_and_third_call_as_not_started() {
    let mut log = c36();
    let records = closings(&log.session);
    let closed: Vec<_> = records
        .iter()
        .map(|record| match record {
            Record::CallRefused(refused) => (refused.call_id.as_str(), refused.code.as_str()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(closed, [("c2", "not_started"), ("c3", "not_started")]);
    for record in records {
        log.add(record);
    }
    log.turn("t2");
    assert_eq!(log.session.prompt, None);
    assert!(log.session.unanswered().is_empty());
    assert_eq!(ask(&log, &[]), Next::Model);
    // Once closed they stay so.
    assert_eq!(closings(&log.session), []);
}

#[test]
fn c20_a_partial_answer_without_calls_ends_the_turn() {
    let mut log = Log::new();
    log.turn("t1").says("t1", 1, &[]);
    log.end("t1", "cancelled").turn("t2");
    assert_eq!(ask(&log, &[]), Next::Model);
}
