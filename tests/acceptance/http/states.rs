//! One committed state on every surface: `/status`, `/runtime-states`, the list and the stream.

use std::collections::BTreeSet;

use holdfast_testkit::model_server::Step;
use holdfast_testkit::wait::{SOON, scaled};
use serde_json::{Value, json};

use crate::agent::scene::{Scene, eventually, shell};

fn keys(value: &Value) -> BTreeSet<&str> {
    value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

const STATE: [&str; 15] = [
    "schemaVersion",
    "runtimeEpoch",
    "revision",
    "phase",
    "running",
    "turnId",
    "turnStatus",
    "turnEventSeq",
    "pendingPrompt",
    "cancelRequested",
    "cancellable",
    "backgroundJobs",
    "activity",
    "unresolved",
    "outcome",
];

fn own(states: &Value, session: &str) -> Value {
    let path = format!("session-id:{session}");
    states["sessions"]
        .as_array()
        .unwrap()
        .iter()
        .find(|row| row["sessionPath"] == path.as_str())
        .unwrap_or_else(|| panic!("{session} is not in {states}"))
        .clone()
}

#[tokio::test]
async fn rs_04_every_field_is_there_in_every_state() {
    let scene = Scene::new("ask").await;
    let state = async || scene.get("/status").await["runtimeState"].clone();
    let fresh = state().await;
    assert_eq!(keys(&fresh), BTreeSet::from(STATE));
    assert_eq!(fresh["schemaVersion"], 1);
    assert_eq!(fresh["phase"], "idle");
    assert_eq!(fresh["turnId"], "");
    assert_eq!(fresh["turnStatus"], "");
    assert_eq!(fresh["outcome"], "");
    assert_eq!(fresh["runtimeEpoch"].as_str().unwrap().len(), 32);
    assert!(fresh["revision"].as_u64().unwrap() >= 1);

    scene.model.push(shell("s", "echo x"));
    scene.model.push(Step::text("done").held("end"));
    let turn = scene.submit("go").await;
    scene.question().await;
    let asked = state().await;
    assert_eq!(keys(&asked), BTreeSet::from(STATE));
    assert_eq!(asked["pendingPrompt"], true);
    assert_eq!(asked["cancellable"], true);
    assert_eq!(asked["turnId"], turn.as_str());
    scene.answer(true, "once").await;
    scene.model.wait_for_requests(2).await;
    let busy = state().await;
    assert_eq!(keys(&busy), BTreeSet::from(STATE));
    assert_eq!(busy["phase"], "executing");
    assert_eq!(busy["running"], true);
    assert_eq!(busy["turnStatus"], "in_progress");
    assert_eq!(busy["activity"], "thinking");
    scene.model.release("end");
    scene.ended(&turn).await;
    let over = state().await;
    assert_eq!(over["phase"], "idle");
    assert_eq!(over["activity"], "");
    assert_eq!(over["turnStatus"], "completed");
    assert_eq!(over["runtimeEpoch"], fresh["runtimeEpoch"]);
    assert!(over["revision"].as_u64() > busy["revision"].as_u64());
}

#[tokio::test]
async fn rs_26_all_open_sessions_are_in_one_reply() {
    let scene = Scene::new("full").await;
    let second = scene.client.post_ok("/sessions", &json!({})).await;
    let second = second["sessionId"].as_str().unwrap();
    let states = scene.client.get_ok("/runtime-states").await;
    assert_eq!(
        keys(&states),
        BTreeSet::from(["schemaVersion", "epoch", "revision", "sessions"])
    );
    assert_eq!(states["schemaVersion"], 1);
    assert_eq!(states["sessions"].as_array().unwrap().len(), 2);
    assert_eq!(own(&states, second)["current"], true);
    let first = own(&states, &scene.session);
    assert_eq!(
        keys(&first),
        BTreeSet::from(["sessionPath", "current", "state"])
    );
    assert_eq!(first["current"], false);
    let again = scene.client.get_ok("/runtime-states").await;
    assert_eq!(again, states, "reading changes nothing");

    // The one that is not selected works on, and the reply shows it.
    scene.model.push(Step::text("done").held("end"));
    let turn = scene.submit("go").await;
    scene.model.wait_for_requests(1).await;
    let busy = scene.client.get_ok("/runtime-states").await;
    assert_eq!(own(&busy, &scene.session)["state"]["phase"], "executing");
    assert_eq!(own(&busy, second)["state"]["phase"], "idle");
    assert!(busy["revision"].as_u64() > states["revision"].as_u64());
    scene.model.release("end");
    scene.ended(&turn).await;
}

#[tokio::test]
async fn rs_26_the_states_of_many_sessions_come_from_memory_alone() {
    let scene = Scene::new("full").await;
    let count = scaled(60).max(10);
    for _ in 1..count {
        scene.client.post_ok("/sessions", &json!({})).await;
    }
    scene.model.push(Step::text("done"));
    scene.turn("go").await;
    let before = scene.client.get_ok("/runtime-states").await;
    assert_eq!(before["sessions"].as_array().unwrap().len(), count);
    // No log, no index, no folder is there any more: what is asked of files can't be answered.
    let sessions = scene.data.join("sessions");
    std::fs::rename(&sessions, scene.data.join("elsewhere")).unwrap();
    std::fs::remove_dir_all(scene.data.join("elsewhere")).unwrap();
    let (status, _) = scene.client.get("/sessions").await;
    assert_ne!(status, 500);
    assert_eq!(scene.client.get_ok("/runtime-states").await, before);
    assert!(!sessions.exists(), "and none was made");
}

#[tokio::test]
async fn rs_27_status_tells_the_same_snapshot_twice() {
    let scene = Scene::new("ask").await;
    scene.model.push(shell("s", "echo x"));
    scene.model.push(Step::text("done"));
    let agree = async || {
        let status = scene.get("/status").await;
        for field in [
            "running",
            "pendingPrompt",
            "backgroundJobs",
            "cancelRequested",
            "cancellable",
        ] {
            assert_eq!(status[field], status["runtimeState"][field], "{field}");
        }
        status
    };
    agree().await;
    let turn = scene.submit("go").await;
    scene.question().await;
    let status = agree().await;
    let states = scene.client.get_ok("/runtime-states").await;
    assert_eq!(
        own(&states, &scene.session)["state"],
        status["runtimeState"]
    );
    let list = scene.client.get_ok("/sessions").await;
    assert_eq!(list["items"][0]["state"]["pendingPrompt"], true);
    assert_eq!(
        list["items"][0]["state"]["phase"],
        status["runtimeState"]["phase"]
    );
    scene.answer(true, "once").await;
    scene.ended(&turn).await;
    let status = agree().await;
    let states = scene.client.get_ok("/runtime-states").await;
    assert_eq!(
        own(&states, &scene.session)["state"],
        status["runtimeState"]
    );
}

#[tokio::test]
async fn rs_27_the_session_that_is_asked_for_answers_whichever_is_current() {
    let scene = Scene::new("full").await;
    scene.model.push(Step::text("done").held("end"));
    let turn = scene.submit("go").await;
    scene.model.wait_for_requests(1).await;
    let second = scene.client.post_ok("/sessions", &json!({})).await;
    let second = second["sessionId"].as_str().unwrap();
    for named in [
        scene.session.clone(),
        format!("session-id:{}", scene.session),
    ] {
        let status = scene
            .client
            .get_ok(&format!("/status?session={named}"))
            .await;
        assert_eq!(status["sessionId"], scene.session.as_str());
        assert_eq!(status["runtimeState"]["turnId"], turn.as_str());
        assert_eq!(status["running"], true);
    }
    let current = scene.client.get_ok("/status").await;
    assert_eq!(current["sessionId"], second);
    assert_eq!(current["running"], false);
    let epoch = |status: &Value| status["runtimeState"]["runtimeEpoch"].clone();
    let owner = scene.get("/status").await;
    assert_ne!(epoch(&owner), epoch(&current), "each has its own instance");
    let unknown = format!("/status?session={}", "0".repeat(32));
    assert_eq!(scene.client.get(&unknown).await.0, 404);
    scene.model.release("end");
    scene.ended(&turn).await;
}

#[tokio::test]
async fn rs_01_reading_writes_nothing() {
    let scene = Scene::new("full").await;
    scene.model.push(Step::text("done"));
    scene.turn("go").await;
    let log = std::fs::read(scene.session_folder().join("log.jsonl")).unwrap();
    let state = scene.get("/status").await;
    for path in [
        "/status",
        "/tool-recovery",
        "/pending-prompts",
        "/transcript/page",
        "/transcript/snapshot",
        "/jobs",
    ] {
        scene.get(path).await;
    }
    scene.client.get_ok("/runtime-states").await;
    scene.client.get_ok("/sessions").await;
    assert_eq!(scene.get("/status").await, state);
    let after = std::fs::read(scene.session_folder().join("log.jsonl")).unwrap();
    assert_eq!(after, log);
    assert_eq!(scene.model.request_count(), 1);
}

#[tokio::test]
async fn rs_09_a_running_session_can_be_stopped_and_an_idle_one_not() {
    let scene = Scene::new("full").await;
    assert_eq!(scene.get("/status").await["cancellable"], false);
    scene.model.push(shell("s", "touch begun; sleep 600"));
    let turn = scene.submit("go").await;
    eventually("the command", SOON, async || {
        scene.file("begun").exists().then_some(())
    })
    .await;
    assert_eq!(scene.get("/status").await["cancellable"], true);
    let (status, _) = scene.post("/cancel", json!({ "turnId": turn })).await;
    assert_eq!(status, 202);
    let over = scene.ended(&turn).await;
    assert_eq!(over["cancellable"], false);
    assert_eq!(over["cancelRequested"], false);
}
