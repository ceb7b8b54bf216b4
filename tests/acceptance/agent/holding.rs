//! One host for a session: lock files that were left, and a second host.

use holdfast_testkit::host::Host;
use holdfast_testkit::model_server::Step;
use serde_json::{Value, json};

use super::scene::{Scene, binary};

#[tokio::test]
async fn c25_lock_files_left_behind_do_not_lock() {
    let mut scene = Scene::new("full").await;
    scene.model.push(Step::text("one"));
    scene.turn("one").await;
    scene.host.kill9();
    let folder = scene.session_folder();
    assert!(folder.join("lock").exists() && folder.join("holder.json").exists());
    // The pid of somebody else who lives, on this host.
    let holder = json!({ "pid": std::process::id(), "host": "elsewhere", "since": 1 });
    std::fs::write(folder.join("holder.json"), holder.to_string()).unwrap();
    scene.restart_after_death().await;
    scene.model.push(Step::text("two"));
    scene.turn("two").await;
    let holder = std::fs::read_to_string(folder.join("holder.json")).unwrap();
    let holder: Value = serde_json::from_str(&holder).unwrap();
    assert_eq!(holder["pid"], scene.host.pid());
}

#[tokio::test]
async fn c26_a_second_host_is_told_who_holds_the_session() {
    let scene = Scene::new("full").await;
    scene.model.push(Step::text("one"));
    scene.turn("one").await;
    let log = scene.session_folder().join("log.jsonl");
    let before = std::fs::read(&log).unwrap();

    let second = Host::start(scene.host.options().clone()).unwrap();
    let client = second.client();
    let resume = json!({ "sessionId": scene.session });
    let (status, body) = client.post("/resume", &resume).await;
    assert_eq!(status, 409, "{body}");
    assert_eq!(body["code"], "session_held");
    let pid = scene.host.pid().to_string();
    assert!(body["message"].as_str().unwrap().contains(&pid), "{body}");
    let submit = scene.path("/submit");
    let (status, body) = client.post(&submit, &json!({ "input": "mine" })).await;
    assert_eq!((status, body["code"].as_str()), (409, Some("session_held")));
    // TR-41: whoever only watches resolves nothing either.
    let snapshot = scene.get("/tool-recovery").await;
    let resolve = json!({
        "sessionPath": snapshot["sessionPath"],
        "runtimeEpoch": snapshot["runtimeEpoch"],
        "revision": snapshot["revision"],
        "attemptId": "0".repeat(32),
        "inspectionId": "",
        "action": "dismiss",
    });
    let (status, body) = client.post(&scene.path("/tool-recovery"), &resolve).await;
    assert_eq!((status, body["code"].as_str()), (409, Some("session_held")));
    assert_eq!(std::fs::read(&log).unwrap(), before, "nothing was written");
    assert_eq!(client.get_ok("/status").await["sessionId"], "");

    // Reading goes on beside the holder.
    let list = client.get_ok("/sessions").await;
    assert_eq!(list["items"][0]["sessionId"], scene.session.as_str());
    assert_eq!(list["items"][0]["title"], "one");
    let shown = std::process::Command::new(binary())
        .args(["sessions", "show", &scene.session, "--json"])
        .env("HOLDFAST_HOME", &scene.data)
        .output()
        .unwrap();
    assert!(shown.status.success());
    let items: Vec<Value> = serde_json::from_slice(&shown.stdout).unwrap();
    assert_eq!(items.last().unwrap()["text"], "one");

    // The first goes on; the second has sessions of its own.
    scene.model.push(Step::text("two"));
    scene.turn("two").await;
    client.post_ok("/sessions", &json!({})).await;
    assert!(std::fs::read(&log).unwrap().starts_with(&before));
}

#[tokio::test]
async fn a_session_that_was_given_back_can_be_taken() {
    let mut scene = Scene::new("full").await;
    let options = scene.host.options().clone();
    let second = Host::start(options).unwrap();
    let client = second.client();
    let resume = json!({ "sessionId": scene.session });
    assert_eq!(client.post("/resume", &resume).await.0, 409);
    assert!(scene.host.term().unwrap().success());
    assert_eq!(client.post("/resume", &resume).await.0, 204);
    assert_eq!(
        client.get_ok("/status").await["sessionId"],
        scene.session.as_str()
    );
}
