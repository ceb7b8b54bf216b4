//! Every way in which a provider is known to fail, and how the stream then ends.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;
use holdfast_provider::{Limits, ModelClient, ModelEvent, ProviderError};
use holdfast_testkit::model_server::{Call, Endless, Fault};
use holdfast_testkit::{ModelServer, Step};
use serde_json::json;

use crate::setup::{KEY, ask, ask_with, client_with, limits, raw, request, user};

fn short(change: impl FnOnce(&mut Limits)) -> Limits {
    let mut limits = limits();
    change(&mut limits);
    limits
}

fn status_with(status: u16, body: &str, header: (&str, &str)) -> Step {
    Step::fault(Fault::Status {
        status,
        body: body.to_owned(),
        headers: BTreeMap::from([(header.0.to_owned(), header.1.to_owned())]),
    })
}

#[tokio::test]
async fn c28_a_502_is_retried_visibly_and_a_body_that_never_ends_is_bounded() {
    let stall = Step::chunks(&["half", "more"]).with_fault(Fault::StallAfter(1));
    let bounds = short(|limits| limits.idle = Duration::from_secs(1));
    let outcome = ask_with(vec![Step::status(502, "bad gateway"), stall], bounds).await;
    assert_eq!(
        outcome.events,
        [
            ModelEvent::Retrying {
                attempt: 1,
                wait_ms: 1,
                code: "provider_unavailable",
                message: outcome_message(&outcome.events[0]),
            },
            ModelEvent::Text("half".to_owned()),
        ]
    );
    assert_eq!(outcome.error().code(), "provider_stalled");
    assert_eq!(outcome.error().partial().unwrap().text, "half");
    outcome.server.wait_for_abort(1).await;
    assert_eq!(outcome.server.request_count(), 2);
}

fn outcome_message(event: &ModelEvent) -> String {
    match event {
        ModelEvent::Retrying { message, .. } => {
            assert!(message.contains("HTTP 502: bad gateway"), "{message}");
            assert!(message.contains("No tool was started"), "{message}");
            message.clone()
        }
        ModelEvent::Text(_)
        | ModelEvent::Reasoning(_)
        | ModelEvent::ToolCall { .. }
        | ModelEvent::Finished(_) => panic!("the first event is the retry"),
    }
}

#[tokio::test]
async fn c28_bodies_that_never_end_are_bounded_in_size_and_in_time() {
    let bounds = short(|limits| limits.reply_bytes = 200_000);
    let outcome = ask_with(Step::fault(Fault::Endless(Endless::Text)), bounds.clone()).await;
    assert_eq!(outcome.error().code(), "provider_bad_reply");
    let partial = outcome.error().partial().unwrap();
    assert!(partial.text.len() > 190_000 && partial.text.len() <= 200_000);
    outcome.server.wait_for_abort(0).await;

    for kind in [Endless::Line, Endless::Json] {
        let outcome = ask_with(Step::fault(Fault::Endless(kind)), bounds.clone()).await;
        assert_eq!(outcome.error().code(), "provider_bad_reply", "{kind:?}");
        outcome.server.wait_for_abort(0).await;
    }

    // Bytes come all the time, but never an event.
    let comments = Step::fault(Fault::Endless(Endless::Comments)).with_gap_ms(5);
    let bounds = short(|limits| {
        limits.silence = Duration::from_millis(400);
        limits.attempts = 1;
    });
    let outcome = ask_with(comments, bounds).await;
    assert_eq!(outcome.error().code(), "provider_stalled");
    outcome.server.wait_for_abort(0).await;

    // Events come all the time, but never an end.
    let drip = Step::fault(Fault::Endless(Endless::Text)).with_gap_ms(5);
    let bounds = short(|limits| limits.total = Duration::from_millis(400));
    let outcome = ask_with(drip, bounds).await;
    assert_eq!(outcome.error().code(), "provider_stalled");
    outcome.server.wait_for_abort(0).await;
}

#[tokio::test]
async fn passing_failures_are_retried_until_the_reply_comes() {
    for (fault, code) in [
        (Step::status(408, ""), "provider_unavailable"),
        (Step::status(409, ""), "provider_unavailable"),
        (Step::status(429, "{}"), "provider_rate_limited"),
        (Step::status(500, ""), "provider_unavailable"),
        (Step::status(529, ""), "provider_unavailable"),
        (Step::fault(Fault::DropAfter(0)), "provider_unavailable"),
        (
            Step::text("x").with_fault(Fault::HalfLineAfter(0)),
            "provider_incomplete",
        ),
        (Step::fault(Fault::EmptyBody), "provider_incomplete"),
        (raw(&["[DONE]"]), "provider_incomplete"),
        (
            Step::default().with_fault(Fault::ErrorAfter(0, json!({ "code": 503 }))),
            "provider_unavailable",
        ),
    ] {
        let outcome = ask(vec![fault.clone(), Step::text("here")]).await;
        assert_eq!(outcome.reply().text, "here", "{fault:?}");
        assert_eq!(outcome.retries(), [code], "{fault:?}");
    }
}

#[tokio::test]
async fn a_stall_before_anything_came_is_retried() {
    let bounds = short(|limits| limits.idle = Duration::from_secs(1));
    let stalls = vec![
        Step::text("x").with_fault(Fault::StallAfter(0)),
        Step::text("here"),
    ];
    let outcome = ask_with(stalls, bounds).await;
    assert_eq!(outcome.reply().text, "here");
    assert_eq!(outcome.retries(), ["provider_stalled"]);
    outcome.server.wait_for_abort(0).await;
}

#[tokio::test]
async fn retries_end_after_the_given_attempts() {
    let outcome = ask(vec![Step::status(503, "busy"); 10]).await;
    assert_eq!(outcome.error().code(), "provider_unavailable");
    assert_eq!(outcome.retries().len(), 3);
    assert_eq!(outcome.server.request_count(), 4);
    let bodies = outcome.server.requests();
    assert!(
        bodies
            .iter()
            .all(|sent| sent.body_bytes == bodies[0].body_bytes)
    );
}

#[tokio::test]
async fn no_connection_is_retried_and_then_unavailable() {
    let server = ModelServer::start(vec![]);
    let client = client_with(&server.url(), limits());
    drop(server);
    let events: Vec<_> = client.stream(request(vec![user("x")])).collect().await;
    assert_eq!(events.len(), 4);
    let error = events[3].as_ref().unwrap_err();
    assert_eq!(error.code(), "provider_unavailable");
    assert!(error.to_string().contains("no connection") || error.to_string().contains("onnect"));
}

#[tokio::test]
async fn lasting_failures_are_not_retried() {
    let quota = r#"{"error":{"message":"You have no credit","code":"insufficient_quota"}}"#;
    let long = ("retry-after", "3600");
    for (step, code, words) in [
        (
            Step::status(401, r#"{"error":{"message":"bad key"}}"#),
            "provider_auth",
            "bad key",
        ),
        (Step::status(403, "no"), "provider_auth", "HTTP 403"),
        (
            Step::status(400, r#"{"error":{"message":"tools are unknown to me"}}"#),
            "provider_refused",
            "HTTP 400: tools are unknown to me",
        ),
        (
            Step::status(402, r#"{"error":"pay"}"#),
            "provider_refused",
            "HTTP 402: pay",
        ),
        (
            Step::status(404, r#"{"detail":"Not Found"}"#),
            "provider_refused",
            "Not Found",
        ),
        (Step::status(422, ""), "provider_refused", "no explanation"),
        (
            Step::status(429, quota),
            "provider_rate_limited",
            "You have no credit",
        ),
        (
            status_with(429, "{}", long),
            "provider_rate_limited",
            "wait 3600 s",
        ),
        (
            status_with(307, "", ("location", "http://127.0.0.1:9/")),
            "provider_bad_reply",
            "redirect",
        ),
        (Step::fault(Fault::Html), "provider_bad_reply", "a web page"),
        (
            Step::fault(Fault::Garbage),
            "provider_bad_reply",
            "not a chunk",
        ),
        (
            Step::text("x").with_fault(Fault::ContentType("text/plain".to_owned())),
            "provider_bad_reply",
            "text/plain",
        ),
        (
            Step::default().with_fault(Fault::ErrorAfter(0, json!({ "message": "policy" }))),
            "provider_refused",
            "policy",
        ),
        (
            Step::fault(Fault::events(b"data: \xff\n\n".to_vec())),
            "provider_bad_reply",
            "UTF-8",
        ),
    ] {
        let outcome = ask(step.clone()).await;
        let message = outcome.error().to_string();
        assert_eq!(outcome.error().code(), code, "{step:?}");
        assert!(message.contains(words), "{message}");
        assert!(message.contains("No tool was started"), "{message}");
        assert_eq!(outcome.retries(), Vec::<&str>::new(), "{step:?}");
        assert_eq!(outcome.server.request_count(), 1);
    }
}

#[tokio::test]
async fn retry_after_sets_the_wait() {
    let asked = status_with(429, "{}", ("retry-after", "1"));
    let server = ModelServer::start(asked);
    let client = client_with(&server.url(), limits());
    let mut stream = client.stream(request(vec![user("x")]));
    let first = stream.next().await.unwrap().unwrap();
    let ModelEvent::Retrying { wait_ms, .. } = first else {
        panic!("{first:?}");
    };
    assert_eq!(wait_ms, 1000);
    // Stop during the wait: nothing more is sent.
    drop(stream);
    assert_eq!(server.request_count(), 1);
}

#[tokio::test]
async fn after_something_was_delivered_a_failure_keeps_it_and_is_not_retried() {
    let calls = Step::text("look")
        .with_reasoning("hm")
        .with_call(Call::new("id", "shell", r#"{"command":"rm"}"#).split(4));
    for (fault, code) in [
        (Fault::DropAfter(4), "provider_unavailable"),
        (Fault::HalfLineAfter(4), "provider_incomplete"),
        (
            Fault::ErrorAfter(4, json!({ "type": "overloaded_error", "message": "x" })),
            "provider_unavailable",
        ),
    ] {
        let outcome = ask(calls.clone().with_fault(fault.clone())).await;
        assert_eq!(outcome.error().code(), code, "{fault:?}");
        assert_eq!(outcome.retries(), Vec::<&str>::new());
        assert!(matches!(outcome.error(), ProviderError::Interrupted { .. }));
        let partial = outcome.error().partial().unwrap();
        assert_eq!(
            (partial.text.as_str(), partial.reasoning.as_str()),
            ("look", "hm")
        );
        assert_eq!(partial.calls[0].arguments, r#"{"comman"#);
        assert_eq!(partial.finish_reason, "");
        assert_eq!(outcome.server.request_count(), 1);
    }
    for end in [true, false] {
        let outcome = ask(Step {
            without_finish: true,
            without_done: end,
            ..Step::text("look")
        })
        .await;
        assert_eq!(outcome.error().code(), "provider_incomplete");
        assert_eq!(outcome.error().partial().unwrap().text, "look");
    }
}

#[tokio::test]
async fn a_key_that_the_provider_quotes_back_is_not_shown() {
    let quoting = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}"}}}}"#);
    // `ask` looks at every message for the key.
    for step in [
        Step::status(401, &quoting),
        Step::status(400, &quoting),
        Step::default().with_fault(Fault::ErrorAfter(0, json!({ "message": KEY }))),
        Step::text(KEY).with_fault(Fault::ContentType("text/plain".to_owned())),
    ] {
        let outcome = ask(step).await;
        assert!(outcome.error().to_string().contains("[key]"));
    }
}

#[tokio::test]
async fn a_providers_words_are_bounded() {
    let long = json!({ "error": { "message": "x".repeat(100_000) } }).to_string();
    let outcome = ask(Step::status(400, &long)).await;
    assert!(outcome.error().to_string().len() < 1000);
}

#[tokio::test]
async fn too_many_calls_are_a_bad_reply() {
    let mut step = Step::default();
    for index in 0..5 {
        step = step.with_call(Call::new(&index.to_string(), "shell", "{}"));
    }
    let outcome = ask_with(step, short(|limits| limits.calls = 4)).await;
    assert_eq!(outcome.error().code(), "provider_bad_reply");
    assert_eq!(outcome.error().partial().unwrap().calls.len(), 4);
}

#[tokio::test]
async fn c19_dropping_the_stream_closes_the_socket_even_when_nothing_streams() {
    let server = ModelServer::start(vec![
        Step::text("never").held("gate"),
        Step::chunks(&["a", "b"]).held_after("gate", 1),
        Step::text("next"),
    ]);
    let client = client_with(&server.url(), limits());

    let mut stream = client.stream(request(vec![user("x")]));
    let pending = tokio::select! {
        _ = stream.next() => false,
        _ = server.wait_for_requests(1) => true,
    };
    assert!(pending, "nothing streams before the gate");
    drop(stream);
    server.wait_for_abort(0).await;

    let mut stream = client.stream(request(vec![user("x")]));
    let first = stream.next().await.unwrap().unwrap();
    assert_eq!(first, ModelEvent::Text("a".to_owned()));
    drop(stream);
    server.wait_for_abort(1).await;

    // The client is not harmed: the next request goes out at once.
    let events: Vec<_> = client.stream(request(vec![user("x")])).collect().await;
    assert!(matches!(events.last(), Some(Ok(ModelEvent::Finished(reply))) if reply.text == "next"));
    assert!(server.requests()[2].answered);
}

#[tokio::test]
async fn nothing_is_sent_before_the_stream_is_polled() {
    let server = ModelServer::start(vec![]);
    let client = client_with(&server.url(), limits());
    let idle = client.stream(request(vec![user("x")]));
    let events: Vec<_> = client.stream(request(vec![user("y")])).collect().await;
    assert!(events.last().unwrap().is_ok());
    drop(idle);
    assert_eq!(server.request_count(), 1);
    assert_eq!(server.requests()[0].json["messages"][0]["content"], "y");
}
