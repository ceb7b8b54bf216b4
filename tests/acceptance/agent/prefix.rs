//! A later model request begins with an earlier one's bytes, whatever happened in between.

use holdfast_testkit::model_server::{Call, RecordedRequest, Step};
use holdfast_testkit::wait::SOON;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::scene::{Scene, eventually, shell};

/// The messages of a request, each as its bytes.
fn bytes(request: &RecordedRequest) -> Vec<String> {
    #[derive(Deserialize)]
    struct Body {
        messages: Vec<Box<RawValue>>,
    }
    let body: Body = serde_json::from_slice(&request.body_bytes).unwrap();
    body.messages
        .into_iter()
        .map(|message| message.get().to_owned())
        .collect()
}

/// Up to where the messages begin, and from where they end.
fn frame(request: &RecordedRequest) -> (String, String) {
    let body = String::from_utf8(request.body_bytes.clone()).unwrap();
    let all = bytes(request).join(",");
    let (before, after) = body.split_once(&all).unwrap();
    (before.to_owned(), after.to_owned())
}

#[tokio::test]
async fn requests_grow_by_their_end_alone() {
    let mut scene = Scene::new("ask").await;
    scene.write("a.txt", "a\u{2028}b\n");
    // Turn 1: reads, refusals, odd arguments, reasoning.
    let step = Step::default()
        .with_reasoning("look first")
        .with_call(Call::new("r", "read_file", "{ \"path\" : \"a.txt\" }"))
        .with_call(Call::new("x", "read_file", "{\"path\":"))
        .with_call(Call::new("x", "no_such_tool", "{}"));
    scene.model.push(step);
    scene.model.push(Step::chunks(&["it is ", "😀"]));
    scene.turn("look").await;
    // Turn 2: a denial with words, then an allowed failure.
    scene.model.push(shell("s1", "rm -rf everything"));
    scene.model.push(shell("s2", "echo no; exit 4"));
    scene.model.push(Step::text("so it is"));
    let turn = scene.submit("clean").await;
    let asked = scene.question().await;
    scene
        .approve(&asked, false, "once", Some("never\n\"that\""))
        .await;
    scene.answer(true, "session").await;
    scene.ended(&turn).await;
    // Turn 3: stopped within a command.
    scene.model.push(shell("s3", "touch begun; sleep 600"));
    let turn = scene.submit("wait").await;
    scene.answer(true, "once").await;
    eventually("the command", SOON, async || {
        scene.file("begun").exists().then_some(())
    })
    .await;
    scene.post("/cancel", json!({ "turnId": turn })).await;
    scene.ended(&turn).await;
    // Turn 4: stopped within an answer.
    scene
        .model
        .push(Step::chunks(&["part", "rest"]).held_after("rest", 1));
    let turn = scene.submit("talk").await;
    eventually("a part", SOON, async || {
        let live = scene.get("/transcript/snapshot").await;
        (live["live"]["text"] == "part").then_some(())
    })
    .await;
    scene.post("/cancel", json!({ "turnId": turn })).await;
    scene.ended(&turn).await;
    // Turn 5: a provider that fails; turn 6 after a restart; turn 7 after a kill.
    scene.model.push(Step::status(401, "{}"));
    let turn = scene.submit("fail").await;
    scene.ended(&turn).await;
    scene.restart().await;
    scene
        .model
        .push(Step::call("r2", "list_dir", "{\"path\":\".\"}"));
    scene.model.push(Step::text("back"));
    scene.turn("again").await;
    scene.host.kill9();
    scene.restart_after_death().await;
    scene.model.push(Step::text("and again"));
    scene.turn("once more").await;

    let requests = scene.model.requests();
    assert_eq!(requests.len(), 11);
    let (before, after) = frame(&requests[0]);
    let mut earlier: Vec<String> = Vec::new();
    for (index, request) in requests.iter().enumerate() {
        assert_eq!(
            frame(request),
            (before.clone(), after.clone()),
            "request {index}"
        );
        let now = bytes(request);
        assert!(now.len() > earlier.len(), "request {index}");
        assert_eq!(now[..earlier.len()], earlier, "request {index}");
        earlier = now;
    }
}
