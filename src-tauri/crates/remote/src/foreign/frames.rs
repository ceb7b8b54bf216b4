//! The frames of such a host. They have no ids, and their `seq` counts anew in each process, so they
//! can't be held against a snapshot of the transcript.
//!
//! Guarantee: what is passed on says the same however often it is applied; everything else only has
//! the transcript read anew.

use holdfast_api::event::{Event, Frame};
use holdfast_api::session::session_path;
use serde_json::Value;

use super::waiting::prompt_id;

/// What is worth passing on as it is.
pub(crate) fn frame(data: &Value) -> Option<Frame> {
    let text = |member: &str| data[member].as_str().unwrap_or_default().to_owned();
    let (session_id, turn_id) = (text("sessionId"), text("turnId"));
    if session_id.is_empty() {
        return None;
    }
    let event = match data["kind"].as_str()? {
        "turn_started" => Event::TurnStarted {
            continuation: false,
        },
        "turn_done" => {
            let status = text("status");
            let known = ["completed", "failed", "cancelled", "interrupted"];
            known.contains(&status.as_str()).then_some(())?;
            Event::TurnDone {
                status,
                code: String::new(),
                message: text("err"),
            }
        }
        // Which answer it was is told by a note of the transcript.
        "prompt_answered" => Event::PromptAnswered {
            prompt_id: prompt_id(&turn_id, data["promptId"].as_str()?),
            allow: false,
        },
        "session_changed" => Event::SessionChanged {
            session_path: session_path(&session_id),
        },
        _ => return None,
    };
    Some(Frame {
        session_id,
        turn_id,
        seq: None,
        event,
    })
}

/// Another session is the current one now.
pub(crate) fn changes_sessions(data: &Value) -> bool {
    data["kind"] == "session_changed"
}

/// It may change what is shown. What is not known does.
pub(crate) fn is_shown(data: &Value) -> bool {
    let quiet = ["runtime_state", "usage", "turn_phase", "turn_status"];
    data["kind"]
        .as_str()
        .is_some_and(|kind| !quiet.contains(&kind))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(kind: &str) -> Value {
        json!({ "kind": kind, "sessionId": "s1", "turnId": "turn_1", "seq": 7, "text": "part" })
    }

    #[test]
    fn rs_29_frames_without_numbers_add_nothing_by_themselves() {
        for kind in [
            "text",
            "reasoning",
            "message",
            "tool_dispatch",
            "tool_result",
            "user_message",
        ] {
            assert_eq!(frame(&told(kind)), None, "{kind}");
            assert!(is_shown(&told(kind)), "{kind}");
        }
        assert!(!is_shown(&told("usage")));
        assert!(is_shown(&told("of a later version")));
    }

    #[test]
    fn rs_34_the_end_of_a_turn_and_of_a_question_are_passed_on_without_a_place() {
        let mut done = told("turn_done");
        done["status"] = json!("interrupted");
        let passed = frame(&done).unwrap();
        assert_eq!((passed.turn_id.as_str(), passed.seq), ("turn_1", None));
        assert!(
            matches!(passed.event, Event::TurnDone { ref status, .. } if status == "interrupted")
        );
        done["status"] = json!("of a later version");
        assert_eq!(frame(&done), None);
        let mut answered = told("prompt_answered");
        answered["promptId"] = json!("3");
        let event = frame(&answered).unwrap().event;
        assert!(
            matches!(event, Event::PromptAnswered { ref prompt_id, .. } if prompt_id == "turn_1/3")
        );
    }
}
