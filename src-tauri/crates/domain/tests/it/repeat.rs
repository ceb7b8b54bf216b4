//! The repeat guard: what guards, what is used up, and the first command behind a restart.

use holdfast_domain::recovery::attempt::Resolution;
use holdfast_domain::recovery::barrier::InFlight;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::EndedBy;
use holdfast_domain::recovery::repeat::{Proposal, earlier, outcome, question, refusal_text};
use holdfast_domain::recovery::restart::{Findings, plan};
use holdfast_domain::transcript::record::{
    CallRefused, LateEvidence, NotStarted, PromptAnswered, PromptAsked, Restarted, ResultSource,
    Superseded, ToolResult,
};

use crate::log::{Log, SESSION, exit, identity, receipt, result};
use crate::restart::carry_out;

use AttemptState as S;

/// The call that attempt `a` of [`Log::with_attempt`] was for.
fn same() -> Proposal {
    call("c1", "shell")
}

/// A call with its own digest.
fn call(digest_of: &str, tool: &str) -> Proposal {
    Proposal {
        effect: identity("", digest_of, tool).effect(),
        shell: tool == "shell",
    }
}

fn none() -> InFlight {
    InFlight::new()
}

fn running(attempt: &str) -> InFlight {
    InFlight::from([attempt.to_owned()])
}

/// The attempt that guards, and whether it is the same call.
fn guard(log: &Log, in_flight: &InFlight, call: &Proposal) -> Option<(String, bool)> {
    earlier(&log.session, in_flight, call).map(|earlier| {
        (
            earlier.attempt.identity.attempt_id.clone(),
            earlier.same_call,
        )
    })
}

fn by_same(attempt: &str) -> Option<(String, bool)> {
    Some((attempt.to_owned(), true))
}

fn by_restart(attempt: &str) -> Option<(String, bool)> {
    Some((attempt.to_owned(), false))
}

fn recovered(attempt: &str) -> ToolResult {
    ToolResult {
        source: ResultSource::Recovered,
        exit: Some(exit(attempt, EndedBy::Itself, Some(0))),
        ..result(attempt, S::Completed, "the output")
    }
}

fn asked(call_id: &str, attempt: &str) -> PromptAsked {
    PromptAsked {
        prompt_id: format!("p-{call_id}"),
        prompt: PromptAsked::REPEAT.to_owned(),
        turn_id: "t2".to_owned(),
        call_id: call_id.to_owned(),
        tool: "shell".to_owned(),
        generation: 1,
        earlier: Some(attempt.to_owned()),
        earlier_state: "interrupted".to_owned(),
        ..PromptAsked::default()
    }
}

fn answered(call_id: &str, allow: bool) -> PromptAnswered {
    PromptAnswered {
        prompt_id: format!("p-{call_id}"),
        generation: 1,
        allow,
        scope: "once".to_owned(),
        reason: String::new(),
    }
}

/// The same call as `c1` again, as attempt `b` of call `c2`, up to its receipt.
fn receipt_of_the_second(log: &mut Log) {
    let mut second = receipt("b", "c2", "shell");
    second.identity.argument_digest = identity("", "c1", "").argument_digest;
    second.supervised = true;
    log.add(second);
}

/// `a` was stopped, the model proposes it again as `c2`, and a person is asked.
fn asked_about_a_stopped_one() -> Log {
    let mut log = Log::with_attempt(S::Interrupted, false);
    log.end("t1", "cancelled");
    log.turn("t2").says("t2", 1, &[("c2", "shell")]);
    log.add(asked("c2", "a"));
    log
}

/// `a` was found open by a restart and is still open in the log.
fn found_open() -> Log {
    let mut log = Log::with_attempt(S::Started, false);
    log.add(Restarted {
        boot_id: "boot-2".to_owned(),
        attempts: vec!["a".to_owned()],
    });
    log.end("t1", "interrupted");
    log
}

#[test]
fn tr_46_each_state_guards_or_does_not() {
    for state in S::ALL {
        let log = Log::with_attempt(state, false);
        let guards = match state {
            S::UserConfirmed | S::UserDismissed | S::Interrupted => true,
            S::Pending
            | S::Started
            | S::Running
            | S::Completed
            | S::Failed
            | S::Cancelled
            | S::NotStarted
            | S::Unknown => false,
        };
        let wanted = if guards { by_same("a") } else { None };
        assert_eq!(guard(&log, &none(), &same()), wanted, "{state:?}");
        // What this host started itself is simply running.
        let own = running("a");
        assert_eq!(guard(&log, &own, &same()), wanted, "{state:?} in flight");
        // The triple is compared as a whole.
        assert_eq!(guard(&log, &none(), &call("c9", "shell")), None);
        let other_tool = call("c1", "write_file");
        assert_eq!(guard(&log, &none(), &other_tool), None);
        let mut elsewhere = same();
        elsewhere.effect.resource_scope = "file:/w/x".to_owned();
        assert_eq!(guard(&log, &none(), &elsewhere), None);
        // Without an effect there is nothing to repeat.
        let reads = Log::with_attempt(state, true);
        assert_eq!(guard(&reads, &none(), &same()), None, "{state:?} read-only");
    }
}

#[test]
fn tr_46_a_recovered_result_guards_and_a_live_one_does_not() {
    let mut log = Log::with_attempt(S::Started, false);
    log.add(recovered("a"));
    assert_eq!(guard(&log, &none(), &same()), by_same("a"));
    let live = Log::with_attempt(S::Completed, false);
    assert_eq!(guard(&live, &none(), &same()), None);
}

#[test]
fn tr_46_in_flight_again_after_a_restart_guards_also_once_it_ended() {
    let mut log = found_open();
    assert_eq!(guard(&log, &running("a"), &same()), by_same("a"));
    assert_eq!(
        guard(&log, &none(), &same()),
        None,
        "the barrier's, while it is unknown"
    );
    log.add(recovered("a"));
    assert_eq!(guard(&log, &none(), &same()), by_same("a"));
}

#[test]
fn tr_46_allowed_once_is_used_up_by_the_start_and_not_before() {
    let mut log = asked_about_a_stopped_one();
    assert_eq!(guard(&log, &none(), &same()), by_same("a"));
    log.add(answered("c2", true));
    assert_eq!(guard(&log, &none(), &same()), by_same("a"), "answered");
    receipt_of_the_second(&mut log);
    assert!(log.attempt("b").allowed_repeat);
    assert_eq!(guard(&log, &none(), &same()), by_same("a"), "receipt");
    log.start("b");
    assert_eq!(guard(&log, &running("b"), &same()), None);
    log.add(result("b", S::Completed, "done"));
    log.end("t2", "completed");
    log.turn("t3");
    assert_eq!(guard(&log, &none(), &same()), None, "used up for good");
}

#[test]
fn tr_46_an_allowance_that_led_to_no_start_is_not_used_up() {
    // The receipt alone was stored; it is cancelled at the restart.
    let mut torn = asked_about_a_stopped_one();
    torn.add(answered("c2", true));
    receipt_of_the_second(&mut torn);
    torn.change("b", S::Cancelled);
    assert_eq!(guard(&torn, &none(), &same()), by_same("a"));
    // Stop came between the start record and the execution.
    let mut stopped = asked_about_a_stopped_one();
    stopped.add(answered("c2", true));
    receipt_of_the_second(&mut stopped);
    stopped.start("b").add(NotStarted {
        attempt_id: "b".to_owned(),
        reason: "stopped".to_owned(),
    });
    assert_eq!(guard(&stopped, &none(), &same()), by_same("a"));
    // Nothing but the answer was stored: asked again, and then it counts.
    let mut answered_only = asked_about_a_stopped_one();
    answered_only.add(answered("c2", true));
    let steps = plan(&answered_only.session, &Findings::default());
    carry_out(&mut answered_only, &steps);
    let again = answered_only.session.prompt.clone().unwrap();
    assert_eq!(
        (
            again.prompt.as_str(),
            again.earlier.as_deref(),
            again.generation
        ),
        ("repeat", Some("a"), 2)
    );
}

#[test]
fn tr_46_denied_stays() {
    let mut log = asked_about_a_stopped_one();
    log.add(answered("c2", false)).add(CallRefused {
        turn_id: "t2".to_owned(),
        call_id: "c2".to_owned(),
        code: "denied".to_owned(),
        text: "denied".to_owned(),
    });
    log.end("t2", "completed");
    log.turn("t3");
    assert_eq!(guard(&log, &none(), &same()), by_same("a"));
}

#[test]
fn tr_46_another_call_or_an_ordinary_approval_uses_nothing_up() {
    let mut other = asked_about_a_stopped_one();
    other.add(answered("c2", true));
    other
        .receipt("b", "c9", "shell")
        .start("b")
        .add(result("b", S::Completed, "done"));
    assert_eq!(guard(&other, &none(), &same()), by_same("a"));
    let mut ordinary = Log::with_attempt(S::Interrupted, false);
    ordinary.turn("t2").says("t2", 1, &[("c2", "shell")]);
    ordinary.add(PromptAsked {
        prompt: PromptAsked::APPROVAL.to_owned(),
        ..asked("c2", "a")
    });
    ordinary.add(answered("c2", true));
    receipt_of_the_second(&mut ordinary);
    ordinary.start("b");
    assert_eq!(guard(&ordinary, &none(), &same()), by_same("a"));
}

#[test]
fn tr_46_a_repetition_that_is_stopped_too_guards_anew() {
    let mut log = asked_about_a_stopped_one();
    log.add(answered("c2", true));
    receipt_of_the_second(&mut log);
    log.start("b").add(result("b", S::Interrupted, "stopped"));
    assert_eq!(guard(&log, &none(), &same()), by_same("b"));
}

#[test]
fn tr_46_the_first_command_of_the_first_turn_behind_a_restart_is_asked_whatever_its_digest() {
    let (other, write) = (call("c9", "shell"), call("c9", "write_file"));
    let mut log = found_open();
    assert_eq!(guard(&log, &running("a"), &other), by_restart("a"));
    assert_eq!(guard(&log, &running("a"), &write), None, "commands only");
    log.add(recovered("a"));
    log.turn("t2").says("t2", 1, &[("c2", "shell")]);
    assert_eq!(guard(&log, &none(), &other), by_restart("a"));
    // The very same call goes before.
    assert_eq!(guard(&log, &none(), &same()), by_same("a"));
    // Refused is not run.
    log.add(CallRefused {
        turn_id: "t2".to_owned(),
        call_id: "c2".to_owned(),
        code: "denied".to_owned(),
        text: "denied".to_owned(),
    });
    assert_eq!(guard(&log, &none(), &other), by_restart("a"));
    let mut first = receipt("b", "c3", "shell");
    first.supervised = true;
    log.add(first);
    assert_eq!(guard(&log, &none(), &other), by_restart("a"));
    log.start("b");
    assert_eq!(guard(&log, &running("b"), &other), None, "it was the first");
    assert_eq!(guard(&log, &running("b"), &same()), by_same("a"), "stays");
}

#[test]
fn tr_46_a_whole_turn_without_a_command_ends_the_wait_for_the_first_one() {
    let other = call("c9", "shell");
    for (status, over) in [
        ("completed", true),
        ("failed", false),
        ("cancelled", false),
        ("interrupted", false),
    ] {
        let mut log = found_open();
        log.add(recovered("a"));
        log.turn("t2").end("t2", status);
        log.turn("t3");
        let wanted = if over { None } else { by_restart("a") };
        assert_eq!(guard(&log, &none(), &other), wanted, "{status}");
        assert_eq!(guard(&log, &none(), &same()), by_same("a"), "{status}");
    }
}

#[test]
fn tr_46_turns_behind_the_barrier_are_not_the_first_turn() {
    let mut log = found_open();
    log.change("a", S::Unknown);
    log.turn("t2").end("t2", "completed");
    log.resolve("a", Resolution::Dismiss);
    log.turn("t3");
    let other = call("c9", "shell");
    assert_eq!(guard(&log, &none(), &other), by_restart("a"));
    log.end("t3", "completed");
    log.turn("t4");
    assert_eq!(guard(&log, &none(), &other), None);
}

#[test]
fn tr_46_a_retry_is_not_the_first_command_of_a_model() {
    let mut log = found_open();
    log.add(recovered("a"));
    let mut failed = receipt("x", "c5", "shell");
    failed.supervised = true;
    log.add(failed).start("x").change("x", S::Unknown);
    let mut retry = receipt("r", "retry_1", "shell");
    retry.supervised = true;
    log.add(retry)
        .add(Superseded {
            attempt_id: "x".to_owned(),
            by: "r".to_owned(),
        })
        .start("r")
        .add(result("r", S::Completed, "done"));
    // The unknown one had been started behind the restart, so its start counts; without it the
    // retry alone would not.
    assert_eq!(guard(&log, &none(), &call("c9", "shell")), None);
    let mut alone = found_open();
    alone.add(recovered("a"));
    let mut retry = receipt("r", "retry_1", "shell");
    retry.supervised = true;
    alone
        .add(retry)
        .add(Superseded {
            attempt_id: "a".to_owned(),
            by: "r".to_owned(),
        })
        .start("r")
        .add(result("r", S::Completed, "done"));
    assert_eq!(
        guard(&alone, &none(), &call("c9", "shell")),
        by_restart("a")
    );
}

#[test]
fn tr_46_a_copy_of_the_session_guards_the_same_effects() {
    let log = Log::with_attempt(S::Interrupted, false);
    let copy = "ffffffffffffffffffffffffffffffff";
    let mut in_copy = identity("", "c1", "shell");
    in_copy.session_id = copy.to_owned();
    in_copy.resource_scope = format!("session:{copy}");
    let proposal = Proposal {
        effect: in_copy.triple().within(copy),
        shell: true,
    };
    assert_eq!(guard(&log, &none(), &proposal), by_same("a"));
    // A scope that names another session is another effect.
    in_copy.resource_scope = format!("session:{SESSION}");
    let other = Proposal {
        effect: in_copy.triple().within(copy),
        shell: true,
    };
    assert_eq!(guard(&log, &none(), &other), None);
}

#[test]
fn tr_46_the_question_says_how_the_earlier_one_ended_and_never_its_arguments() {
    let mut late = Log::with_attempt(S::UserDismissed, false);
    late.add(LateEvidence {
        result: recovered("a"),
    });
    let mut in_flight = found_open();
    in_flight.change("a", S::Running);
    let mut adopted = found_open();
    adopted.add(recovered("a"));
    let mut stopped = Log::with_attempt(S::Started, false);
    stopped.add(ToolResult {
        exit: Some(exit("a", EndedBy::Stop, None)),
        ..result("a", S::Interrupted, "half of the output")
    });
    let cases = [
        (
            Log::with_attempt(S::UserConfirmed, false),
            none(),
            vec!["says that its effect happened"],
        ),
        (
            late,
            none(),
            vec!["go on without knowing", "found later", "exit status 0"],
        ),
        (in_flight, running("a"), vec!["still runs"]),
        (adopted, none(), vec!["exit status 0", "after a restart"]),
        (stopped, none(), vec!["stopped", "may be partial"]),
    ];
    for (log, in_flight, words) in cases {
        let found = earlier(&log.session, &in_flight, &same()).unwrap();
        for text in [
            outcome(found.attempt, &in_flight),
            question(&found, &in_flight),
            refusal_text(&found, &in_flight),
        ] {
            for word in &words {
                assert!(text.contains(word), "{word} in {text}");
            }
            for never in ["SUBJECT", "output", "\"of\""] {
                assert!(!text.contains(never), "{never} in {text}");
            }
        }
        assert!(question(&found, &in_flight).contains("same call"));
        let refusal = refusal_text(&found, &in_flight);
        assert!(refusal.contains("Nothing was run"), "{refusal}");
    }
}
