//! Stop: what it ends, what it keeps, and that it means one turn.

use holdfast_testkit::model_server::{Fault, Step};
use holdfast_testkit::wait::SOON;
use serde_json::{Value, json};

#[cfg(target_os = "linux")]
use super::scene::processes_with;
use super::scene::{Scene, eventually, messages, shell};

async fn stop(scene: &Scene, turn: &str) -> Value {
    let (status, body) = scene.post("/cancel", json!({ "turnId": turn })).await;
    assert_eq!(status, 202, "{body}");
    let status = scene.ended(turn).await;
    assert_eq!(status["runtimeState"]["turnStatus"], "cancelled");
    assert_eq!(status["cancelRequested"], false);
    status
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn c18_stop_ends_all_descendants_and_the_host_ends_well() {
    let mut scene = Scene::new("full").await;
    let sleep = format!("sleep 6{}", std::process::id());
    let command = format!("bash -c '{sleep} & {sleep}'");
    scene.model.push(shell("s", &command));
    let sleepers = || processes_with(&format!("{}\0", sleep.replace(' ', "\0")));
    let turn = scene.submit("go").await;
    eventually("both sleepers", SOON, async || {
        (sleepers().len() == 2).then_some(())
    })
    .await;
    let status = stop(&scene, &turn).await;
    assert_eq!(status["backgroundJobs"], 0);
    assert!(sleepers().is_empty(), "gone when it is told");
    let tool = &scene.tools().await[0];
    assert_eq!(tool["state"], "interrupted", "{tool}");
    let output = tool["output"].as_str().unwrap();
    assert!(output.contains("effects may be partial"), "{output}");
    assert_eq!(status["runtimeState"]["unresolved"], 0);
    assert!(scene.host.term().unwrap().success());
}

#[tokio::test]
async fn c19_stop_while_the_model_sends_nothing_closes_its_socket() {
    let scene = Scene::new("full").await;
    scene.model.push(Step::fault(Fault::StallAfter(0)));
    let turn = scene.submit("go").await;
    scene.model.wait_for_requests(1).await;
    stop(&scene, &turn).await;
    scene.model.wait_for_abort(0).await;
    scene.model.push(Step::text("here"));
    scene.turn("again").await;
    assert_eq!(
        scene.model.request_count(),
        2,
        "a stopped request is not repeated"
    );
}

#[tokio::test]
async fn c20_earlier_turns_and_the_partial_answer_stay() {
    let scene = Scene::new("full").await;
    scene.model.push(Step::text("first answer"));
    scene.turn("first").await;
    scene
        .model
        .push(Step::chunks(&["half of ", "the answer", "never sent"]).held_after("rest", 2));
    let turn = scene.submit("second").await;
    eventually("the text so far", SOON, async || {
        let snapshot = scene.get("/transcript/snapshot").await;
        (snapshot["live"]["text"] == "half of the answer").then_some(())
    })
    .await;
    stop(&scene, &turn).await;
    let items = scene.items().await;
    let last = items.last().unwrap();
    assert_eq!(last["text"], "half of the answer");
    assert_eq!(last["partial"], true);
    assert_eq!(scene.get("/transcript/snapshot").await["live"], Value::Null);

    scene.model.push(Step::text("third answer"));
    scene.turn("third").await;
    let sent = messages(scene.model.requests().last().unwrap());
    let words: Vec<(&str, String)> = sent[1..]
        .iter()
        .map(|message| {
            (
                message["role"].as_str().unwrap(),
                message["content"].as_str().unwrap().to_owned(),
            )
        })
        .collect();
    assert_eq!(words[0], ("user", "first".to_owned()));
    assert_eq!(words[1], ("assistant", "first answer".to_owned()));
    assert_eq!(words[2], ("user", "second".to_owned()));
    assert_eq!(words[3].0, "assistant");
    assert!(words[3].1.starts_with("half of the answer"), "{words:?}");
    assert!(words[3].1.contains("cut short"), "{words:?}");
    assert_eq!(words[4], ("user", "third".to_owned()));
    assert_eq!(words.len(), 5);
}

#[tokio::test]
async fn c21_what_was_cancelled_is_not_done() {
    let scene = Scene::new("full").await;
    let create = |name: &str| json!({ "path": name, "content": name }).to_string();
    // The whole call has arrived and only the end of the reply is missing.
    scene
        .model
        .push(Step::call("a", "write_file", &create("abc")).held_after("end", 1));
    let turn = scene.submit("create abc").await;
    scene.model.wait_for_requests(1).await;
    stop(&scene, &turn).await;
    scene.model.release("end");
    scene
        .model
        .push(Step::call("b", "write_file", &create("123")));
    scene.model.push(Step::text("made 123"));
    scene.turn("create 123").await;
    assert!(!scene.file("abc").exists());
    assert_eq!(scene.read("123"), "123");
    let tools = scene.tools().await;
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0]["id"], "b");
}

#[tokio::test]
async fn stop_closes_a_question() {
    let scene = Scene::new("ask").await;
    scene.model.push(shell("s", "echo x > f"));
    let turn = scene.submit("go").await;
    let seen = scene.question().await;
    stop(&scene, &turn).await;
    assert_eq!(scene.get("/pending-prompts").await, json!([]));
    let (status, body) = scene.approve(&seen, true, "once", None).await;
    assert_eq!(
        (status, body["code"].as_str()),
        (409, Some("prompt_not_pending"))
    );
    assert!(!scene.file("f").exists());
    assert_eq!(scene.tools().await[0]["state"], "not_started");
    scene.model.push(Step::text("fine"));
    scene.turn("go on").await;
}

#[tokio::test]
async fn c37_a_late_cancel_means_its_own_turn() {
    let scene = Scene::new("full").await;
    scene.model.push(Step::text("one"));
    let first = scene.submit("one").await;
    scene.ended(&first).await;
    let (status, body) = scene.post("/cancel", json!({})).await;
    assert_eq!((status, &body["alreadyEnded"]), (200, &json!(true)));

    scene.model.push(Step::text("two").held("two"));
    let second = scene.submit("two").await;
    scene.model.wait_for_requests(2).await;
    let (status, body) = scene.post("/cancel", json!({ "turnId": first })).await;
    assert_eq!((status, &body["alreadyEnded"]), (200, &json!(true)));
    let running = scene.get("/status").await;
    assert_eq!(running["running"], true);
    assert_eq!(running["cancelRequested"], false);
    scene.model.release("two");
    let status = scene.ended(&second).await;
    assert_eq!(status["runtimeState"]["turnStatus"], "completed");
    assert_eq!(scene.items().await.last().unwrap()["text"], "two");
}

#[tokio::test]
async fn quitting_stops_a_running_turn_and_stores_its_end() {
    let mut scene = Scene::new("full").await;
    scene.model.push(shell("s", "touch begun; sleep 600"));
    scene.submit("go").await;
    eventually("the command", SOON, async || {
        scene.file("begun").exists().then_some(())
    })
    .await;
    scene.restart().await;
    let status = scene.get("/status").await;
    assert_eq!(
        status["runtimeState"]["turnStatus"], "interrupted",
        "{status}"
    );
    assert_eq!(status["runtimeState"]["unresolved"], 0);
    assert_eq!(scene.tools().await[0]["state"], "interrupted");
    scene.model.push(Step::text("back"));
    scene.turn("still there?").await;
}

#[tokio::test]
async fn stop_ends_the_wait_before_a_retry() {
    let scene = Scene::new("full").await;
    let fault = Fault::Status {
        status: 429,
        body: "{}".to_owned(),
        headers: [("retry-after".to_owned(), "59".to_owned())].into(),
    };
    let events = scene.client.events(&scene.path("/events"), None).await;
    scene.model.push(Step::fault(fault));
    let turn = scene.submit("go").await;
    let retrying = events
        .wait_for_frame("the wait", SOON, |frame| frame.kind() == "retrying")
        .await;
    assert!(retrying.data["waitMs"].as_u64().unwrap() >= 59_000);
    stop(&scene, &turn).await;
    scene.model.push(Step::text("here"));
    scene.turn("again").await;
    assert_eq!(scene.model.request_count(), 2);
}

#[tokio::test]
async fn tr_09_stop_ends_a_look_that_hangs_and_it_is_cancelled() {
    let scene = Scene::new("full").await;
    // Takes connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let fetch = json!({ "url": url }).to_string();
    scene.model.push(Step::call("f", "fetch", &fetch));
    let turn = scene.submit("look").await;
    scene.tool_in("f", "in_flight").await;
    let status = stop(&scene, &turn).await;
    assert_eq!(status["runtimeState"]["unresolved"], 0);
    let tool = &scene.tools().await[0];
    // TR-09: it had no result, so it did not fail.
    assert_eq!(tool["state"], "cancelled", "{tool}");
    scene.model.push(shell("s", "echo on > f"));
    scene.model.push(Step::text("fine"));
    scene.turn("go on").await;
    assert_eq!(scene.read("f"), "on\n", "nothing is blocked");
}

#[tokio::test]
async fn many_stops_are_one() {
    let scene = Scene::new("full").await;
    scene.model.push(shell("s", "touch begun; sleep 600"));
    let turn = scene.submit("go").await;
    eventually("the command", SOON, async || {
        scene.file("begun").exists().then_some(())
    })
    .await;
    let body = json!({ "turnId": turn });
    for (status, answer) in [
        scene.post("/cancel", body.clone()).await,
        scene.post("/cancel", json!({})).await,
        scene.post("/cancel", body.clone()).await,
    ] {
        let ended = status == 200 && answer["alreadyEnded"] == true;
        assert!(status == 202 || ended, "{status} {answer}");
    }
    scene.ended(&turn).await;
    assert_eq!(scene.post("/cancel", body).await.0, 200);
    let ends = scene
        .kinds()
        .iter()
        .filter(|kind| *kind == "turn_ended")
        .count();
    assert_eq!(ends, 1);
    let results = scene
        .kinds()
        .iter()
        .filter(|kind| *kind == "tool_result")
        .count();
    assert_eq!(results, 1);
}

#[cfg(unix)]
#[tokio::test]
async fn c03_a_stopped_commit_may_have_happened_and_a_look_shows_that_it_did() {
    let scene = Scene::new("full").await;
    let git = |arguments: &[&str]| {
        let done = std::process::Command::new("git")
            .arg("-C")
            .arg(&scene.workspace)
            .args(arguments)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        String::from_utf8(done.stdout).unwrap().trim().to_owned()
    };
    git(&["init", "-q"]);
    git(&["config", "user.name", "n"]);
    git(&["config", "user.email", "e@x"]);
    git(&["commit", "-q", "--allow-empty", "-m", "the first"]);
    // The hook says that it runs, and then waits for a writer who never comes.
    let hook = scene.file(".git/hooks/post-commit");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(
        &hook,
        "#!/bin/sh\nmkfifo .git/pipe\necho hooked > .git/hooked\ncat .git/pipe\n",
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&hook, mode).unwrap();
    let first = git(&["rev-parse", "HEAD"]);

    scene.write("a.txt", "a\n");
    let commit = "git add a.txt && git commit -q -m 'the second'";
    scene.model.push(shell("c", commit));
    let turn = scene.submit("commit").await;
    eventually("the hook", SOON, async || {
        scene.file(".git/hooked").exists().then_some(())
    })
    .await;
    let status = stop(&scene, &turn).await;
    assert_eq!(status["runtimeState"]["unresolved"], 0);
    let card = scene.tools().await.remove(0);
    assert_eq!(card["state"], "interrupted", "{card}");
    let output = card["output"].as_str().unwrap();
    assert!(
        output.contains("stopped; effects may be partial"),
        "{output}"
    );
    let head = git(&["rev-parse", "HEAD"]);
    assert_ne!(head, first, "the commit is there");

    let look = json!({ "command": "git log --format=%H -1", "read_only": true });
    let call = holdfast_testkit::model_server::Call::new("l", "shell", &look.to_string());
    scene.model.push(Step::default().with_call(call));
    scene.model.push(Step::text("It was committed."));
    scene.turn("what happened?").await;
    let seen = scene.tools().await.remove(1);
    let text = seen["output"].as_str().unwrap();
    if seen["state"] == "completed" {
        assert!(text.contains(&head), "{seen}");
    } else {
        // Where there is no sandbox the refusal says why.
        assert!(
            text.starts_with("refused: read-only commands need a sandbox"),
            "{seen}"
        );
    }

    for (name, surface) in [
        ("page", scene.get("/transcript/page?limit=500").await),
        ("snapshot", scene.get("/transcript/snapshot").await),
        ("recovery", scene.get("/tool-recovery").await),
        ("status", scene.get("/status").await),
        ("request", scene.model.requests().pop().unwrap().json),
    ] {
        // The statistics' name counts what persons said; here nobody said anything.
        let words = surface.to_string().replace("\"rejected\":0", "");
        for word in ["rejected", "not written"] {
            assert!(!words.contains(word), "{name}: {words}");
        }
    }
}
