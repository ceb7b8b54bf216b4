//! A provider that fails: bounded, visible, with a code; and the session goes on.

use holdfast_testkit::model_server::{Endless, Fault, Step};
use holdfast_testkit::wait::SOON;
use serde_json::{Value, json};

use super::scene::{Plan, Scene, eventually, shell};

/// Attempts that the host makes of one request.
const ATTEMPTS: usize = 4;

async fn quick() -> Scene {
    Scene::of(Plan {
        provider: "idle_timeout_s = 1".to_owned(),
        ..Plan::default()
    })
    .await
}

/// Each of these replies answers one request; the turn fails with that code, and the session works.
async fn fails(steps: Vec<Step>, code: &str) -> Vec<holdfast_testkit::Frame> {
    let scene = quick().await;
    let events = scene.client.events(&scene.path("/events"), None).await;
    let expected = steps.len();
    for step in steps {
        scene.model.push(step);
    }
    let turn = scene.submit("go").await;
    // An endless reply is many frames; looking through them while they come would slow it down.
    let status = scene.ended_within(&turn, SOON * 9).await;
    let done = events
        .wait_for_frame("the end", SOON, |frame| frame.kind() == "turn_done")
        .await;
    assert_eq!(done.data["status"], "failed", "{:?}", done.data);
    assert_eq!(done.data["code"], code, "{:?}", done.data);
    assert!(!done.data["message"].as_str().unwrap().is_empty());
    assert_eq!(status["runtimeState"]["turnStatus"], "failed");
    assert_eq!(status["runtimeState"]["outcome"], "error");
    assert_eq!(status["lastError"]["code"], code);
    assert_eq!(status["lastError"]["message"], done.data["message"]);
    assert_eq!(scene.model.request_count(), expected);

    scene.model.push(Step::text("well again"));
    scene.turn("go on").await;
    let status = scene.get("/status").await;
    assert_eq!(status["lastError"], Value::Null);
    assert_eq!(scene.items().await.last().unwrap()["text"], "well again");
    events.frames()
}

fn retries(frames: &[holdfast_testkit::Frame]) -> Vec<&str> {
    frames
        .iter()
        .filter(|frame| frame.kind() == "retrying")
        .map(|frame| frame.data["code"].as_str().unwrap())
        .collect()
}

fn every(step: impl Fn() -> Step) -> Vec<Step> {
    std::iter::repeat_with(step).take(ATTEMPTS).collect()
}

#[tokio::test]
async fn a_refused_key_is_told_at_once() {
    let body = r#"{"error":{"message":"invalid key"}}"#;
    let frames = fails(vec![Step::status(401, body)], "provider_auth").await;
    assert_eq!(retries(&frames), Vec::<&str>::new());
}

#[tokio::test]
async fn a_rate_limit_is_tried_again_and_then_told() {
    let body = r#"{"error":{"message":"slow down"}}"#;
    let frames = fails(every(|| Step::status(429, body)), "provider_rate_limited").await;
    assert_eq!(retries(&frames), ["provider_rate_limited"; ATTEMPTS - 1]);
}

#[tokio::test]
async fn an_error_of_the_server_is_tried_again_and_then_told() {
    let frames = fails(every(|| Step::status(500, "{}")), "provider_unavailable").await;
    assert_eq!(retries(&frames), ["provider_unavailable"; ATTEMPTS - 1]);
}

#[tokio::test]
async fn a_refused_request_is_told_at_once() {
    let body = r#"{"error":{"message":"no such model"}}"#;
    fails(vec![Step::status(400, body)], "provider_refused").await;
}

#[tokio::test]
async fn garbage_is_told() {
    fails(vec![Step::fault(Fault::Garbage)], "provider_bad_reply").await;
}

#[tokio::test]
async fn a_web_page_is_told() {
    fails(vec![Step::fault(Fault::Html)], "provider_bad_reply").await;
}

#[tokio::test]
async fn an_empty_reply_is_tried_again_and_then_told() {
    fails(
        every(|| Step::fault(Fault::EmptyBody)),
        "provider_incomplete",
    )
    .await;
}

#[tokio::test]
async fn a_dropped_connection_is_tried_again_and_then_told() {
    fails(
        every(|| Step::fault(Fault::DropAfter(0))),
        "provider_unavailable",
    )
    .await;
}

#[tokio::test]
async fn a_silent_provider_is_given_up() {
    let frames = fails(
        every(|| Step::fault(Fault::StallAfter(0))),
        "provider_stalled",
    )
    .await;
    assert_eq!(retries(&frames), ["provider_stalled"; ATTEMPTS - 1]);
}

#[tokio::test]
async fn a_drop_within_an_answer_keeps_what_came() {
    let scene = quick().await;
    scene
        .model
        .push(Step::chunks(&["some of it", "never"]).with_fault(Fault::DropAfter(1)));
    let turn = scene.submit("go").await;
    let status = scene.ended(&turn).await;
    assert_eq!(
        status["lastError"]["code"], "provider_unavailable",
        "{status}"
    );
    let items = scene.items().await;
    assert_eq!(items.last().unwrap()["text"], "some of it");
    assert_eq!(items.last().unwrap()["partial"], true);
}

#[tokio::test]
async fn c28_a_502_and_then_endless_text_ends_in_a_bounded_failure() {
    let steps = vec![
        Step::status(502, "bad gateway"),
        Step::fault(Fault::Endless(Endless::Text)),
    ];
    let frames = fails(steps, "provider_bad_reply").await;
    assert_eq!(retries(&frames), ["provider_unavailable"]);
}

#[tokio::test]
async fn c28_a_502_and_then_a_line_without_end_is_bounded() {
    let steps = vec![
        Step::status(502, "bad gateway"),
        Step::fault(Fault::Endless(Endless::Line)),
    ];
    let frames = fails(steps, "provider_bad_reply").await;
    assert_eq!(retries(&frames), ["provider_unavailable"]);
}

#[tokio::test]
async fn c28_a_502_and_then_comments_for_ever_is_bounded() {
    let comments = || Step::fault(Fault::Endless(Endless::Comments)).with_gap_ms(50);
    let mut steps = vec![Step::status(502, "bad gateway")];
    steps.extend(std::iter::repeat_with(comments).take(ATTEMPTS - 1));
    let frames = fails(steps, "provider_stalled").await;
    assert_eq!(
        retries(&frames),
        [
            "provider_unavailable",
            "provider_stalled",
            "provider_stalled"
        ]
    );
}

/// Answers 400 to a tool call without its reasoning, as some providers do.
fn wants_reasoning_back(request: &Value, step: Step) -> Step {
    let calls = request["messages"].as_array().unwrap().iter();
    let bare = calls
        .filter(|message| message["tool_calls"].is_array())
        .any(|message| {
            message["reasoning_content"]
                .as_str()
                .is_none_or(str::is_empty)
        });
    if bare {
        return Step::status(
            400,
            r#"{"error":{"message":"reasoning_content is missing"}}"#,
        );
    }
    step
}

#[tokio::test]
async fn c29_reasoning_goes_back_with_an_interrupted_call() {
    let scene = Scene::new("full").await;
    let call = shell("s", "echo x >> f; sleep 600").with_reasoning("I should append a line");
    scene.model.push(call);
    let turn = scene.submit("append").await;
    eventually("the effect", SOON, async || {
        scene.file("f").exists().then_some(())
    })
    .await;
    let (status, _) = scene.post("/cancel", json!({ "turnId": turn })).await;
    assert_eq!(status, 202);
    scene.ended(&turn).await;
    scene
        .model
        .push_fn(|request| wants_reasoning_back(request, Step::text("it was stopped")));
    scene.turn("what happened?").await;
    let second = scene.model.requests().pop().unwrap();
    let calling = super::scene::messages(&second)
        .into_iter()
        .find(|message| message["tool_calls"].is_array())
        .unwrap();
    assert_eq!(calling["reasoning_content"], "I should append a line");
    assert_eq!(scene.read("f"), "x\n", "it ran once");
}
