//! Permission modes and a person's answers: what is asked, what an answer allows, and that each
//! question is answered once.

use holdfast_testkit::model_server::Step;
use serde_json::{Value, json};

use super::scene::{Scene, results, shell};

fn write(id: &str, path: &str, content: &str) -> Step {
    let arguments = json!({ "path": path, "content": content });
    Step::call(id, "write_file", &arguments.to_string())
}

#[tokio::test]
async fn mode_ask_asks_for_effects_and_not_for_reads() {
    let scene = Scene::new("ask").await;
    scene.write("a.txt", "a");
    scene
        .model
        .push(Step::call("r", "read_file", r#"{"path":"a.txt"}"#));
    scene.model.push(write("w", "b.txt", "b"));
    scene.model.push(shell("s", "echo c > c.txt"));
    scene.model.push(Step::text("done"));
    let turn = scene.submit("go").await;
    let first = scene.answer(true, "once").await;
    assert_eq!(first["approval"]["callId"], "w");
    assert!(!scene.file("c.txt").exists());
    let second = scene.answer(true, "once").await;
    assert_eq!(second["approval"]["callId"], "s");
    assert!(second["approval"].get("diff").is_none());
    scene.ended(&turn).await;
    assert_eq!(scene.read("b.txt"), "b");
    assert_eq!(scene.read("c.txt"), "c\n");
}

#[tokio::test]
async fn mode_edits_asks_for_commands_alone() {
    let scene = Scene::new("edits").await;
    scene.model.push(write("w", "b.txt", "b"));
    scene.model.push(shell("s", "echo c > c.txt"));
    scene.model.push(Step::text("done"));
    let turn = scene.submit("go").await;
    let asked = scene.answer(true, "once").await;
    assert_eq!(asked["approval"]["callId"], "s");
    assert_eq!(scene.read("b.txt"), "b");
    scene.ended(&turn).await;
    assert_eq!(scene.read("c.txt"), "c\n");
}

#[tokio::test]
async fn mode_full_asks_for_nothing() {
    let scene = Scene::new("full").await;
    scene.model.push(write("w", "b.txt", "b"));
    scene.model.push(shell("s", "echo c > c.txt"));
    scene.model.push(Step::text("done"));
    scene.turn("go").await;
    assert!(!scene.kinds().contains(&"prompt_asked".to_owned()));
    assert_eq!(scene.read("c.txt"), "c\n");
}

#[tokio::test]
async fn mode_read_only_refuses_effects_and_reads_on() {
    let scene = Scene::new("read-only").await;
    scene.write("a.txt", "seen\n");
    scene.model.push(write("w", "b.txt", "b"));
    scene.model.push(shell("s", "echo c > c.txt"));
    scene
        .model
        .push(Step::call("r", "read_file", r#"{"path":"a.txt"}"#));
    scene.model.push(Step::text("done"));
    scene.turn("go").await;
    let tools = scene.tools().await;
    for tool in &tools[..2] {
        assert_eq!(tool["state"], "not_started", "{tool}");
        assert_eq!(tool["code"], "mode_read_only", "{tool}");
        assert_eq!(tool["attemptId"], "", "no receipt: {tool}");
    }
    assert_eq!(tools[2]["state"], "completed");
    assert!(tools[2]["output"].as_str().unwrap().contains("seen"));
    assert!(!scene.file("b.txt").exists() && !scene.file("c.txt").exists());
}

#[tokio::test]
async fn a_changed_mode_counts_from_the_next_call_on() {
    let scene = Scene::new("full").await;
    let path = format!("/sessions/{}", scene.session);
    let request = scene.client.request(reqwest::Method::PATCH, &path);
    let patched = holdfast_testkit::TestClient::send(request.json(&json!({ "mode": "ask" }))).await;
    assert_eq!(patched.unwrap().0, 204);
    assert_eq!(scene.get("/status").await["mode"], "ask");
    scene.model.push(shell("s", "echo c"));
    scene.model.push(Step::text("done"));
    let turn = scene.submit("go").await;
    scene.answer(true, "once").await;
    scene.ended(&turn).await;
}

#[tokio::test]
async fn a_command_for_the_session_is_that_command_alone() {
    let scene = Scene::new("ask").await;
    scene.model.push(shell("s1", "echo a >> log"));
    scene.model.push(shell("s2", "echo a >> log"));
    scene.model.push(shell("s3", "echo a >> log "));
    scene.model.push(Step::text("done"));
    let turn = scene.submit("go").await;
    assert_eq!(
        scene.answer(true, "session").await["approval"]["callId"],
        "s1"
    );
    let asked = scene.answer(true, "once").await;
    assert_eq!(
        asked["approval"]["callId"], "s3",
        "the same words ran unasked"
    );
    scene.ended(&turn).await;
    assert_eq!(scene.read("log"), "a\na\na\n");
    scene.model.push(shell("s4", "echo a >> log"));
    scene.model.push(shell("s5", "echo b >> log"));
    scene.model.push(Step::text("done"));
    let turn = scene.submit("again").await;
    assert_eq!(
        scene.answer(false, "once").await["approval"]["callId"],
        "s5"
    );
    scene.ended(&turn).await;
    assert_eq!(scene.read("log"), "a\na\na\na\n");
}

#[tokio::test]
async fn an_edit_for_the_session_is_that_tool() {
    let scene = Scene::new("ask").await;
    scene.write("b.txt", "old\n");
    scene.model.push(write("w1", "a.txt", "a"));
    scene.model.push(write("w2", "c.txt", "c"));
    let edit = json!({ "path": "b.txt", "edits": [{ "old_text": "old", "new_text": "new" }] });
    scene
        .model
        .push(Step::call("e1", "edit_file", &edit.to_string()));
    scene.model.push(shell("s1", "echo s > s.txt"));
    scene.model.push(Step::text("done"));
    let turn = scene.submit("go").await;
    assert_eq!(
        scene.answer(true, "session").await["approval"]["callId"],
        "w1"
    );
    assert_eq!(scene.answer(true, "once").await["approval"]["callId"], "e1");
    assert_eq!(scene.read("c.txt"), "c");
    assert_eq!(
        scene.answer(false, "once").await["approval"]["callId"],
        "s1"
    );
    scene.ended(&turn).await;
    assert_eq!(scene.read("b.txt"), "new\n");
    assert!(!scene.file("s.txt").exists());
}

#[tokio::test]
async fn a_denial_and_its_reason_reach_the_model() {
    let scene = Scene::new("ask").await;
    scene.model.push(shell("s", "rm -rf build"));
    scene.model.push(Step::text("then not"));
    let turn = scene.submit("clean").await;
    let asked = scene.question().await;
    let reason = "it holds my \"notes\"";
    let (status, _) = scene.approve(&asked, false, "once", Some(reason)).await;
    assert_eq!(status, 204);
    scene.ended(&turn).await;
    let told = results(&scene.model.requests()[1]);
    assert_eq!(told[0].0, "s");
    assert!(told[0].1.contains(reason), "{told:?}");
    assert!(told[0].1.contains("nothing was run"), "{told:?}");
    let tools = scene.tools().await;
    assert_eq!(tools[0]["state"], "not_started");
    assert_eq!(tools[0]["code"], "denied");
    assert_eq!(tools[0]["attemptId"], "");
}

#[tokio::test]
async fn tr_51_a_file_that_changed_meanwhile_is_asked_again() {
    let scene = Scene::new("ask").await;
    scene.write("a.txt", "one\n");
    scene.model.push(write("w", "a.txt", "two\n"));
    scene.model.push(Step::text("done"));
    let turn = scene.submit("go").await;
    let first = scene.question().await;
    scene.write("a.txt", "someone else\n");
    let (status, body) = scene.approve(&first, true, "once", None).await;
    assert_eq!((status, body["code"].as_str()), (409, Some("prompt_stale")));
    assert_eq!(scene.read("a.txt"), "someone else\n");

    let second = scene.question().await;
    assert_eq!(second["promptId"], first["promptId"]);
    assert_eq!(second["approval"]["generation"], 2);
    let diff = second["approval"]["diff"].as_str().unwrap();
    assert!(diff.contains("-someone else"), "{diff}");
    let (status, body) = scene.approve(&first, true, "once", None).await;
    assert_eq!((status, body["code"].as_str()), (409, Some("prompt_stale")));
    assert_eq!(scene.approve(&second, true, "once", None).await.0, 204);
    scene.ended(&turn).await;
    assert_eq!(scene.read("a.txt"), "two\n");
}

#[tokio::test]
async fn c16_a_question_is_answered_once() {
    let scene = Scene::new("ask").await;
    scene.model.push(shell("s", "echo x >> f"));
    scene.model.push(Step::text("done"));
    let turn = scene.submit("go").await;
    let seen = scene.question().await;
    let other = scene.host.client();
    let also_seen = other.get_ok(&scene.path("/pending-prompts")).await;
    assert_eq!(also_seen[0], seen, "both clients see it");
    let (one, two) = tokio::join!(
        scene.approve(&seen, true, "once", None),
        scene.approve(&seen, false, "once", None)
    );
    let mut answers = [one, two];
    answers.sort_by_key(|(status, _)| *status);
    assert_eq!(answers[0], (204, Value::Null));
    assert_eq!(answers[1].0, 409);
    assert_eq!(answers[1].1["code"], "prompt_not_pending");
    scene.ended(&turn).await;
    let ran = scene.file("f").exists();
    assert_eq!(scene.tools().await[0]["state"] == "completed", ran);
    let (status, body) = scene.approve(&seen, true, "once", None).await;
    assert_eq!(
        (status, body["code"].as_str()),
        (409, Some("prompt_not_pending"))
    );
    if ran {
        assert_eq!(scene.read("f"), "x\n");
    }
}

#[tokio::test]
async fn an_answer_must_be_whole() {
    let scene = Scene::new("ask").await;
    scene.model.push(shell("s", "echo x >> f"));
    scene.model.push(Step::text("done"));
    let turn = scene.submit("go").await;
    let seen = scene.question().await;
    let id = &seen["approval"]["id"];
    for (body, code) in [
        (json!({ "id": id, "generation": 1 }), "body_invalid"),
        (json!({ "id": id, "allow": true }), "body_invalid"),
        (
            json!({ "id": id, "generation": 1, "allow": "yes" }),
            "body_invalid",
        ),
        (
            json!({ "id": id, "generation": 1, "allow": true, "more": 1 }),
            "body_invalid",
        ),
        (
            json!({ "id": id, "generation": 1, "allow": true, "scope": "forever" }),
            "scope_unknown",
        ),
    ] {
        let (status, answer) = scene.post("/approve", body.clone()).await;
        assert_eq!(
            (status, answer["code"].as_str()),
            (400, Some(code)),
            "{body}"
        );
    }
    let unknown = json!({ "id": "0".repeat(32), "generation": 1, "allow": true });
    let (status, answer) = scene.post("/approve", unknown).await;
    assert_eq!(
        (status, answer["code"].as_str()),
        (409, Some("prompt_not_pending"))
    );
    assert!(!scene.file("f").exists());
    assert_eq!(scene.question().await, seen, "it is still open");
    scene.answer(true, "once").await;
    scene.ended(&turn).await;
    assert_eq!(scene.read("f"), "x\n");
}

#[tokio::test]
async fn a_submit_while_a_question_waits_is_refused() {
    let scene = Scene::new("ask").await;
    scene.model.push(shell("s", "echo x >> f"));
    scene.model.push(Step::text("done"));
    let turn = scene.submit("go").await;
    scene.question().await;
    let (status, body) = scene.post("/submit", json!({ "input": "more" })).await;
    assert_eq!((status, body["code"].as_str()), (409, Some("session_busy")));
    scene.answer(true, "once").await;
    scene.ended(&turn).await;
}
