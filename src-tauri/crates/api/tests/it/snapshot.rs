//! The recovery snapshot: its revision, and what it never says.

use holdfast_api::recovery::{CallRecord, Statistics, ToolRecoverySnapshot};
use holdfast_domain::recovery::attempt::Attempt;
use holdfast_domain::recovery::identity::Identity;
use holdfast_domain::recovery::lifecycle::AttemptState;
use serde_json::json;

fn attempt() -> Attempt {
    let mut attempt = Attempt::new(
        Identity {
            session_id: "s".to_owned(),
            turn_id: "t".to_owned(),
            step: 1,
            call_id: "c".to_owned(),
            canonical_tool: "shell".to_owned(),
            argument_digest: "d".to_owned(),
            attempt_id: "a".to_owned(),
            resource_scope: "session:s".to_owned(),
        },
        false,
        7,
    );
    attempt.state = AttemptState::Unknown;
    attempt.subject = "rm -rf secret-plan".to_owned();
    attempt
}

fn snapshot() -> ToolRecoverySnapshot {
    ToolRecoverySnapshot {
        silent: false,
        statistics: Statistics {
            unknown: 1,
            ..Statistics::default()
        },
        session_path: "session-id:s".to_owned(),
        runtime_epoch: "e".to_owned(),
        revision: String::new(),
        calls: vec![CallRecord::of(&attempt())],
        retry_enabled: false,
        dismiss_enabled: true,
    }
    .sealed()
}

#[test]
fn tr_26_the_revision_is_the_digest_of_the_view_without_itself_and_arguments() {
    let first = snapshot();
    assert_eq!(first.revision.len(), 64);
    assert_eq!(first, snapshot(), "two reads are identical");
    assert_eq!(
        first.clone().sealed(),
        first,
        "sealing again changes nothing"
    );
    let mut with_arguments = first.clone();
    with_arguments.calls[0].arguments = Some(json!({"command": "x"}));
    assert_eq!(with_arguments.sealed().revision, first.revision);
    let mut other = first.clone();
    other.calls[0].state = AttemptState::UserConfirmed;
    assert_ne!(other.sealed().revision, first.revision);
    let mut counted = first.clone();
    counted.statistics.blocked = 1;
    assert_ne!(counted.sealed().revision, first.revision);
}

#[test]
fn tr_27_a_snapshot_holds_no_arguments_not_even_a_commands_text() {
    let text = serde_json::to_string(&snapshot()).unwrap();
    assert!(!text.contains("secret-plan"), "{text}");
    assert!(!text.contains("\"arguments\""), "{text}");
}

#[test]
fn tr_25_fields_have_the_contracts_names() {
    let value = serde_json::to_value(snapshot()).unwrap();
    for field in [
        "silent",
        "statistics",
        "sessionPath",
        "runtimeEpoch",
        "revision",
        "calls",
        "retryEnabled",
        "dismissEnabled",
    ] {
        assert!(value.get(field).is_some(), "{field}");
    }
    let call = &value["calls"][0];
    for field in [
        "identity",
        "state",
        "read_only",
        "idempotency_key",
        "started_at",
        "finished_at",
        "resolved_at",
        "result_digest",
        "result_source",
        "effect_summary",
        "resolution",
        "resolution_source",
        "inspection_id",
        "inspection_state",
        "inspection_evidence",
        "superseded_by",
    ] {
        assert!(call.get(field).is_some(), "{field}");
    }
    // An older host that can't dismiss leaves the field out.
    let mut old = value;
    old.as_object_mut().unwrap().remove("dismissEnabled");
    let read: ToolRecoverySnapshot = serde_json::from_value(old).unwrap();
    assert!(!read.dismiss_enabled);
}
