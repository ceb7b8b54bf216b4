//! Frames of the event stream, as clients read them.

use holdfast_api::event::{Event, Frame};
use holdfast_domain::runtime::snapshot::{Commits, Sample};
use serde_json::json;

#[test]
fn a_frame_is_flat_with_its_kind() {
    let frame = Frame {
        session_id: "s".to_owned(),
        turn_id: "t".to_owned(),
        seq: None,
        event: Event::Text {
            text: "hi".to_owned(),
        },
    };
    let value = serde_json::to_value(&frame).unwrap();
    assert_eq!(
        value,
        json!({"sessionId": "s", "turnId": "t", "kind": "text", "text": "hi"})
    );
    assert_eq!(serde_json::from_value::<Frame>(value).unwrap(), frame);
}

#[test]
fn rs_28_a_state_frame_names_its_session_and_whether_it_is_current() {
    let commits = Commits::new(
        "e".repeat(32),
        "session-id:s".to_owned(),
        &Sample::default(),
    );
    let frame = Frame {
        session_id: "s".to_owned(),
        turn_id: String::new(),
        seq: None,
        event: Event::RuntimeState {
            session_path: "session-id:s".to_owned(),
            session_current: true,
            runtime_state: commits.current().clone(),
        },
    };
    let value = serde_json::to_value(&frame).unwrap();
    assert_eq!(value["kind"], "runtime_state");
    assert_eq!(value["sessionPath"], "session-id:s");
    assert_eq!(value["sessionCurrent"], true);
    assert_eq!(value["runtimeState"]["schemaVersion"], 1);
    assert_eq!(value["runtimeState"]["phase"], "idle");
}
