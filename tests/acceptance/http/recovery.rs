//! `/tool-recovery` over HTTP (TR-41): one shape, its bounds, and its refusals.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;

use holdfast_testkit::model_server::Step;
use serde_json::{Value, json};

use crate::agent::scene::{Scene, shell};

/// A session with one command of unknown outcome.
async fn unknown() -> (Scene, Value) {
    let scene = Scene::new("full").await;
    let command = "echo secret-words >> f; kill -9 $PPID; kill -9 $$";
    scene.model.push(shell("s", command));
    scene.model.push(Step::text("I can't tell"));
    scene.turn("go").await;
    let snapshot = scene.get("/tool-recovery").await;
    assert_eq!(snapshot["calls"].as_array().unwrap().len(), 1, "{snapshot}");
    (scene, snapshot)
}

fn request(snapshot: &Value, action: &str, inspection: &str) -> Value {
    json!({
        "sessionPath": snapshot["sessionPath"],
        "runtimeEpoch": snapshot["runtimeEpoch"],
        "revision": snapshot["revision"],
        "attemptId": snapshot["calls"][0]["identity"]["attempt_id"],
        "inspectionId": inspection,
        "action": action,
    })
}

#[tokio::test]
async fn tr_25_the_snapshot_has_its_exact_keys() {
    let (_scene, snapshot) = unknown().await;
    let keys: BTreeSet<&str> = snapshot
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "silent",
        "statistics",
        "sessionPath",
        "runtimeEpoch",
        "revision",
        "calls",
        "retryEnabled",
        "dismissEnabled",
    ];
    assert_eq!(keys, BTreeSet::from(expected));
    assert_eq!(snapshot["silent"], false);
    assert_eq!(snapshot["retryEnabled"], false);
    assert_eq!(snapshot["dismissEnabled"], true);
    let counted: BTreeSet<&str> = snapshot["statistics"]
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let expected = [
        "unknown",
        "confirmed",
        "retried",
        "rejected",
        "blocked",
        "dismissed",
    ];
    assert_eq!(counted, BTreeSet::from(expected));
    let record = &snapshot["calls"][0];
    for key in [
        "identity",
        "state",
        "read_only",
        "idempotency_key",
        "started_at",
        "effect_summary",
        "inspection_id",
    ] {
        assert!(record.get(key).is_some(), "{key}: {record}");
    }
    for key in [
        "session_id",
        "turn_id",
        "step",
        "call_id",
        "canonical_tool",
        "argument_digest",
        "attempt_id",
        "resource_scope",
    ] {
        assert!(record["identity"].get(key).is_some(), "{key}: {record}");
    }
}

#[tokio::test]
async fn tr_27_arguments_come_with_an_inspection_alone() {
    let (scene, snapshot) = unknown().await;
    assert_eq!(snapshot["calls"][0].get("arguments"), None);
    let again = scene.get("/tool-recovery").await;
    assert_eq!(again, snapshot, "two reads are identical");
    let (status, inspected) = scene
        .post("/tool-recovery", request(&snapshot, "inspect", ""))
        .await;
    assert_eq!(status, 200, "{inspected}");
    let record = &inspected["calls"][0];
    assert!(record["arguments"].to_string().contains("secret-words"));
    assert_eq!(record["inspection_state"], "unknown");
    let later = scene.get("/tool-recovery").await;
    assert_eq!(later["calls"][0].get("arguments"), None);
    assert_eq!(later["revision"], inspected["revision"]);
}

#[tokio::test]
async fn tr_41_a_body_has_its_bound_and_its_fields() {
    let (scene, snapshot) = unknown().await;
    let mut large = request(&snapshot, "inspect", "");
    large["inspectionId"] = json!("x".repeat(16 * 1024));
    let (status, body) = scene.post("/tool-recovery", large).await;
    assert_eq!(
        (status, body["code"].as_str()),
        (413, Some("body_too_large"))
    );
    let mut more = request(&snapshot, "inspect", "");
    more["more"] = json!(1);
    let (status, body) = scene.post("/tool-recovery", more).await;
    assert_eq!((status, body["code"].as_str()), (400, Some("body_invalid")));
    for field in [
        "sessionPath",
        "runtimeEpoch",
        "revision",
        "attemptId",
        "action",
    ] {
        let mut less = request(&snapshot, "inspect", "");
        less.as_object_mut().unwrap().remove(field);
        let (status, body) = scene.post("/tool-recovery", less).await;
        assert_eq!(
            (status, body["code"].as_str()),
            (400, Some("body_invalid")),
            "{field}"
        );
    }
    let (status, body) = scene
        .post("/tool-recovery", request(&snapshot, "explode", ""))
        .await;
    assert_eq!((status, body["code"].as_str()), (400, Some("body_invalid")));
    assert_eq!(scene.get("/tool-recovery").await, snapshot);
}

#[tokio::test]
async fn tr_41_a_refused_action_carries_the_present_snapshot() {
    let (scene, snapshot) = unknown().await;
    let refused = async |body: Value, code: &str| {
        let (status, answer) = scene.post("/tool-recovery", body).await;
        assert_eq!(
            (status, answer["code"].as_str()),
            (409, Some(code)),
            "{answer}"
        );
        assert!(!answer["message"].as_str().unwrap().is_empty());
        assert_eq!(answer["snapshot"], snapshot);
    };
    let mut stale = request(&snapshot, "inspect", "");
    stale["revision"] = json!("0".repeat(64));
    refused(stale, "snapshot_changed").await;
    let mut epoch = request(&snapshot, "inspect", "");
    epoch["runtimeEpoch"] = json!("0".repeat(32));
    refused(epoch, "snapshot_changed").await;
    let mut unknown = request(&snapshot, "inspect", "");
    unknown["attemptId"] = json!("0".repeat(32));
    refused(unknown, "attempt_unknown").await;
    refused(request(&snapshot, "confirm", ""), "not_inspected").await;
    refused(request(&snapshot, "retry", ""), "not_inspected").await;
}

#[tokio::test]
async fn a_confirmed_call_lets_the_next_write_through() {
    let (scene, snapshot) = unknown().await;
    scene.model.push(shell("t", "echo more >> g"));
    scene.model.push(Step::text("blocked"));
    scene.turn("go on").await;
    assert!(!scene.file("g").exists(), "the barrier");
    let fresh = scene.get("/tool-recovery").await;
    assert_eq!(fresh["statistics"]["blocked"], 1);
    let (status, inspected) = scene
        .post("/tool-recovery", request(&fresh, "inspect", ""))
        .await;
    assert_eq!(status, 200);
    let id = inspected["calls"][0]["inspection_id"].as_str().unwrap();
    let (status, confirmed) = scene
        .post("/tool-recovery", request(&inspected, "confirm", id))
        .await;
    assert_eq!(status, 200, "{confirmed}");
    assert_eq!(confirmed["calls"], json!([]));
    assert_eq!(confirmed["statistics"]["confirmed"], 1);
    assert_eq!(confirmed["statistics"]["unknown"], 0);
    assert_eq!(scene.get("/status").await["runtimeState"]["unresolved"], 0);
    let (status, again) = scene
        .post("/tool-recovery", request(&inspected, "confirm", id))
        .await;
    assert_eq!(status, 409, "{again}");
    assert_eq!(scene.tools().await[0]["state"], "user_confirmed");
    scene.model.push(shell("u", "echo more >> g"));
    scene.model.push(Step::text("done"));
    let turn = scene.submit("now").await;
    scene.ended(&turn).await;
    assert_eq!(scene.read("g"), "more\n");
    assert_ne!(snapshot["revision"], fresh["revision"]);
}
