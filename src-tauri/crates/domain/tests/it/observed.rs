//! What other hosts say, in our words: RS-06, RS-14.

use holdfast_domain::runtime::observed::{LegacyPhase, Observed, snapshot_of, status_of};
use holdfast_domain::runtime::snapshot::{Activity, Outcome, Phase, TurnStatus};
use serde_json::{Value, json};

fn snapshot() -> Value {
    json!({
        "schemaVersion": 1, "runtimeEpoch": "e1", "revision": 3, "phase": "executing",
        "running": true, "turnId": "t", "turnStatus": "in_progress", "turnEventSeq": 9,
        "pendingPrompt": false, "cancelRequested": false, "cancellable": true,
        "backgroundJobs": 0, "activity": "streaming", "unresolved": 0, "outcome": "",
    })
}

fn with(member: &str, value: Value) -> Value {
    let mut changed = snapshot();
    changed[member] = value;
    changed
}

#[test]
fn rs_06_a_whole_snapshot_is_read_as_it_is() {
    let state = snapshot_of(&snapshot()).unwrap();
    assert_eq!(serde_json::to_value(&state).unwrap(), snapshot());
}

#[test]
fn rs_06_what_other_hosts_call_otherwise_is_mapped() {
    let state = snapshot_of(&with("phase", json!("cancelling"))).unwrap();
    assert_eq!(
        (state.phase, state.cancel_requested),
        (Phase::Executing, true)
    );
    let state = snapshot_of(&with("phase", json!("recovery_required"))).unwrap();
    assert_eq!((state.phase, state.unresolved), (Phase::Idle, 1));
    let state = snapshot_of(&with("activity", json!("waiting_input"))).unwrap();
    assert_eq!(
        (state.activity, state.pending_prompt),
        (Activity::None, true)
    );
}

#[test]
fn rs_06_a_turn_that_is_taken_in_or_asks_a_person_is_in_progress() {
    for word in ["queued", "waiting_user"] {
        let state = snapshot_of(&with("turnStatus", json!(word))).unwrap();
        assert_eq!(state.turn_status, TurnStatus::InProgress, "{word}");
    }
}

#[test]
fn rs_06_where_revisions_begin_anew_in_one_epoch_both_marks_are_the_epoch() {
    let epoch = |projection: Value| {
        let state = snapshot_of(&with("projectionEpoch", projection));
        state.map(|state| state.runtime_epoch).ok()
    };
    assert_eq!(epoch(json!("p1")).as_deref(), Some("e1.p1"));
    assert_eq!(epoch(json!("p2")).as_deref(), Some("e1.p2"));
    assert_eq!(epoch(json!("")).as_deref(), Some("e1"));
    assert_eq!(epoch(json!(1)), None);
    let mut none = with("projectionEpoch", json!("p1"));
    none["runtimeEpoch"] = json!("");
    assert!(snapshot_of(&none).is_err());
}

#[test]
fn rs_06_unknown_members_are_ignored_and_our_own_additions_may_be_absent() {
    let mut other = with("somethingElse", json!({ "deep": [1] }));
    let members = other.as_object_mut().unwrap();
    members.remove("unresolved");
    members.remove("outcome");
    let state = snapshot_of(&other).unwrap();
    assert_eq!((state.unresolved, state.outcome), (0, Outcome::None));
}

#[test]
fn rs_06_each_required_member_that_is_missing_or_wrong_makes_it_invalid() {
    let required: Vec<String> = snapshot().as_object().unwrap().keys().cloned().collect();
    for member in required {
        let mut missing = snapshot();
        missing.as_object_mut().unwrap().remove(&member);
        let optional = member == "unresolved" || member == "outcome";
        assert_eq!(
            snapshot_of(&missing).is_ok(),
            optional,
            "{member} is missing"
        );
        for wrong in [json!(null), json!([]), json!({}), json!(1.5), json!(-1)] {
            let changed = with(&member, wrong.clone());
            assert!(snapshot_of(&changed).is_err(), "{member}: {wrong}");
        }
    }
    for (member, wrong) in [
        ("schemaVersion", json!(2)),
        ("schemaVersion", json!(0)),
        ("runtimeEpoch", json!("")),
        ("revision", json!(0)),
        ("revision", json!(1_u64 << 53)),
        ("phase", json!("asleep")),
        ("activity", json!("dreaming")),
        ("backgroundJobs", json!("1")),
        ("running", json!("true")),
    ] {
        assert!(
            snapshot_of(&with(member, wrong.clone())).is_err(),
            "{member}: {wrong}"
        );
    }
    for other in [json!(null), json!("text"), json!([])] {
        assert!(snapshot_of(&other).is_err());
    }
}

#[test]
fn rs_14_a_host_without_snapshots_is_projected_from_its_status() {
    let Ok(Observed::Legacy(state)) =
        status_of(&json!({ "running": true, "pendingPrompt": true, "label": "x" }))
    else {
        panic!("it has no snapshot");
    };
    assert_eq!(
        (state.schema_version, state.phase),
        (0, LegacyPhase::Executing)
    );
    assert_eq!(state.pending_prompt, Some(true));
    // What is absent is not zero.
    assert_eq!((state.cancellable, state.background_jobs), (None, None));
    let shown = serde_json::to_value(&state).unwrap();
    assert_eq!(
        shown,
        json!({ "schemaVersion": 0, "phase": "executing", "running": true, "pendingPrompt": true })
    );
    // It never says more than it can know.
    let Ok(Observed::Legacy(idle)) = status_of(&json!({ "running": false })) else {
        panic!("it has no snapshot");
    };
    assert_eq!(idle.phase, LegacyPhase::Idle);
}

#[test]
fn rs_14_rs_27_a_status_with_a_snapshot_is_that_snapshot() {
    let status = json!({ "running": false, "runtimeState": snapshot() });
    assert!(matches!(status_of(&status), Ok(Observed::Snapshot(state)) if state.running));
    let wrong = json!({ "running": false, "runtimeState": with("phase", json!("odd")) });
    assert!(
        status_of(&wrong).is_err(),
        "a bad snapshot is not replaced by a guess"
    );
    for status in [
        json!({}),
        json!({ "running": 1 }),
        json!({ "running": true, "backgroundJobs": -1 }),
    ] {
        assert!(status_of(&status).is_err(), "{status}");
    }
}
