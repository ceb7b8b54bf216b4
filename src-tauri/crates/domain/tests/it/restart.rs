//! What a restart makes of every state, every finding and every damage.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_domain::recovery::barrier::InFlight;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{
    EndedBy, ExitReceipt, ProcessEvidence, TreeProof, outcome_of,
};
use holdfast_domain::recovery::publication::PublicationEvidence;
use holdfast_domain::recovery::restart::{Damage, Findings, RestartStep, plan};
use holdfast_domain::transcript::record::{Receipt, Record, ResultSource, ToolResult};

use crate::log::{Log, exit, process, receipt, result};
use crate::publication::intent;

use AttemptState as S;

/// Does what a host does with a plan.
pub(crate) fn carry_out(log: &mut Log, steps: &[RestartStep]) {
    for step in steps {
        match step {
            RestartStep::Record(record) => {
                log.add(record.clone());
            }
            RestartStep::Adopt {
                attempt_id,
                receipt,
                ..
            } => {
                let outcome = outcome_of(receipt);
                log.add(ToolResult {
                    source: ResultSource::Recovered,
                    effect_summary: outcome.effect_summary,
                    exit: Some(receipt.clone()),
                    ..result(attempt_id, outcome.state, "recovered output")
                });
            }
            RestartStep::AdoptWrite { attempt_id, .. } => {
                log.add(ToolResult {
                    source: ResultSource::Recovered,
                    ..result(attempt_id, S::Completed, "changed a, now 3 bytes")
                });
            }
            RestartStep::Reattach { .. } => {}
        }
    }
}

/// Steps that would put something new into the log.
fn news(steps: &[RestartStep]) -> Vec<&RestartStep> {
    steps
        .iter()
        .filter(|step| !matches!(step, RestartStep::Reattach { .. }))
        .collect()
}

fn reattached(steps: &[RestartStep]) -> bool {
    steps
        .iter()
        .any(|step| matches!(step, RestartStep::Reattach { .. }))
}

fn evidence() -> Vec<(&'static str, Option<ProcessEvidence>)> {
    let exited = |receipt: ExitReceipt, alive| {
        Some(ProcessEvidence::Exited {
            receipt,
            output_incomplete: false,
            alive,
        })
    };
    vec![
        ("none", None),
        ("no folder", Some(ProcessEvidence::NoFolder)),
        ("fenced", Some(ProcessEvidence::Fenced)),
        ("running", Some(ProcessEvidence::Running { pid: 7 })),
        (
            "success",
            exited(exit("a", EndedBy::Itself, Some(0)), false),
        ),
        (
            "failure",
            exited(exit("a", EndedBy::Itself, Some(3)), false),
        ),
        ("stopped", exited(exit("a", EndedBy::Stop, None), false)),
        (
            "job",
            exited(
                ExitReceipt {
                    survivors: vec![process(8, "server")],
                    tree_proof: TreeProof::None,
                    ..exit("a", EndedBy::Itself, Some(0))
                },
                true,
            ),
        ),
        (
            "unproven",
            exited(
                ExitReceipt {
                    tree_proof: TreeProof::None,
                    stragglers: vec![process(9, "sudo")],
                    ..exit("a", EndedBy::Stop, None)
                },
                false,
            ),
        ),
        (
            "lost",
            Some(ProcessEvidence::Lost {
                reason: "another boot".to_owned(),
                stragglers: Vec::new(),
            }),
        ),
        (
            "straggler",
            Some(ProcessEvidence::Lost {
                reason: "its supervisor is gone".to_owned(),
                stragglers: vec![process(10, "sleep")],
            }),
        ),
    ]
}

/// The contract's answer.
fn expected(state: S, read_only: bool, found: &str, sound: bool) -> S {
    let pending = state == S::Pending;
    let open = matches!(state, S::Started | S::Running | S::Unknown);
    if !pending && !open {
        return state;
    }
    if read_only {
        return S::Cancelled;
    }
    match found {
        "success" | "job" => S::Completed,
        "failure" => S::Failed,
        "stopped" => S::Interrupted,
        "unproven" | "straggler" => S::Unknown,
        "running" if pending => S::Running,
        "running" => state,
        // The log is whole and says that nothing started.
        _ if pending && sound => S::Cancelled,
        "fenced" => S::NotStarted,
        _ => S::Unknown,
    }
}

#[test]
fn tr_14_tr_18_every_state_every_finding_every_damage() {
    let mut walked = 0;
    for state in S::ALL {
        for read_only in [false, true] {
            for (found, evidence) in evidence() {
                for (damage, legacy) in [
                    ("", false),
                    ("before", false),
                    ("behind", false),
                    ("to the end", false),
                    ("", true),
                ] {
                    if read_only && state.is_by_person() {
                        continue;
                    }
                    walked += 1;
                    let name = format!("{state:?} {read_only} {found} {damage:?} {legacy}");
                    let mut log = if legacy {
                        Log::with_writes(&["receipt", "tool_result"])
                    } else {
                        Log::new()
                    };
                    log.turn("t1").says("t1", 1, &[("c1", "shell")]);
                    log.bring_to(state, read_only);
                    let at = log.attempt("a").receipt_seq;
                    let last = log.session.last_seq;
                    let findings = Findings {
                        session_id: String::new(),
                        boot_id: "boot-2".to_owned(),
                        processes: evidence
                            .iter()
                            .map(|evidence| ("a".to_owned(), evidence.clone()))
                            .collect(),
                        damage: match damage {
                            "before" => vec![Damage {
                                after_seq: at - 2,
                                before_seq: Some(at - 1),
                            }],
                            "behind" => vec![Damage {
                                after_seq: last,
                                before_seq: Some(last + 9),
                            }],
                            "to the end" => vec![Damage {
                                after_seq: last,
                                before_seq: None,
                            }],
                            _ => Vec::new(),
                        },
                        mutating_tools: BTreeSet::from(["shell".to_owned()]),
                        ..Findings::default()
                    };
                    let before = log.attempt("a").clone();
                    let sound = !legacy && matches!(damage, "" | "before");

                    let steps = plan(&log.session, &findings);
                    carry_out(&mut log, &steps);
                    let after = log.attempt("a").clone();
                    let right = expected(state, read_only, found, sound);
                    assert_eq!(after.state, right, "{name}");
                    assert_eq!(log.session.attempts().count(), 1, "{name}");
                    if before.result.is_some() {
                        assert_eq!(after.result, before.result, "{name}");
                    }
                    let real = matches!(found, "success" | "failure" | "stopped" | "job");
                    if state.is_by_person() {
                        assert_eq!(after.late.is_some(), real, "{name}");
                        assert_eq!(after.result, None, "{name}");
                    }
                    let settled =
                        !matches!(state, S::Pending | S::Started | S::Running | S::Unknown);
                    assert_eq!(
                        reattached(&steps),
                        matches!(found, "running" | "job")
                            && !read_only
                            && (!settled || state.is_by_person()),
                        "{name}"
                    );
                    assert!(log.session.open_turn().is_none(), "{name}");

                    // C05: the same again, twice, says nothing new.
                    for _ in 0..2 {
                        let again = plan(&log.session, &findings);
                        assert!(news(&again).is_empty(), "{name}: {again:?}");
                        carry_out(&mut log, &again);
                    }
                    assert_eq!(log.attempt("a"), &after, "{name}");
                }
            }
        }
    }
    assert!(walked > 1000, "{walked}");
}

/// What a write left, in every state that the log may show.
#[test]
fn tr_14_c39_every_state_of_a_write_and_every_evidence() {
    let done = PublicationEvidence::Done {
        bytes: 3,
        diff: None,
        changed_since: false,
    };
    let open = PublicationEvidence::Open {
        reason: "something else has changed it".to_owned(),
    };
    for state in S::ALL {
        for evidence in [
            None,
            Some(PublicationEvidence::Absent),
            Some(done.clone()),
            Some(open.clone()),
        ] {
            let name = format!("{state:?} {evidence:?}");
            let mut log = Log::new();
            log.turn("t1").says("t1", 1, &[("c1", "write_file")]);
            let write = Receipt {
                file: Some(intent()),
                ..receipt("a", "c1", "write_file")
            };
            log.bring(write, state);
            let findings = Findings {
                boot_id: "boot-2".to_owned(),
                publications: evidence
                    .iter()
                    .map(|evidence| ("a".to_owned(), evidence.clone()))
                    .collect(),
                mutating_tools: BTreeSet::from(["write_file".to_owned()]),
                ..Findings::default()
            };
            let before = log.attempt("a").clone();
            let steps = plan(&log.session, &findings);
            carry_out(&mut log, &steps);
            let after = log.attempt("a").clone();
            let right = match (state, &evidence) {
                (S::Pending | S::Started | S::Running | S::Unknown, Some(found))
                    if *found == done =>
                {
                    S::Completed
                }
                // The log is whole and says that nothing started.
                (S::Pending, _) => S::Cancelled,
                (S::Started | S::Running | S::Unknown, Some(PublicationEvidence::Absent)) => {
                    S::NotStarted
                }
                (S::Started | S::Running, _) => S::Unknown,
                _ => state,
            };
            assert_eq!(after.state, right, "{name}");
            if state.is_by_person() {
                assert_eq!(
                    after.late.is_some(),
                    evidence == Some(done.clone()),
                    "{name}"
                );
                assert_eq!(after.result, None, "{name}");
            } else if before.result.is_some() {
                assert_eq!(after.result, before.result, "{name}");
            }
            if right == S::Completed && before.result.is_none() {
                assert!(after.is_recovered(), "{name}");
            }
            // C05: the same again says nothing new.
            assert!(news(&plan(&log.session, &findings)).is_empty(), "{name}");
        }
    }
}

#[test]
fn c04_a_torn_write_before_the_start_record_is_cancelled_and_blocks_nothing() {
    let mut log = Log::with_attempt(S::Pending, false);
    let steps = plan(&log.session, &Findings::default());
    carry_out(&mut log, &steps);
    assert_eq!(log.attempt("a").state, S::Cancelled);
    assert_eq!(log.session.unresolved(&InFlight::new()), 0);
    assert!(log.session.answer("c1").is_some());
}

#[test]
fn tr_14_what_was_found_open_is_named_once_and_first() {
    let mut log = Log::with_attempt(S::Started, false);
    let findings = Findings {
        boot_id: "boot-2".to_owned(),
        ..Findings::default()
    };
    let steps = plan(&log.session, &findings);
    let Some(RestartStep::Record(Record::Restarted(restarted))) = steps.first() else {
        panic!("{steps:?}")
    };
    assert_eq!(restarted.boot_id, "boot-2");
    assert_eq!(restarted.attempts, ["a"]);
    carry_out(&mut log, &steps);
    assert!(log.attempt("a").found_open);
    assert_eq!(plan(&log.session, &findings), []);
}

#[test]
fn tr_16_an_idle_session_needs_nothing() {
    let mut log = Log::with_attempt(S::Completed, false);
    log.end("t1", "completed");
    assert_eq!(plan(&log.session, &Findings::default()), []);
    assert_eq!(plan(&Log::empty().session, &Findings::default()), []);
}

#[test]
fn tr_14_a_call_whose_receipt_may_be_lost_is_presumed_to_have_run() {
    let mut log = Log::new();
    log.turn("t1").says(
        "t1",
        1,
        &[("c1", "shell"), ("c2", "read_file"), ("c3", "shell")],
    );
    log.receipt("a3", "c3", "shell")
        .start("a3")
        .add(result("a3", S::Completed, "done"));
    let findings = Findings {
        damage: vec![Damage {
            after_seq: log.session.last_seq,
            before_seq: Some(log.session.last_seq + 4),
        }],
        mutating_tools: BTreeSet::from(["shell".to_owned()]),
        ..Findings::default()
    };
    let steps = plan(&log.session, &findings);
    carry_out(&mut log, &steps);
    let attempt = log.session.attempt_of("c1").unwrap();
    assert_eq!(attempt.state, S::Unknown);
    assert_eq!(attempt.identity.call_id, "c1");
    assert_eq!(attempt.identity.attempt_id.len(), 32);
    assert!(
        log.session.attempt_of("c2").is_none(),
        "reading has no effect"
    );
    assert_eq!(log.session.unresolved(&InFlight::new()), 1);
    assert_eq!(
        news(&plan(&log.session, &findings)),
        Vec::<&RestartStep>::new()
    );
}

#[test]
fn tr_21_a_command_of_the_sandbox_is_never_presumed_to_have_changed_something() {
    let mut log = Log::new();
    log.turn("t1")
        .says("t1", 1, &[("c1", "shell"), ("c2", "shell")]);
    let findings = Findings {
        damage: vec![Damage {
            after_seq: log.session.last_seq,
            before_seq: None,
        }],
        mutating_tools: BTreeSet::from(["shell".to_owned()]),
        harmless_calls: BTreeSet::from(["c1".to_owned()]),
        ..Findings::default()
    };
    let steps = plan(&log.session, &findings);
    carry_out(&mut log, &steps);
    assert!(log.session.attempt_of("c1").is_none());
    assert_eq!(log.session.attempt_of("c2").unwrap().state, S::Unknown);
}

#[test]
fn tr_14_damage_before_a_call_presumes_nothing() {
    let mut log = Log::new();
    log.turn("t1").says("t1", 1, &[("c1", "shell")]);
    let findings = Findings {
        damage: vec![Damage {
            after_seq: 1,
            before_seq: Some(2),
        }],
        mutating_tools: BTreeSet::from(["shell".to_owned()]),
        ..Findings::default()
    };
    let steps = plan(&log.session, &findings);
    carry_out(&mut log, &steps);
    assert_eq!(log.session.attempts().count(), 0);
}

#[test]
fn tr_14_an_effect_folder_that_the_log_does_not_know_is_an_unknown_attempt() {
    let mut log = Log::with_attempt(S::Completed, false);
    log.end("t1", "completed");
    let findings = Findings {
        orphans: vec!["f00d".to_owned(), "a".to_owned()],
        ..Findings::default()
    };
    let steps = plan(&log.session, &findings);
    carry_out(&mut log, &steps);
    assert_eq!(log.session.attempts().count(), 2);
    let orphan = log.attempt("f00d");
    assert_eq!(orphan.state, S::Unknown);
    assert!(orphan.supervised && orphan.found_open && !orphan.read_only);
    assert_eq!(log.session.unresolved(&InFlight::new()), 1);
    assert_eq!(plan(&log.session, &findings), []);
}

#[test]
fn tr_51_an_open_turn_is_interrupted_and_the_message_kept() {
    let mut log = Log::new();
    log.turn("t1");
    let steps = plan(&log.session, &Findings::default());
    assert_eq!(steps.len(), 1);
    carry_out(&mut log, &steps);
    let turn = log.session.turn.as_ref().unwrap();
    let ended = turn.ended.as_ref().unwrap();
    assert_eq!(ended.status, "interrupted");
    assert_eq!(ended.code, "host_restarted");
    assert_eq!(log.session.items.len(), 1);
}

#[test]
fn c05_several_attempts_each_get_their_own_outcome() {
    let mut log = Log::new();
    log.turn("t1").says(
        "t1",
        1,
        &[
            ("c1", "shell"),
            ("c2", "shell"),
            ("c3", "shell"),
            ("c4", "shell"),
        ],
    );
    for n in 1..=4 {
        let id = format!("a{n}");
        let mut first = receipt(&id, &format!("c{n}"), "shell");
        first.supervised = true;
        log.add(first).start(&id);
    }
    let findings = Findings {
        processes: BTreeMap::from([
            ("a1".to_owned(), ProcessEvidence::Fenced),
            ("a2".to_owned(), ProcessEvidence::Running { pid: 1 }),
            (
                "a3".to_owned(),
                ProcessEvidence::Exited {
                    receipt: exit("a3", EndedBy::Itself, Some(0)),
                    output_incomplete: true,
                    alive: false,
                },
            ),
        ]),
        ..Findings::default()
    };
    let steps = plan(&log.session, &findings);
    carry_out(&mut log, &steps);
    let states: Vec<_> = log
        .session
        .attempts()
        .map(|attempt| attempt.state)
        .collect();
    assert_eq!(
        states,
        [S::NotStarted, S::Started, S::Completed, S::Unknown]
    );
    let in_flight = InFlight::from(["a2".to_owned()]);
    assert_eq!(log.session.unresolved(&in_flight), 1);
    assert!(news(&plan(&log.session, &findings)).is_empty());
}
