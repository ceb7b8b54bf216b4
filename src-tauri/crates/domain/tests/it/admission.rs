//! Which actions are admitted, and the code of each refusal.

use std::collections::BTreeSet;

use holdfast_domain::recovery::admission::{Action, ActionRequest, Refusal, Situation, admit};
use holdfast_domain::recovery::attempt::{Attempt, Resolution};
use holdfast_domain::recovery::lifecycle::AttemptState;

use crate::log::{Log, inspected, open_failure};

const ACTIONS: [Action; 5] = [
    Action::Inspect,
    Action::Confirm,
    Action::Reject,
    Action::Retry,
    Action::Dismiss,
];

/// TR-30's list, in its order.
const ORDER: [Refusal; 14] = [
    Refusal::SessionClosed,
    Refusal::SessionSwitching,
    Refusal::TurnRunning,
    Refusal::SnapshotChanged,
    Refusal::AttemptUnknown,
    Refusal::AttemptResolved,
    Refusal::NotInspected,
    Refusal::RetryDisabled,
    Refusal::ExecutorAlive,
    Refusal::ToolUnavailable,
    Refusal::NotFenced,
    Refusal::SinkChanged,
    Refusal::RetryTargetChanged,
    Refusal::NotDurable,
];

fn request(action: Action) -> ActionRequest {
    ActionRequest {
        session_path: "session-id:x".to_owned(),
        runtime_epoch: "epoch".to_owned(),
        revision: "revision".to_owned(),
        attempt_id: "a".to_owned(),
        inspection_id: "i1".to_owned(),
        action,
    }
}

fn situation(attempt: Option<&Attempt>) -> Situation<'_> {
    Situation {
        closed: false,
        switching: false,
        turn_running: false,
        session_path: "session-id:x",
        runtime_epoch: "epoch",
        revision: "revision",
        attempt,
        executor_alive: false,
        retry_enabled: true,
    }
}

/// An unresolved attempt whose latest inspection is `i1`.
fn unresolved() -> Attempt {
    let mut log = Log::with_attempt(AttemptState::Unknown, false);
    log.add(inspected("a", "i0")).add(inspected("a", "i1"));
    log.attempt("a").clone()
}

#[test]
fn tr_30_each_cause_has_its_own_code_on_the_wire_too() {
    let codes = [
        "session_closed",
        "session_switching",
        "turn_running",
        "snapshot_changed",
        "attempt_unknown",
        "attempt_resolved",
        "not_inspected",
        "retry_disabled",
        "executor_alive",
        "tool_unavailable",
        "not_fenced",
        "sink_changed",
        "retry_target_changed",
        "not_durable",
    ];
    let messages: BTreeSet<String> = ORDER.iter().map(ToString::to_string).collect();
    assert_eq!(messages.len(), ORDER.len());
    for (refusal, code) in ORDER.into_iter().zip(codes) {
        assert_eq!(refusal.code(), code);
        assert_eq!(serde_json::to_value(refusal).unwrap(), code);
    }
    assert_eq!(
        Refusal::SnapshotChanged.to_string(),
        "recovery snapshot changed; refresh before resolving"
    );
    assert_eq!(
        Refusal::NotInspected.to_string(),
        "inspect this exact attempt before resolving it"
    );
}

#[test]
fn tr_30_causes_are_checked_in_order() {
    // Everything is wrong at once; each cause is mended in turn and the next one shows.
    let settled = Log::with_attempt(AttemptState::UserConfirmed, false)
        .attempt("a")
        .clone();
    let open = unresolved();
    let mut ask = request(Action::Retry);
    ask.revision = "older".to_owned();
    ask.inspection_id = "i0".to_owned();
    let mut now = Situation {
        closed: true,
        switching: true,
        turn_running: true,
        executor_alive: true,
        retry_enabled: false,
        ..situation(None)
    };
    let mut seen = Vec::new();
    let mut note = |ask: &ActionRequest, now: &Situation<'_>| {
        seen.push(admit(ask, now).unwrap_err());
    };
    note(&ask, &now);
    now.closed = false;
    note(&ask, &now);
    now.switching = false;
    note(&ask, &now);
    now.turn_running = false;
    note(&ask, &now);
    ask.revision = "revision".to_owned();
    note(&ask, &now);
    now.attempt = Some(&settled);
    note(&ask, &now);
    now.attempt = Some(&open);
    note(&ask, &now);
    ask.inspection_id = "i1".to_owned();
    note(&ask, &now);
    now.retry_enabled = true;
    note(&ask, &now);
    now.executor_alive = false;
    assert_eq!(admit(&ask, &now), Ok(()));
    assert_eq!(seen, ORDER[..9]);
}

#[test]
fn tr_30_path_epoch_and_revision_must_be_the_present_ones_and_not_empty() {
    let open = unresolved();
    for action in ACTIONS {
        for field in ["path", "epoch", "revision"] {
            for value in ["", "another"] {
                let mut ask = request(action);
                match field {
                    "path" => value.clone_into(&mut ask.session_path),
                    "epoch" => value.clone_into(&mut ask.runtime_epoch),
                    _ => value.clone_into(&mut ask.revision),
                }
                // TR-34: a dismissal is not fenced by the revision.
                let right = if action == Action::Dismiss && field == "revision" {
                    Ok(())
                } else {
                    Err(Refusal::SnapshotChanged)
                };
                assert_eq!(
                    admit(&ask, &situation(Some(&open))),
                    right,
                    "{action:?} {field}"
                );
            }
        }
        // Two empty values are not the same snapshot.
        let mut ask = request(action);
        ask.runtime_epoch.clear();
        let now = Situation {
            runtime_epoch: "",
            ..situation(Some(&open))
        };
        assert_eq!(admit(&ask, &now), Err(Refusal::SnapshotChanged));
    }
}

#[test]
fn tr_33_only_the_latest_inspection_of_this_attempt_counts() {
    let open = unresolved();
    let never = Log::with_attempt(AttemptState::Unknown, false)
        .attempt("a")
        .clone();
    for action in [Action::Confirm, Action::Reject, Action::Retry] {
        for id in ["", "i0", "other"] {
            let mut ask = request(action);
            ask.inspection_id = id.to_owned();
            for attempt in [&open, &never] {
                assert_eq!(
                    admit(&ask, &situation(Some(attempt))),
                    Err(Refusal::NotInspected)
                );
            }
        }
        assert_eq!(admit(&request(action), &situation(Some(&open))), Ok(()));
    }
    for action in [Action::Inspect, Action::Dismiss] {
        let mut ask = request(action);
        ask.inspection_id.clear();
        assert_eq!(admit(&ask, &situation(Some(&never))), Ok(()));
    }
}

#[test]
fn tr_34_a_dismissal_is_admitted_during_a_turn_unless_something_lives() {
    let open = unresolved();
    let during = Situation {
        turn_running: true,
        ..situation(Some(&open))
    };
    for action in ACTIONS {
        let right = if action == Action::Dismiss {
            Ok(())
        } else {
            Err(Refusal::TurnRunning)
        };
        assert_eq!(admit(&request(action), &during), right);
    }
    let alive = Situation {
        executor_alive: true,
        ..during
    };
    assert_eq!(
        admit(&request(Action::Dismiss), &alive),
        Err(Refusal::ExecutorAlive)
    );
}

#[test]
fn tr_30_what_is_settled_or_blocks_nothing_is_refused() {
    for state in AttemptState::ALL {
        let log = Log::with_attempt(state, false);
        let unresolved = log.attempt("a").is_unresolved(false);
        for action in ACTIONS {
            let verdict = admit(&request(action), &situation(Some(log.attempt("a"))));
            if unresolved {
                assert_ne!(verdict, Err(Refusal::AttemptResolved), "{state:?}");
            } else {
                assert_eq!(verdict, Err(Refusal::AttemptResolved), "{state:?}");
            }
        }
    }
}

#[test]
fn tr_24_in_every_unresolved_state_some_action_is_admitted() {
    let mut attempts = Vec::new();
    for state in AttemptState::ALL {
        attempts.push(Log::with_attempt(state, false));
    }
    let mut failed = Log::with_attempt(AttemptState::Started, false);
    failed.add(open_failure("a", "dropped"));
    attempts.push(failed);
    let mut rejected = Log::with_attempt(AttemptState::Unknown, false);
    rejected
        .add(inspected("a", "i1"))
        .resolve("a", Resolution::Reject);
    attempts.push(rejected);

    let mut walked = 0;
    for log in &attempts {
        let attempt = log.attempt("a");
        if !attempt.is_unresolved(false) {
            continue;
        }
        for turn_running in [false, true] {
            for executor_alive in [false, true] {
                for retry_enabled in [false, true] {
                    // What runs now in this turn is stopped first; it is not yet uncertain.
                    if turn_running && executor_alive {
                        continue;
                    }
                    walked += 1;
                    let now = Situation {
                        turn_running,
                        executor_alive,
                        retry_enabled,
                        ..situation(Some(attempt))
                    };
                    let admitted = ACTIONS
                        .into_iter()
                        .filter(|action| admit(&request(*action), &now).is_ok())
                        .count();
                    assert!(admitted > 0, "{:?} {now:?}", attempt.state);
                }
            }
        }
    }
    assert_eq!(walked, 5 * 6);
}

#[test]
fn tr_29_a_request_has_exactly_its_fields() {
    let text = r#"{"sessionPath":"p","runtimeEpoch":"e","revision":"r","attemptId":"a",
        "inspectionId":"","action":"dismiss"}"#;
    let read: ActionRequest = serde_json::from_str(text).unwrap();
    assert_eq!(read.action, Action::Dismiss);
    for bad in [
        text.replace("\"action\"", "\"force\":true,\"action\""),
        text.replace("dismiss", "undo"),
        text.replace("\"revision\":\"r\",", ""),
        text.replace("\"a\"", "7"),
    ] {
        assert!(
            serde_json::from_str::<ActionRequest>(&bad).is_err(),
            "{bad}"
        );
    }
    let words: Vec<_> = ACTIONS
        .iter()
        .map(|action| serde_json::to_value(action).unwrap())
        .collect();
    assert_eq!(words, ["inspect", "confirm", "reject", "retry", "dismiss"]);
}
