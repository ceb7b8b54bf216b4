//! Sound replies, in all the ways in which servers send them.

use std::time::Duration;

use holdfast_provider::{Limits, ModelCall, ModelEvent, ModelReply, Usage};
use holdfast_testkit::Step;
use holdfast_testkit::model_server::{self, Call, Fault};
use holdfast_testkit::wait::SOON;

use crate::setup::{ask, ask_with, limits, raw};

fn call(id: &str, name: &str, arguments: &str) -> ModelCall {
    ModelCall {
        provider_id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

#[tokio::test]
async fn a_reply_streams_and_ends_whole() {
    let step = Step {
        reasoning: vec!["thin".to_owned(), "king".to_owned()],
        text: vec!["hel".to_owned(), "lo 😀".to_owned()],
        usage: Some(model_server::Usage {
            input: 10,
            output: 4,
            cached_input: 8,
            reasoning: 2,
        }),
        ..Step::default()
    };
    for (crlf, comments, without_done, plain_reasoning) in [
        (false, false, false, false),
        (true, true, false, true),
        (true, false, true, false),
        (false, true, true, true),
    ] {
        let outcome = ask(Step {
            crlf,
            comments,
            without_done,
            plain_reasoning,
            ..step.clone()
        })
        .await;
        assert_eq!(
            outcome.events,
            [
                ModelEvent::Reasoning("thin".to_owned()),
                ModelEvent::Reasoning("king".to_owned()),
                ModelEvent::Text("hel".to_owned()),
                ModelEvent::Text("lo 😀".to_owned()),
            ]
        );
        assert_eq!(
            *outcome.reply(),
            ModelReply {
                text: "hello 😀".to_owned(),
                reasoning: "thinking".to_owned(),
                calls: Vec::new(),
                finish_reason: "stop".to_owned(),
                usage: Some(Usage {
                    input: 10,
                    output: 4,
                    cached_input: 8,
                    reasoning: 2,
                }),
                model: "test-model".to_owned(),
            }
        );
    }
}

#[tokio::test]
async fn parallel_calls_arrive_interleaved_and_keep_their_order() {
    let first = r#"{"path": "a b.txt",  "limit":3}"#;
    let second = r#"{"command":"echo \"é😀\"\n"}"#;
    let outcome = ask(Step::text("I look.")
        .with_call(Call::new("id-1", "read_file", first).split(3))
        .with_call(Call::new("id-2", "shell", second).split(5)))
    .await;
    assert_eq!(
        outcome.reply().calls,
        [
            call("id-1", "read_file", first),
            call("id-2", "shell", second)
        ]
    );
    assert_eq!(outcome.reply().finish_reason, "tool_calls");
    let last = outcome.events.last();
    assert_eq!(
        last,
        Some(&ModelEvent::ToolCall {
            index: 0,
            name: "read_file".to_owned(),
            arguments_so_far_len: first.len(),
        })
    );
}

#[tokio::test]
async fn c35_arguments_are_kept_byte_for_byte_whatever_they_are() {
    let deep = "[".repeat(70) + &"]".repeat(70);
    for arguments in [
        r#"{"a":1,"a":2}"#,
        "12345678901234567890123",
        "",
        "{\"a\": ",
        " {\"b\" :\t1.0e0 , \"a\":\"\\ud800\\u0000\"}\n",
        "not json at all \u{2028} \0",
        deep.as_str(),
    ] {
        for size in [1, 1000] {
            let outcome =
                ask(Step::default().with_call(Call::new("x", "shell", arguments).split(size)))
                    .await;
            assert_eq!(outcome.reply().calls, [call("x", "shell", arguments)]);
        }
    }
}

#[tokio::test]
async fn c35_arguments_sent_as_an_object_are_kept_as_written() {
    let chunk = r#"{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"shell","arguments":{"b":1, "a":2 ,"a":3.0}}}]},"finish_reason":"tool_calls"}]}"#;
    let outcome = ask(raw(&[chunk, "[DONE]"])).await;
    let arguments = r#"{"b":1, "a":2 ,"a":3.0}"#;
    assert_eq!(outcome.reply().calls, [call("x", "shell", arguments)]);

    let step = Step::default().with_call(Call {
        as_object: true,
        ..Call::new("y", "shell", r#"{"command":"ls"}"#)
    });
    assert_eq!(
        ask(step).await.reply().calls,
        [call("y", "shell", r#"{"command":"ls"}"#)]
    );
}

#[tokio::test]
async fn c33_repeated_missing_and_empty_ids_are_passed_through() {
    let same = Step::call("same", "shell", "{\"a\":1}").with_call(Call::new("same", "shell", "{}"));
    let outcome = ask(same).await;
    assert_eq!(
        outcome.reply().calls,
        [
            call("same", "shell", "{\"a\":1}"),
            call("same", "shell", "{}")
        ]
    );

    let repeated = Step::default().with_call(Call {
        repeat_id: true,
        ..Call::new("again", "shell", "{\"a\":12345}").split(2)
    });
    assert_eq!(
        ask(repeated).await.reply().calls,
        [call("again", "shell", "{\"a\":12345}")]
    );

    let without = Step::default().with_call(Call {
        id: None,
        ..Call::new("", "shell", "{}")
    });
    assert_eq!(ask(without).await.reply().calls, [call("", "shell", "{}")]);
    let empty = Step::call("", "shell", "{}");
    assert_eq!(ask(empty).await.reply().calls, [call("", "shell", "{}")]);
}

#[tokio::test]
async fn calls_without_or_with_the_same_index_are_told_apart() {
    let part = |index: &str, id: &str, rest: &str| {
        format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{{{index}{id}{rest}}}]}}}}]}}"#)
    };
    let end = r#"{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#;
    let name = r#""function":{"name":"shell","arguments":"{\"a\":"}"#;
    let more = r#""function":{"arguments":"1}"}"#;
    for index in ["", r#""index":0,"#] {
        let events = [
            part(index, r#""id":"p","#, name),
            part(index, "", more),
            part(index, r#""id":"q","#, name),
            part(index, "", more),
            end.to_owned(),
        ];
        let events: Vec<&str> = events.iter().map(String::as_str).collect();
        let outcome = ask(raw(&events)).await;
        assert_eq!(
            outcome.reply().calls,
            [
                call("p", "shell", "{\"a\":1}"),
                call("q", "shell", "{\"a\":1}")
            ],
            "{index}"
        );
    }
}

#[tokio::test]
async fn c11_lone_surrogates_in_text_become_visible_and_the_rest_goes_on() {
    let outcome = ask(raw(&[
        r#"{"choices":[{"delta":{"content":"a\ud800b"}}]}"#,
        r#"{"choices":[{"delta":{"content":"\u2028\u2029 \u0000 \ud83d\ude00"}}]}"#,
        r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"shell","arguments":"x\udfffy"}}]}}]}"#,
        r#"{"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
        "[DONE]",
    ]))
    .await;
    assert_eq!(outcome.reply().text, "a\u{fffd}b\u{2028}\u{2029} \0 😀");
    assert_eq!(outcome.reply().calls, [call("", "shell", "x\u{fffd}y")]);
}

#[tokio::test]
async fn a_server_that_ignores_streaming_is_understood() {
    let step = Step::text("hello")
        .with_reasoning("hm")
        .with_call(Call::new("same", "shell", "{\"a\":"))
        .with_call(Call::new("same", "shell", "{ }"))
        .with_fault(Fault::NonStream);
    let outcome = ask(step).await;
    let reply = outcome.reply();
    assert_eq!(
        (reply.text.as_str(), reply.reasoning.as_str()),
        ("hello", "hm")
    );
    assert_eq!(
        reply.calls,
        [
            call("same", "shell", "{\"a\":"),
            call("same", "shell", "{ }")
        ]
    );
    assert_eq!(outcome.events.len(), 4);
}

#[tokio::test]
async fn a_finish_reason_makes_the_reply_whole_whatever_follows() {
    let whole = r#"{"choices":[{"delta":{"content":"all"},"finish_reason":"length"}]}"#;
    for after in ["%%%", r#"{"error":{"message":"late"}}"#, "{\"usage\":3}"] {
        let outcome = ask(raw(&[whole, after])).await;
        assert_eq!(outcome.reply().text, "all");
        assert_eq!(outcome.reply().finish_reason, "length");
    }
    // Three chunks: text, finish reason, end mark.
    for fault in [Fault::DropAfter(2), Fault::HalfLineAfter(2)] {
        let outcome = ask(Step::text("all").with_fault(fault)).await;
        assert_eq!(outcome.reply().text, "all");
    }
}

#[tokio::test]
async fn a_server_that_leaves_the_connection_open_after_the_end_does_not_hold_the_reply_up() {
    let never = Duration::from_secs(3600);
    let limits = Limits {
        tail: Duration::from_millis(20),
        idle: never,
        silence: never,
        total: never,
        ..limits()
    };
    let step = Step::text("all").with_fault(Fault::StallAfter(2));
    let outcome = tokio::time::timeout(SOON, ask_with(step, limits))
        .await
        .unwrap();
    assert_eq!(outcome.reply().text, "all");
    outcome.server.wait_for_abort(0).await;
}
