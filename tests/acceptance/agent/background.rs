//! Commands in the background: started there by the model, moved there by a person, looked at and
//! stopped by both; each has its one receipt and its real end.
#![cfg(target_os = "linux")]

use holdfast_testkit::http::TestClient;
use holdfast_testkit::model_server::Step;
use holdfast_testkit::wait::SOON;
use reqwest::Method;
use serde_json::{Value, json};

use super::scene::{Scene, eventually, messages, results, shell};

/// A reply with one command for the background.
pub(crate) fn background(id: &str, command: &str) -> Step {
    let arguments = json!({ "command": command, "background": true });
    Step::call(id, "shell", &arguments.to_string())
}

fn on_job(id: &str, tool: &str, job: &str) -> Step {
    Step::call(id, tool, &json!({ "id": job }).to_string())
}

async fn count(scene: &Scene, jobs: u64) -> Value {
    eventually(&format!("{jobs} jobs"), SOON, async || {
        let status = scene.get("/status").await;
        (status["backgroundJobs"] == jobs).then_some(status)
    })
    .await
}

async fn tool(scene: &Scene, id: &str) -> Value {
    let tools = scene.tools().await;
    let found = tools.into_iter().find(|tool| tool["id"] == id);
    found.unwrap_or_else(|| panic!("no call {id}"))
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

fn result_of(scene: &Scene, call: &str) -> String {
    let requests = scene.model.requests();
    let found = results(requests.last().unwrap());
    let found = found.into_iter().find(|(id, _)| id == call);
    found.unwrap_or_else(|| panic!("no result of {call}")).1
}

/// What the last request says before its last message of a person.
fn note(scene: &Scene) -> String {
    let requests = scene.model.requests();
    let said = messages(requests.last().unwrap());
    let mut users = said.iter().filter(|message| message["role"] == "user");
    users.next_back();
    users
        .next_back()
        .map(|message| text(&message["content"]))
        .unwrap_or_default()
}

const GATED: &str = "echo up; until [ -e go ]; do sleep 0.02; done; echo over; exit 3";

#[tokio::test]
async fn c22_tr_50_a_command_started_in_the_background_ends_with_its_real_exit() {
    let scene = Scene::new("full").await;
    scene.model.push(background("b", GATED));
    scene.model.push(Step::text("it is up"));
    let events = scene.client.events(&scene.path("/events"), None).await;
    scene.turn("start the server").await;

    // The call is answered, its attempt is in flight, and nothing is taken for a turn.
    let started = tool(&scene, "b").await;
    let job = text(&started["attemptId"]);
    let told = result_of(&scene, "b");
    assert!(told.contains(&format!("started as job {job}")), "{told}");
    assert_eq!(started["state"], "in_flight", "{started}");
    assert_eq!(started["background"], "model", "{started}");
    assert_eq!(started["resultSource"], Value::Null, "{started}");
    let status = scene.get("/status").await;
    assert_eq!(status["backgroundJobs"], 1);
    assert_eq!(status["running"], false);
    let state = &status["runtimeState"];
    assert_eq!(
        (&state["phase"], &state["activity"], &state["unresolved"]),
        (&json!("idle"), &json!(""), &json!(0))
    );
    let jobs = scene.get("/jobs").await;
    assert_eq!(jobs[0]["id"], job.as_str());
    assert_eq!(jobs[0]["kind"], "background");
    assert_eq!(jobs[0]["command"], GATED);
    assert_eq!(jobs[0]["callId"], "b");
    assert!(jobs[0]["startedAt"].as_u64().unwrap() > 0);
    assert!(jobs[0]["pid"].as_u64().unwrap() > 1);
    let path = format!("/output?attempt={job}");
    eventually("its output", SOON, async || {
        (scene.get(&path).await["text"] == "up\n").then_some(())
    })
    .await;
    assert_eq!(scene.get("/jobs").await[0]["outputLength"], 3);

    // It holds nothing up (TR-50): an effect beside it.
    scene.model.push(shell("t", "echo more"));
    scene.model.push(Step::text("fine"));
    scene.turn("more").await;
    assert_eq!(tool(&scene, "t").await["state"], "completed");
    assert_eq!(result_of(&scene, "b"), told);

    scene.write("go", "");
    let status = count(&scene, 0).await;
    assert_eq!(status["runtimeState"]["unresolved"], 0);
    let ended = scene.tool_in("b", "failed").await;
    assert_eq!(ended["exitCode"], 3, "{ended}");
    assert_eq!(ended["resultSource"], "live");
    assert!(text(&ended["output"]).starts_with("up\nover\n"), "{ended}");
    events
        .wait_for_frame("its real exit", SOON, |frame| {
            frame.kind() == "tool_result" && frame.data["tool"]["exitCode"] == 3
        })
        .await;
    events
        .wait_for_frame("the job's end", SOON, |frame| {
            frame.kind() == "job_changed" && frame.data["ended"] == Value::Bool(true)
        })
        .await;

    // TR-15: what was sent stays, and its end comes in a note, once.
    scene.model.push(Step::text("I see"));
    scene.turn("and now?").await;
    assert_eq!(result_of(&scene, "b"), told);
    let note_text = note(&scene);
    assert!(
        note_text.starts_with("[host note] What became of jobs"),
        "{note_text}"
    );
    assert!(note_text.contains(&format!("job {job}")), "{note_text}");
    assert!(note_text.contains("exit status 3"), "{note_text}");
    scene.model.push(Step::text("yes"));
    scene.turn("again?").await;
    assert!(!note(&scene).starts_with("[host note]"), "told once");
    let kinds = scene.kinds();
    let of = |kind: &str| kinds.iter().filter(|k| *k == kind).count();
    assert_eq!((of("receipt"), of("job_started")), (2, 1));
}

#[tokio::test]
async fn c22_the_model_looks_at_its_job_and_stops_it() {
    let scene = Scene::new("full").await;
    scene.model.push(background(
        "b",
        "echo serving; echo $$ > pid; exec sleep 600",
    ));
    scene.model.push(Step::text("up"));
    scene.turn("start").await;
    let job = text(&tool(&scene, "b").await["attemptId"]);
    eventually("the server", SOON, async || {
        scene.file("pid").exists().then_some(())
    })
    .await;

    scene.model.push(on_job("o", "job_output", &job));
    scene.model.push(on_job("s", "job_stop", &job));
    scene.model.push(on_job("p", "job_output", &job));
    scene.model.push(on_job("q", "job_stop", &job));
    scene.model.push(Step::text("stopped"));
    scene.turn("look, then stop it").await;
    let look = result_of(&scene, "o");
    assert!(look.starts_with("serving\n"), "{look}");
    assert!(look.contains("it runs since"), "{look}");
    assert!(look.contains("bytes 0 to 8 of 8"), "{look}");
    let stopped = tool(&scene, "s").await;
    assert_eq!(stopped["state"], "completed", "{stopped}");
    assert_eq!(stopped["readOnly"], false);
    assert!(
        text(&stopped["output"]).contains("it was stopped"),
        "{stopped}"
    );
    let pid = scene.read("pid");
    assert!(
        !std::path::Path::new("/proc").join(pid.trim()).exists(),
        "the stop was answered after the real exit"
    );
    let look = tool(&scene, "p").await;
    assert_eq!(look["readOnly"], true);
    assert!(text(&look["output"]).contains("it was stopped"), "{look}");
    let again = tool(&scene, "q").await;
    assert_eq!(again["state"], "failed", "{again}");
    assert_eq!(count(&scene, 0).await["runtimeState"]["unresolved"], 0);
    let ended = tool(&scene, "b").await;
    assert_eq!(ended["state"], "interrupted", "{ended}");
    assert_eq!(ended["background"], "model");
}

#[tokio::test]
async fn c22_a_stopped_job_counts_until_its_real_exit() {
    let scene = Scene::new("full").await;
    let command = "trap 'echo told; until [ -e go ]; do sleep 0.02; done; exit 0' TERM; echo up; \
                   touch up; while :; do sleep 0.02; done";
    scene.model.push(background("b", command));
    scene.model.push(Step::text("up"));
    scene.turn("start").await;
    eventually("it is up", SOON, async || {
        scene.file("up").exists().then_some(())
    })
    .await;
    let id = scene.get("/jobs").await[0]["id"].clone();
    let (status, _) = scene.post("/jobs/cancel", json!({ "id": id })).await;
    assert_eq!(status, 202);
    // Told and not gone: it counts, and says that it is being stopped.
    let jobs = scene.get("/jobs").await;
    if let Some(job) = jobs.get(0) {
        assert_eq!(job["stopping"], true, "{job}");
        assert_eq!(tool(&scene, "b").await["state"], "in_flight");
    }
    scene.write("go", "");
    count(&scene, 0).await;
    let ended = tool(&scene, "b").await;
    assert!(
        matches!(ended["state"].as_str(), Some("interrupted" | "completed")),
        "{ended}"
    );
    assert!(text(&ended["output"]).contains("told"), "{ended}");
}

#[tokio::test]
async fn tr_50_a_person_moves_a_running_command_to_the_background() {
    let scene = Scene::new("full").await;
    scene.model.push(shell("s", GATED));
    scene.model.push(Step::text("going on"));
    let turn = scene.submit("build it").await;
    let running = eventually("its first output", SOON, async || {
        let snapshot = scene.get("/transcript/snapshot").await;
        let live = snapshot["progress"].as_array().cloned().unwrap_or_default();
        live.iter()
            .find(|part| part["text"] == "up\n")
            .map(|part| text(&part["attemptId"]))
    })
    .await;
    let (status, body) = scene
        .post("/jobs/background", json!({ "attemptId": running }))
        .await;
    assert_eq!(status, 200, "{body}");
    assert_eq!(
        (&body["id"], &body["kind"]),
        (&json!(running), &json!("background"))
    );
    // The answer means durable.
    assert!(scene.kinds().contains(&"job_started".to_owned()));
    let status = scene.ended(&turn).await;
    assert_eq!(status["backgroundJobs"], 1);
    let told = result_of(&scene, "s");
    assert!(
        told.starts_with("up\n[the person moved this command"),
        "{told}"
    );
    assert!(told.contains(&format!("job {running}")), "{told}");
    let moved = tool(&scene, "s").await;
    assert_eq!(
        (&moved["state"], &moved["background"]),
        (&json!("in_flight"), &json!("person"))
    );

    // Once only, and of what runs only.
    let (status, body) = scene
        .post("/jobs/background", json!({ "attemptId": running }))
        .await;
    assert_eq!(
        (status, body["code"].as_str()),
        (409, Some("call_not_running"))
    );
    let (status, body) = scene
        .post("/jobs/background", json!({ "attemptId": "0".repeat(32) }))
        .await;
    assert_eq!(
        (status, body["code"].as_str()),
        (404, Some("attempt_unknown"))
    );

    scene.write("go", "");
    count(&scene, 0).await;
    let ended = scene.tool_in("s", "failed").await;
    assert_eq!(
        (&ended["exitCode"], &ended["background"]),
        (&json!(3), &json!("person"))
    );
    scene.model.push(Step::text("I see"));
    scene.turn("and?").await;
    assert_eq!(result_of(&scene, "s"), told, "what was sent stays");
    assert!(note(&scene).contains("exit status 3"));
}

#[tokio::test]
async fn rs_09_stop_of_the_turn_leaves_the_background_command() {
    let scene = Scene::new("full").await;
    scene.model.push(background("b", GATED));
    scene.model.push(shell("t", "touch begun; sleep 600"));
    let turn = scene.submit("start").await;
    eventually("the second command", SOON, async || {
        scene.file("begun").exists().then_some(())
    })
    .await;
    scene.post("/cancel", json!({ "turnId": turn })).await;
    let status = scene.ended(&turn).await;
    assert_eq!(status["backgroundJobs"], 1, "{status}");
    assert_eq!(tool(&scene, "b").await["state"], "in_flight");
    assert_eq!(tool(&scene, "t").await["state"], "interrupted");
    let path = format!("/sessions/{}", scene.session);
    let request = scene.client.request(Method::DELETE, &path);
    let (status, body) = TestClient::send(request).await.unwrap();
    assert_eq!((status, body["code"].as_str()), (409, Some("session_busy")));
    scene.write("go", "");
    count(&scene, 0).await;
}

#[tokio::test]
async fn sv_09_a_host_that_is_told_to_end_stops_its_jobs_and_records_the_truth() {
    let mut scene = Scene::new("full").await;
    scene
        .model
        .push(background("b", "touch up; exec sleep 600"));
    scene.model.push(Step::text("up"));
    scene.turn("start").await;
    eventually("it is up", SOON, async || {
        scene.file("up").exists().then_some(())
    })
    .await;
    scene.restart().await;
    let ended = tool(&scene, "b").await;
    assert_eq!(ended["state"], "interrupted", "{ended}");
    assert_eq!(ended["resultSource"], "live");
    assert_eq!(scene.get("/status").await["backgroundJobs"], 0);
    scene.model.push(Step::text("I see"));
    scene.turn("go on").await;
    assert!(note(&scene).contains("it was stopped; effects may be partial"));
}

#[tokio::test]
async fn tr_04_a_background_command_is_asked_about_like_any_other_and_a_stop_too() {
    let scene = Scene::new("ask").await;
    scene.model.push(background("b", GATED));
    scene.model.push(Step::text("up"));
    let turn = scene.submit("start").await;
    let asked = scene.question().await;
    assert_eq!(asked["approval"]["tool"], "shell", "{asked}");
    assert_eq!(scene.get("/status").await["backgroundJobs"], 0);
    scene.answer(true, "once").await;
    scene.ended(&turn).await;
    let job = text(&tool(&scene, "b").await["attemptId"]);
    scene.model.push(on_job("s", "job_stop", &job));
    scene.model.push(Step::text("as you like"));
    let turn = scene.submit("stop it").await;
    let asked = scene.question().await;
    assert_eq!(asked["approval"]["tool"], "job_stop", "{asked}");
    scene.answer(false, "once").await;
    scene.ended(&turn).await;
    assert_eq!(tool(&scene, "s").await["state"], "not_started");
    assert_eq!(
        scene.get("/status").await["backgroundJobs"],
        1,
        "it goes on"
    );
    scene.write("go", "");
    count(&scene, 0).await;
}
