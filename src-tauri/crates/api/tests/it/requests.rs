//! Requests: exact fields, and no default where a default would decide for a person.

use holdfast_api::session::{Approve, Cancel, CreateSession, PatchSession, Submit};
use holdfast_domain::recovery::admission::{Action, ActionRequest};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn accepts<T: DeserializeOwned>(body: Value) -> bool {
    serde_json::from_value::<T>(body).is_ok()
}

#[test]
fn an_answer_without_allow_is_no_answer() {
    assert!(accepts::<Approve>(
        json!({"id": "p", "generation": 1, "allow": false})
    ));
    assert!(!accepts::<Approve>(json!({"id": "p", "generation": 1})));
    assert!(!accepts::<Approve>(json!({"id": "p", "allow": true})));
    assert!(!accepts::<Approve>(
        json!({"id": "p", "generation": 1, "allow": "yes"})
    ));
}

#[test]
fn tr_29_unknown_fields_and_actions_are_refused() {
    let good = json!({
        "sessionPath": "session-id:0", "runtimeEpoch": "e", "revision": "r",
        "attemptId": "a", "inspectionId": "", "action": "dismiss",
    });
    let request: ActionRequest = serde_json::from_value(good.clone()).unwrap();
    assert_eq!(request.action, Action::Dismiss);
    let mut extra = good.clone();
    extra["force"] = json!(true);
    assert!(!accepts::<ActionRequest>(extra));
    let mut other = good.clone();
    other["action"] = json!("undo");
    assert!(!accepts::<ActionRequest>(other));
    let mut short = good;
    short.as_object_mut().unwrap().remove("attemptId");
    assert!(!accepts::<ActionRequest>(short));
}

#[test]
fn unknown_fields_of_every_request_are_refused() {
    let with = |mut body: Value| {
        body["unknown"] = json!(1);
        body
    };
    assert!(accepts::<Submit>(json!({"input": "x"})));
    assert!(!accepts::<Submit>(with(json!({"input": "x"}))));
    assert!(accepts::<Cancel>(json!({})));
    assert!(!accepts::<Cancel>(with(json!({}))));
    assert!(accepts::<CreateSession>(json!({"workspace": "/w"})));
    assert!(!accepts::<CreateSession>(with(json!({"workspace": "/w"}))));
    assert!(accepts::<PatchSession>(json!({"mode": "full"})));
    assert!(!accepts::<PatchSession>(with(json!({"mode": "full"}))));
}
