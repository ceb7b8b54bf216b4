//! The event stream: what it carries, how it resumes, and whom it tells what.

use std::collections::BTreeSet;

use holdfast_testkit::Frame;
use holdfast_testkit::model_server::Step;
use holdfast_testkit::wait::SOON;
use serde_json::{Value, json};

use crate::agent::scene::{Scene, eventually, shell};

/// Frames that tell of a record carry its place in the log.
const OF_RECORDS: [&str; 7] = [
    "turn_started",
    "message",
    "tool_dispatch",
    "tool_started",
    "tool_result",
    "approval_request",
    "turn_done",
];

fn of_session(frames: &[Frame]) -> Vec<&Frame> {
    frames
        .iter()
        .filter(|frame| frame.kind() != "runtime_state")
        .collect()
}

fn is_end(frame: &Frame) -> bool {
    frame.kind() == "turn_done"
}

#[tokio::test]
async fn each_kind_of_frame_comes_with_its_members() {
    let scene = Scene::new("ask").await;
    let events = scene.client.events(&scene.path("/events"), None).await;
    let step = Step {
        text: vec!["I will ".to_owned(), "run it".to_owned()],
        usage: Some(holdfast_testkit::model_server::Usage {
            input: 5,
            output: 7,
            cached_input: 0,
            reasoning: 0,
        }),
        ..shell("s", "echo out").with_reasoning("hm")
    };
    scene.model.push(step);
    scene.model.push(Step::status(502, "{}"));
    scene.model.push(Step::text("done"));
    let turn = scene.submit("go").await;
    scene.answer(true, "once").await;
    events.wait_for_frame("the end", SOON, is_end).await;
    let state_ends = |frame: &Frame| {
        frame.kind() == "runtime_state" && frame.data["runtimeState"]["turnStatus"] == "completed"
    };
    events
        .wait_for_frame("the last state", SOON, state_ends)
        .await;
    let frames = events.frames();
    let kinds: BTreeSet<&str> = frames.iter().map(Frame::kind).collect();
    let expected = [
        "turn_started",
        "text",
        "reasoning",
        "message",
        "usage",
        "tool_dispatch",
        "tool_started",
        "tool_progress",
        "tool_result",
        "approval_request",
        "prompt_answered",
        "retrying",
        "turn_done",
        "runtime_state",
    ];
    assert_eq!(kinds, BTreeSet::from(expected));
    let log = scene.log();
    let mut last = 0;
    for frame in &frames {
        assert_eq!(frame.data["sessionId"], scene.session.as_str(), "{frame:?}");
        assert!(frame.data["turnId"].is_string(), "{frame:?}");
        let seq = frame.data["seq"].as_u64();
        if OF_RECORDS.contains(&frame.kind()) {
            let seq = seq.unwrap_or_else(|| panic!("no seq: {frame:?}"));
            assert!(
                seq >= last && seq <= log.len() as u64,
                "{frame:?} after {last}"
            );
            last = seq;
        } else {
            assert_eq!(seq, None, "{frame:?}");
        }
        assert_eq!(
            frame.id.is_empty(),
            frame.kind() == "runtime_state",
            "{frame:?}"
        );
    }
    let numbers: Vec<u64> = of_session(&frames)
        .iter()
        .map(|frame| frame.id.split_once('.').unwrap().1.parse().unwrap())
        .collect();
    assert!(numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");

    let first = |kind: &str| frames.iter().find(|frame| frame.kind() == kind).unwrap();
    let position = |kind: &str| {
        frames
            .iter()
            .position(|frame| frame.kind() == kind)
            .unwrap()
    };
    assert_eq!(first("turn_started").data["turnId"], turn.as_str());
    assert_eq!(first("reasoning").data["text"], "hm");
    let text: String = frames
        .iter()
        .filter(|frame| frame.kind() == "text")
        .map(|frame| frame.data["text"].as_str().unwrap())
        .collect();
    assert_eq!(text, "I will run itdone");
    assert_eq!(first("tool_dispatch").data["tool"]["state"], "proposed");
    assert_eq!(first("tool_started").data["tool"]["state"], "in_flight");
    assert_eq!(first("tool_progress").data["text"], "out\n");
    let result = frames
        .iter()
        .rfind(|frame| frame.kind() == "tool_result")
        .unwrap();
    assert_eq!(result.data["tool"]["state"], "completed");
    assert_eq!(result.data["tool"]["exitCode"], 0);
    assert!(result.data["tool"]["durationMs"].is_u64());
    assert_eq!(first("usage").data["usage"]["output"], 7);
    assert_eq!(first("prompt_answered").data["allow"], true);
    assert_eq!(first("retrying").data["code"], "provider_unavailable");
    assert_eq!(first("turn_done").data["status"], "completed");
    assert!(position("approval_request") < position("tool_started"));
    assert!(position("tool_started") < position("turn_done"));
}

#[tokio::test]
async fn rs_29_a_stream_goes_on_where_it_was_cut() {
    let scene = Scene::new("full").await;
    let whole = scene.client.events(&scene.path("/events"), None).await;
    let cut = scene.client.events(&scene.path("/events"), None).await;
    let words: Vec<String> = (0..40).map(|n| format!("w{n} ")).collect();
    let step = Step {
        text: words.clone(),
        ..Step::default()
    };
    scene.model.push(step.held_after("rest", 10));
    let turn = scene.submit("go").await;
    cut.wait_for_frame("a word", SOON, |frame| frame.data["text"] == "w5 ")
        .await;
    let before: Vec<Frame> = cut.frames();
    drop(cut);
    scene.model.release("rest");
    scene.ended(&turn).await;
    let before: Vec<Frame> = of_session(&before).into_iter().cloned().collect();
    let last = before.last().unwrap().id.clone();
    let resumed = scene
        .client
        .events(&scene.path("/events"), Some(&last))
        .await;
    resumed.wait_for_frame("the end", SOON, is_end).await;
    whole.wait_for_frame("the end", SOON, is_end).await;
    let (resumed, whole) = (resumed.frames(), whole.frames());
    assert!(resumed.iter().all(|frame| frame.kind() != "gap"));
    let joined: Vec<&Frame> = before.iter().chain(of_session(&resumed)).collect();
    assert_eq!(joined, of_session(&whole), "nothing lost, nothing twice");
    // The state is told anew, once.
    let states: Vec<&Frame> = resumed
        .iter()
        .filter(|frame| frame.kind() == "runtime_state")
        .collect();
    assert_eq!(states.len(), 1);
    assert_eq!(states[0].data["runtimeState"]["turnStatus"], "completed");
}

#[tokio::test]
async fn rs_29_another_epoch_is_a_gap_and_the_present_state() {
    let scene = Scene::new("full").await;
    scene.model.push(Step::text("done"));
    scene.turn("go").await;
    for id in [
        format!("{}.3", "0".repeat(32)),
        "nonsense".to_owned(),
        format!(
            "{}.99999999",
            scene.get("/status").await["runtimeState"]["runtimeEpoch"]
        ),
    ] {
        let events = scene.client.events(&scene.path("/events"), Some(&id)).await;
        let frames = events
            .wait_for("two frames", SOON, |frames| {
                (frames.len() >= 2).then(|| frames.to_vec())
            })
            .await;
        assert_eq!(frames[0].kind(), "gap", "{id}");
        assert!(!frames[0].id.is_empty(), "a gap can be resumed from");
        assert_eq!(frames[1].kind(), "runtime_state", "{id}");
        assert_eq!(frames[1].data["runtimeState"]["turnStatus"], "completed");
    }
}

#[tokio::test]
async fn rs_28_a_reader_gets_the_sessions_that_it_asked_for() {
    let scene = Scene::new("full").await;
    let second = scene.client.post_ok("/sessions", &json!({})).await;
    let second = second["sessionId"].as_str().unwrap().to_owned();
    let current = scene.client.events("/events", None).await;
    let own = scene.client.events(&scene.path("/events"), None).await;
    let all = scene.client.events("/events?all=1", None).await;
    scene.model.push(Step::text("in the background"));
    scene.turn("first").await;
    scene.model.push(Step::text("in front"));
    let submit = json!({ "input": "second" });
    let path = format!("/submit?session={second}");
    scene.client.post_ok(&path, &submit).await;
    let of = |id: String| move |frame: &Frame| is_end(frame) && frame.data["sessionId"] == id;
    current
        .wait_for_frame("its end", SOON, of(second.clone()))
        .await;
    all.wait_for_frame("its end", SOON, of(second.clone()))
        .await;
    own.wait_for_frame("its end", SOON, of(scene.session.clone()))
        .await;
    let sessions = |frames: Vec<Frame>| -> BTreeSet<String> {
        frames
            .iter()
            .map(|frame| frame.data["sessionId"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(sessions(current.frames()), BTreeSet::from([second.clone()]));
    assert_eq!(
        sessions(own.frames()),
        BTreeSet::from([scene.session.clone()])
    );
    let both = BTreeSet::from([second.clone(), scene.session.clone()]);
    assert_eq!(sessions(all.frames()), both);
    for frame in all.frames() {
        if frame.kind() == "runtime_state" {
            let is_current = frame.data["sessionId"] == second.as_str();
            assert_eq!(frame.data["sessionCurrent"], is_current, "{frame:?}");
            let path = format!("session-id:{}", frame.data["sessionId"].as_str().unwrap());
            assert_eq!(frame.data["sessionPath"], path.as_str());
        }
    }
}

#[tokio::test]
async fn rs_28_a_session_is_established_before_its_state() {
    let scene = Scene::new("full").await;
    let second = scene.client.post_ok("/sessions", &json!({})).await;
    let second = second["sessionId"].as_str().unwrap().to_owned();
    let events = scene.client.events("/events", None).await;
    let all = scene.client.events("/events?all=1", None).await;
    let path = |id: &str| format!("session-id:{id}");
    for id in [&scene.session, &second, &scene.session] {
        scene
            .client
            .post_ok("/resume", &json!({ "sessionId": id }))
            .await;
    }
    let third = scene.client.post_ok("/sessions", &json!({})).await;
    let third = third["sessionId"].as_str().unwrap().to_owned();
    for reader in [&events, &all] {
        reader
            .wait_for_frame("the third one's state", SOON, |frame| {
                frame.kind() == "runtime_state"
                    && frame.data["sessionId"] == third.as_str()
                    && frame.data["sessionCurrent"] == true
            })
            .await;
    }
    // Whoever reads the current session sees each change before a state of the new one.
    let mut established = path(&second);
    for frame in events.frames() {
        if frame.kind() == "session_changed" {
            established = frame.data["sessionPath"].as_str().unwrap().to_owned();
        } else if frame.kind() == "runtime_state" {
            assert_eq!(frame.data["sessionPath"], established.as_str(), "{frame:?}");
            assert_eq!(frame.data["sessionCurrent"], true);
        }
    }
    assert_eq!(established, path(&third));
    let mut established = path(&second);
    for frame in all.frames() {
        if frame.kind() == "session_changed" {
            established = frame.data["sessionPath"].as_str().unwrap().to_owned();
        } else if frame.kind() == "runtime_state" && frame.data["sessionCurrent"] == true {
            assert_eq!(frame.data["sessionPath"], established.as_str(), "{frame:?}");
        }
    }
    let changes = events
        .frames()
        .iter()
        .filter(|frame| frame.kind() == "session_changed")
        .count();
    assert_eq!(changes, 4);
}

#[tokio::test]
async fn a_snapshot_and_the_frames_behind_it_are_the_whole_text() {
    let scene = Scene::new("full").await;
    let words: Vec<String> = (0..60).map(|n| format!("{n},")).collect();
    let step = Step {
        text: words.clone(),
        gap_ms: 1,
        ..Step::default()
    };
    scene
        .model
        .push(step.with_reasoning("why").held_after("rest", 20));
    let turn = scene.submit("go").await;
    let snapshot = eventually("some text", SOON, async || {
        let snapshot = scene.get("/transcript/snapshot").await;
        let live = snapshot["live"]["text"].as_str().unwrap_or_default().len();
        (live > 5).then_some(snapshot)
    })
    .await;
    assert_eq!(snapshot["live"]["turnId"], turn.as_str());
    assert_eq!(snapshot["live"]["reasoning"], "why");
    assert_eq!(snapshot["items"][0]["kind"], "user");
    let up_to = snapshot["upTo"].as_str().unwrap();
    scene.model.release("rest");
    let events = scene
        .client
        .events(&scene.path("/events"), Some(up_to))
        .await;
    events.wait_for_frame("the end", SOON, is_end).await;
    let mut text = snapshot["live"]["text"].as_str().unwrap().to_owned();
    let mut message = Value::Null;
    for frame in events.frames() {
        match frame.kind() {
            "text" => text.push_str(frame.data["text"].as_str().unwrap()),
            "message" => message = frame.data["item"].clone(),
            "gap" => panic!("a gap: {frame:?}"),
            _ => {}
        }
    }
    assert_eq!(text, words.concat());
    assert_eq!(message["text"], text.as_str());
    let after = scene.get("/transcript/snapshot").await;
    assert_eq!(after["live"], Value::Null);
    assert_eq!(after["items"][0], message);
}

#[tokio::test]
async fn rs_29_a_quiet_stream_says_again_and_again_that_it_is_alive() {
    let scene = Scene::new("full").await;
    let response = scene
        .client
        .request(reqwest::Method::GET, &scene.path("/events"))
        .send()
        .await
        .unwrap();
    let read = async {
        let mut response = response;
        let mut text = String::new();
        while let Some(bytes) = response.chunk().await.unwrap() {
            text.push_str(&String::from_utf8_lossy(&bytes));
            if text.contains("\n: ") || text.starts_with(": ") {
                return text;
            }
        }
        panic!("the stream ended: {text}");
    };
    let text = tokio::time::timeout(SOON * 3, read).await.unwrap();
    assert!(text.contains(": alive"), "{text}");
    assert_eq!(
        text.matches("data: ").count(),
        1,
        "nothing else was said: {text}"
    );
}

#[tokio::test]
async fn streams_end_with_their_host() {
    let mut scene = Scene::new("full").await;
    let events = scene.client.events("/events?all=1", None).await;
    events
        .wait_for_frame("the state", SOON, |frame| frame.kind() == "runtime_state")
        .await;
    assert!(scene.host.term().unwrap().success());
    eventually("the stream's end", SOON, async || {
        events.ended().then_some(())
    })
    .await;
}
