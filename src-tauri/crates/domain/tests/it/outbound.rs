//! The model's view and the gate before it is sent.

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::transcript::outbound::{OutboundCall, OutboundMessage};
use holdfast_domain::transcript::record::{
    AssistantMessage, CallRefused, ProposedCall, SystemPrompt,
};
use holdfast_domain::transcript::view::{PairingError, check_pairing, outbound};

use crate::log::{Log, result};

fn user(text: &str) -> OutboundMessage {
    OutboundMessage::User {
        text: text.to_owned(),
    }
}

fn says(ids: &[&str]) -> OutboundMessage {
    OutboundMessage::Assistant {
        text: String::new(),
        reasoning: None,
        calls: ids
            .iter()
            .map(|id| OutboundCall {
                id: (*id).to_owned(),
                name: "shell".to_owned(),
                arguments: "{}".to_owned(),
            })
            .collect(),
    }
}

fn tool(id: &str) -> OutboundMessage {
    OutboundMessage::Tool {
        call_id: id.to_owned(),
        name: "shell".to_owned(),
        text: "done".to_owned(),
    }
}

#[test]
fn tr_43_the_gate_wants_one_result_for_each_call_adjacent_and_in_order() {
    let missing = |id: &str| Err(PairingError::Missing(id.to_owned()));
    let misplaced = |id: &str| Err(PairingError::Misplaced(id.to_owned()));
    for (messages, verdict) in [
        (vec![], Ok(())),
        (vec![user("a"), says(&[]), user("b")], Ok(())),
        (
            vec![user("a"), says(&["1", "2"]), tool("1"), tool("2")],
            Ok(()),
        ),
        (
            vec![says(&["1"]), tool("1"), says(&["2"]), tool("2"), user("b")],
            Ok(()),
        ),
        (vec![says(&["1"])], missing("1")),
        (vec![says(&["1", "2"]), tool("1")], missing("2")),
        (vec![says(&["1"]), user("b"), tool("1")], missing("1")),
        (vec![says(&["1"]), says(&[]), tool("1")], missing("1")),
        (
            vec![says(&["1", "2"]), tool("2"), tool("1")],
            misplaced("2"),
        ),
        (vec![says(&["1"]), tool("1"), tool("1")], misplaced("1")),
        (vec![tool("1")], misplaced("1")),
        (vec![says(&["1"]), tool("x")], misplaced("x")),
    ] {
        let before = messages.clone();
        assert_eq!(check_pairing(&messages), verdict, "{messages:?}");
        assert_eq!(messages, before);
    }
}

#[test]
fn tr_44_a_refused_call_goes_out_with_empty_arguments_and_its_own_stay() {
    let texts = [
        ("c1", "{\"a\":1,\"a\":2}", "{}"),
        ("c2", "{\"a\":12345678901234567890123}", "{}"),
        ("c3", "not json", "{}"),
        ("c4", "[1]", "{}"),
        ("c5", "", "{}"),
        ("c6", "{\"a\":\"\\ud800\"}", "{}"),
        // A healthy call keeps its bytes, blanks and order included.
        (
            "c7",
            "{ \"b\" :1.0,\n\"a\":\"\\u0041\" }",
            "{ \"b\" :1.0,\n\"a\":\"\\u0041\" }",
        ),
    ];
    let mut log = Log::new();
    log.turn("t1").add(AssistantMessage {
        turn_id: "t1".to_owned(),
        step: 1,
        calls: texts
            .iter()
            .map(|(id, raw, _)| ProposedCall {
                call_id: (*id).to_owned(),
                name: "shell".to_owned(),
                arguments: (*raw).to_owned(),
                ..ProposedCall::default()
            })
            .collect(),
        ..AssistantMessage::default()
    });
    for (id, _, _) in texts {
        log.add(CallRefused {
            turn_id: "t1".to_owned(),
            call_id: id.to_owned(),
            code: "arguments_invalid".to_owned(),
            text: format!("error of {id}"),
        });
    }
    let messages = outbound(&log.session);
    assert_eq!(check_pairing(&messages), Ok(()));
    let OutboundMessage::Assistant { calls, .. } = &messages[1] else {
        panic!("{messages:?}")
    };
    for (call, (id, raw, sent)) in calls.iter().zip(texts) {
        assert_eq!(call.arguments, sent);
        assert_eq!(log.session.call(id).unwrap().proposed.arguments, raw);
    }
    assert_eq!(
        messages[2],
        OutboundMessage::Tool {
            call_id: "c1".to_owned(),
            name: "shell".to_owned(),
            text: "error of c1".to_owned(),
        }
    );
}

#[test]
fn tr_15_results_follow_in_the_calls_order_whatever_came_first() {
    let mut log = Log::new();
    log.add(SystemPrompt {
        text: "be careful".to_owned(),
    })
    .turn("t1")
    .says("t1", 1, &[("c1", "read_file"), ("c2", "read_file")]);
    for id in ["c2", "c1"] {
        let attempt = format!("a-{id}");
        log.receipt(&attempt, id, "read_file")
            .start(&attempt)
            .add(result(&attempt, AttemptState::Completed, id));
    }
    let messages = outbound(&log.session);
    assert_eq!(check_pairing(&messages), Ok(()));
    let order: Vec<_> = messages
        .iter()
        .map(|message| match message {
            OutboundMessage::System { .. } => "system",
            OutboundMessage::User { .. } => "user",
            OutboundMessage::Assistant { .. } => "assistant",
            OutboundMessage::Tool { text, .. } => text,
        })
        .collect();
    assert_eq!(order, ["system", "user", "assistant", "c1", "c2"]);
}

#[test]
fn c20_a_partial_answer_is_kept_and_marked_and_an_empty_one_left_out() {
    let mut log = Log::new();
    log.turn("t1").add(AssistantMessage {
        turn_id: "t1".to_owned(),
        step: 1,
        text: "half an ans".to_owned(),
        partial: true,
        ..AssistantMessage::default()
    });
    log.end("t1", "cancelled").turn("t2").add(AssistantMessage {
        turn_id: "t2".to_owned(),
        step: 1,
        reasoning: "only a thought".to_owned(),
        partial: true,
        ..AssistantMessage::default()
    });
    let messages = outbound(&log.session);
    assert_eq!(messages.len(), 3);
    let OutboundMessage::Assistant { text, .. } = &messages[1] else {
        panic!("{messages:?}")
    };
    assert!(text.starts_with("half an ans") && text.contains("cut short"));
}

#[test]
fn c29_reasoning_is_replayed_with_calls() {
    for calls in [vec![], vec![("c1", "shell")]] {
        let mut log = Log::new();
        log.turn("t1").says("t1", 1, &calls);
        let message = AssistantMessage {
            turn_id: "t1".to_owned(),
            step: 2,
            text: "text".to_owned(),
            reasoning: "because".to_owned(),
            calls: calls
                .iter()
                .map(|_| ProposedCall {
                    call_id: "c2".to_owned(),
                    name: "shell".to_owned(),
                    arguments: "{}".to_owned(),
                    ..ProposedCall::default()
                })
                .collect(),
            ..AssistantMessage::default()
        };
        log.add(message);
        let Some(OutboundMessage::Assistant { reasoning, .. }) =
            outbound(&log.session).into_iter().next_back()
        else {
            panic!("no message")
        };
        let right = (!calls.is_empty()).then(|| "because".to_owned());
        assert_eq!(reasoning, right);
    }
}
