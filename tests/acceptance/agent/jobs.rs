//! Processes that live on after their command: counted, listed, stoppable, never killed by
//! themselves.
#![cfg(target_os = "linux")]

use holdfast_testkit::model_server::Step;
use holdfast_testkit::wait::SOON;
use serde_json::{Value, json};

use super::scene::{Scene, eventually, processes_with, shell};

async fn count(scene: &Scene, jobs: u64) {
    eventually(&format!("{jobs} jobs"), SOON, async || {
        let status = scene.get("/status").await;
        (status["backgroundJobs"] == jobs).then_some(())
    })
    .await;
}

fn sleeper(tag: &str) -> String {
    format!("sleep 7{tag}{}", std::process::id())
}

fn alive(sleep: &str) -> Vec<i32> {
    processes_with(&format!("{}\0", sleep.replace(' ', "\0")))
}

#[tokio::test]
async fn c31_what_a_command_leaves_running_is_a_job() {
    let scene = Scene::new("full").await;
    let sleep = sleeper("1");
    scene.model.push(shell("s", &format!("{sleep} & echo up")));
    scene.model.push(Step::text("it is up"));
    scene.turn("start the server").await;
    let tool = scene.tools().await.remove(0);
    assert_eq!(tool["state"], "completed", "{tool}");
    assert_eq!(tool["exitCode"], 0);
    let output = tool["output"].as_str().unwrap();
    assert!(output.starts_with("up\n"), "{output}");
    assert!(output.contains("still running as a job"), "{output}");

    let status = scene.get("/status").await;
    assert_eq!(status["backgroundJobs"], 1);
    assert_eq!(status["running"], false);
    assert_eq!(status["runtimeState"]["phase"], "idle");
    assert_eq!(status["runtimeState"]["unresolved"], 0);
    let jobs = scene.get("/jobs").await;
    assert_eq!(jobs.as_array().unwrap().len(), 1);
    assert_eq!(jobs[0]["id"], tool["attemptId"]);
    assert_eq!(jobs[0]["kind"], "survivors");
    assert_eq!(jobs[0]["stopping"], false);
    assert_eq!(alive(&sleep).len(), 1);

    // It holds nothing up.
    scene.model.push(shell("t", "echo more"));
    scene.model.push(Step::text("fine"));
    scene.turn("more").await;
    assert_eq!(alive(&sleep).len(), 1, "nobody killed it");
    let (status, _) = scene
        .post("/jobs/cancel", json!({ "id": jobs[0]["id"] }))
        .await;
    assert!(status == 202 || status == 204, "{status}");
    count(&scene, 0).await;
    assert!(alive(&sleep).is_empty(), "counted until it was gone");
    assert_eq!(scene.get("/jobs").await, json!([]));
    let (status, body) = scene
        .post("/jobs/cancel", json!({ "id": jobs[0]["id"] }))
        .await;
    assert_eq!((status, body["code"].as_str()), (404, Some("job_unknown")));
    assert_eq!(
        scene.tools().await[0]["state"],
        "completed",
        "its result stays"
    );
}

#[tokio::test]
async fn c22_a_job_counts_until_its_real_exit() {
    let scene = Scene::new("full").await;
    let command = "(until [ -e go ]; do sleep 0.05; done; touch over) & echo up";
    scene.model.push(shell("s", command));
    scene.model.push(Step::text("up"));
    scene.turn("start").await;
    let events = scene.client.events(&scene.path("/events"), None).await;
    let status = scene.get("/status").await;
    assert_eq!(status["backgroundJobs"], 1);
    assert_eq!(status["runtimeState"]["activity"], "");
    scene.write("go", "");
    count(&scene, 0).await;
    assert!(scene.file("over").exists());
    events
        .wait_for_frame("its end", SOON, |frame| {
            frame.kind() == "job_changed" && frame.data["ended"] == Value::Bool(true)
        })
        .await;
}

#[tokio::test]
async fn c22_stop_of_a_turn_leaves_an_earlier_job_and_its_count() {
    let scene = Scene::new("full").await;
    let sleep = sleeper("2");
    scene.model.push(shell("s", &format!("{sleep} & echo up")));
    scene.model.push(shell("t", "touch begun; sleep 600"));
    let turn = scene.submit("start").await;
    eventually("the second command", SOON, async || {
        scene.file("begun").exists().then_some(())
    })
    .await;
    let (status, _) = scene.post("/cancel", json!({ "turnId": turn })).await;
    assert_eq!(status, 202);
    let status = scene.ended(&turn).await;
    assert_eq!(status["backgroundJobs"], 1, "{status}");
    assert_eq!(alive(&sleep).len(), 1);
    let id = scene.get("/jobs").await[0]["id"].clone();
    scene.post("/jobs/cancel", json!({ "id": id })).await;
    count(&scene, 0).await;
    assert!(alive(&sleep).is_empty());
}
