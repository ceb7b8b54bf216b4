//! RS-16: what is sent while a turn runs waits, runs in its order, and can be changed until then.

use holdfast_testkit::http::TestClient;
use holdfast_testkit::model_server::Step;
use holdfast_testkit::wait::{SOON, scaled};
use serde_json::{Value, json};

use super::scene::{Scene, eventually, messages, shell};

impl Scene {
    async fn enqueue(&self, input: &str, key: &str) -> Value {
        let body = json!({ "input": input, "idempotencyKey": key });
        let (status, reply) = self.post("/inbox/items", body).await;
        assert_eq!(status, 202, "{reply}");
        reply
    }

    async fn change(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let request = self
            .client
            .request(method.parse().unwrap(), &self.path(path));
        let request = match body {
            Some(body) => request.json(&body),
            None => request,
        };
        TestClient::send(request).await.unwrap()
    }

    async fn changed(&self, method: &str, path: &str, body: Option<Value>) {
        let (status, reply) = self.change(method, path, body).await;
        assert_eq!(status, 204, "{path}: {reply}");
    }

    /// What waits, in order.
    async fn waiting(&self) -> Vec<String> {
        let inbox = self.get("/inbox").await;
        let items = inbox["items"].as_array().unwrap();
        for (index, item) in items.iter().enumerate() {
            assert_eq!(item["position"], index + 1);
        }
        items.iter().map(|item| text(&item["input"])).collect()
    }

    async fn receipt(&self, key: &str) -> Value {
        self.get(&format!("/inbox/receipt?key={key}")).await
    }

    /// Waits until the message of a key is done.
    async fn until_done(&self, key: &str) -> Value {
        eventually(&format!("{key} to be done"), SOON, async || {
            let receipt = self.receipt(key).await;
            (receipt["state"] == "done").then_some(receipt)
        })
        .await
    }

    /// The person's messages of the transcript.
    async fn said(&self) -> Vec<String> {
        let items = self.items().await;
        items
            .iter()
            .filter(|item| item["kind"] == "user")
            .map(|item| text(&item["text"]))
            .collect()
    }

    /// A turn whose model is asked and does not answer before `gate` is released.
    async fn held(&self, gate: &str) -> String {
        self.model.push(Step::text("the first answer").held(gate));
        let asked = self.model.request_count();
        let turn = self.submit("first").await;
        self.model.wait_for_requests(asked + 1).await;
        turn
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn c23_three_messages_during_a_run_all_run_in_order() {
    let scene = Scene::new("full").await;
    let turn = scene.held("end").await;
    for (index, word) in ["one", "two", "three"].into_iter().enumerate() {
        scene.model.push(Step::text(&format!("answer {word}")));
        let reply = scene.enqueue(word, &format!("k{word}")).await;
        assert_eq!(reply["disposition"], "queued_followup");
        assert_eq!(reply["position"], index + 1);
    }
    assert_eq!(scene.waiting().await, ["one", "two", "three"]);
    let receipt = scene.receipt("ktwo").await;
    assert_eq!(
        (&receipt["state"], receipt.get("turnId")),
        (&json!("queued"), None)
    );
    scene.model.release("end");
    let last = scene.until_done("kthree").await;
    scene.ended(last["turnId"].as_str().unwrap()).await;
    assert_eq!(scene.said().await, ["first", "one", "two", "three"]);
    assert_ne!(last["turnId"], json!(turn));
    assert_eq!(last["turnId"], last["itemId"]);
    assert_eq!(last["disposition"], "queued_followup");
    assert_eq!(scene.waiting().await, Vec::<String>::new());
    let answers: Vec<String> = scene
        .items()
        .await
        .iter()
        .filter(|item| item["kind"] == "assistant")
        .map(|item| text(&item["text"]))
        .collect();
    assert_eq!(answers[1..], ["answer one", "answer two", "answer three"]);
}

#[tokio::test]
async fn rs_16_a_queued_turn_never_publishes_the_previous_idle_over_the_next() {
    let scene = Scene::new("full").await;
    let stream = scene.client.events(&scene.path("/events"), None).await;
    scene.held("end").await;
    // No more may wait at once.
    let rounds = scaled(20).min(64);
    for round in 0..rounds {
        scene.model.push(Step::text("fine"));
        scene.enqueue("more", &format!("k{round}")).await;
    }
    scene.model.release("end");
    eventually("the last end, and idle", SOON, async || {
        let frames = stream.frames();
        let ends = frames.iter().filter(|frame| frame.kind() == "turn_done");
        let state = frames
            .iter()
            .rfind(|frame| frame.kind() == "runtime_state")?;
        (ends.count() == rounds + 1 && state.data["runtimeState"]["phase"] == "idle").then_some(())
    })
    .await;
    let phases: Vec<String> = stream
        .frames()
        .iter()
        .filter(|frame| frame.kind() == "runtime_state")
        .map(|frame| text(&frame.data["runtimeState"]["phase"]))
        .skip_while(|phase| phase == "idle")
        .collect();
    let idle = phases.iter().position(|phase| phase == "idle").unwrap();
    assert_eq!(idle, phases.len() - 1, "{phases:?}");
}

#[tokio::test]
async fn rs_16_what_waits_is_edited_moved_and_deleted() {
    let scene = Scene::new("full").await;
    scene.held("end").await;
    let mut ids = Vec::new();
    for word in ["a", "b", "c", "d"] {
        ids.push(text(&scene.enqueue(word, word).await["itemId"]));
    }
    let stream = scene.client.events(&scene.path("/events"), None).await;
    let edit = json!({ "input": "b, better" });
    let path = format!("/inbox/items/{}", ids[1]);
    scene.changed("PATCH", &path, Some(edit)).await;
    let first = json!({ "itemId": ids[3], "position": 1 });
    scene.changed("POST", "/inbox/move", Some(first)).await;
    scene
        .changed("DELETE", &format!("/inbox/items/{}", ids[0]), None)
        .await;
    assert_eq!(scene.waiting().await, ["d", "b, better", "c"]);
    let told = stream
        .wait_for_frame("the change", SOON, |frame| {
            frame.kind() == "inbox_changed" && frame.data["count"] == 3
        })
        .await;
    assert_eq!(
        told.data["revision"],
        scene.get("/inbox").await["revision"],
        "{:?}",
        told.data
    );
    assert_eq!(scene.receipt("a").await["state"], "deleted");

    let (status, body) = scene
        .change("DELETE", &format!("/inbox/items/{}", ids[0]), None)
        .await;
    assert_eq!(
        (status, body["code"].as_str()),
        (404, Some("inbox_item_unknown"))
    );
    let empty = scene
        .change("PATCH", &path, Some(json!({ "input": " " })))
        .await;
    assert_eq!(empty.1["code"], "input_empty");
    // What was given up stays so, also for who sends it again.
    let again = scene.enqueue("a", "a").await;
    assert_eq!(again["disposition"], "idempotent_hit");
    assert_eq!(again["position"], 0);
    for _ in 0..3 {
        scene.model.push(Step::text("fine"));
    }
    scene.model.release("end");
    scene.until_done("c").await;
    assert_eq!(scene.said().await, ["first", "d", "b, better", "c"]);
}

#[tokio::test]
async fn rs_16_a_key_has_one_message_whether_it_was_submitted_or_queued() {
    let scene = Scene::new("full").await;
    scene.model.push(Step::text("fine").held("end"));
    // Nothing is in its way: it begins at once.
    let begun = scene.enqueue("one", "k1").await;
    assert_eq!(
        (&begun["disposition"], &begun["position"]),
        (&json!("started"), &json!(0))
    );
    let receipt = scene.receipt("k1").await;
    assert_eq!(receipt["state"], "running");
    assert_eq!(receipt["turnId"], begun["itemId"]);
    let queued = scene.enqueue("two", "k2").await;

    for (path, key_name) in [
        ("/submit", "submissionId"),
        ("/inbox/items", "idempotencyKey"),
    ] {
        for (key, item) in [("k1", &begun), ("k2", &queued)] {
            let other = json!({ "input": "another", key_name: key });
            let (status, body) = scene.post(path, other).await;
            assert_eq!(
                (status, body["code"].as_str()),
                (409, Some("idempotency_conflict"))
            );
            let input = if key == "k1" { "one" } else { "two" };
            let (status, body) = scene
                .post(path, json!({ "input": input, key_name: key }))
                .await;
            assert_eq!(status, 202, "{body}");
            if path == "/submit" {
                assert_eq!(
                    (&body["duplicate"], &body["turnId"]),
                    (&json!(true), &item["itemId"])
                );
            } else {
                assert_eq!(body["disposition"], "idempotent_hit");
                assert_eq!(body["itemId"], item["itemId"]);
            }
        }
    }
    let (status, body) = scene.change("GET", "/inbox/receipt?key=never", None).await;
    assert_eq!(
        (status, body["code"].as_str()),
        (404, Some("receipt_unknown"))
    );
    let keyless = json!({ "input": "three", "idempotencyKey": "" });
    let (status, body) = scene.post("/inbox/items", keyless).await;
    assert_eq!(
        (status, body["code"].as_str()),
        (400, Some("idempotency_key_missing"))
    );
    assert_eq!(scene.waiting().await, ["two"]);
    scene.model.push(Step::text("fine"));
    scene.model.release("end");
    scene.until_done("k2").await;
    assert_eq!(scene.said().await, ["one", "two"]);
}

#[tokio::test]
async fn rs_16_the_queue_holds_64_messages_of_4_mib_and_no_more() {
    let scene = Scene::new("full").await;
    scene.held("end").await;
    let large = "x".repeat(4 * 1024 * 1024);
    scene.enqueue(&large, "large").await;
    let body = json!({ "input": format!("{large}x"), "idempotencyKey": "larger" });
    let (status, refused) = scene.post("/inbox/items", body).await;
    assert_eq!(
        (status, refused["code"].as_str()),
        (413, Some("input_too_large"))
    );
    for index in 1..64 {
        scene.enqueue("small", &format!("k{index}")).await;
    }
    let body = json!({ "input": "small", "idempotencyKey": "k64" });
    let (status, refused) = scene.post("/inbox/items", body.clone()).await;
    assert_eq!(
        (status, refused["code"].as_str()),
        (409, Some("inbox_full"))
    );
    let inbox = scene.get("/inbox").await;
    assert_eq!(inbox["capacity"], 64);
    assert_eq!(inbox["items"].as_array().unwrap().len(), 64);
    assert_eq!(inbox["items"][0]["input"], json!(large));
    // A refused key is free, and a place that becomes free is too.
    let first = text(&inbox["items"][0]["itemId"]);
    scene
        .changed("DELETE", &format!("/inbox/items/{first}"), None)
        .await;
    let (status, _) = scene.post("/inbox/items", body).await;
    assert_eq!(status, 202);
}

#[tokio::test]
async fn rs_16_what_is_wanted_at_once_comes_into_the_turn_before_its_model_is_asked_again() {
    let scene = Scene::new("full").await;
    scene.write("a.txt", "a");
    scene
        .model
        .push(Step::call("r", "read_file", "{\"path\":\"a.txt\"}").held("call"));
    scene.model.push(Step::text("both").held("end"));
    let turn = scene.submit("read it").await;
    scene.model.wait_for_requests(1).await;
    scene.enqueue("later", "k1").await;
    let body = json!({ "input": "and say hello", "idempotencyKey": "k2", "intent": "steer" });
    let (status, reply) = scene.post("/inbox/items", body).await;
    assert_eq!(status, 202);
    assert_eq!(reply["position"], 1, "before what waits: {reply}");
    scene.model.release("call");
    scene.model.wait_for_requests(2).await;
    let sent = messages(&scene.model.requests()[1]);
    let last = &sent[sent.len() - 1];
    assert_eq!(last["content"], "and say hello", "{sent:?}");
    assert_eq!(sent[sent.len() - 2]["role"], "tool");
    let receipt = scene.receipt("k2").await;
    assert_eq!(receipt["state"], "running");
    assert_eq!(receipt["turnId"], json!(turn));
    // Behind the last request it falls back to the queue, and goes first there.
    let edit = json!({ "intent": "steer" });
    let third = scene.enqueue("at once, if you can", "k3").await;
    let path = format!("/inbox/items/{}", text(&third["itemId"]));
    scene.changed("PATCH", &path, Some(edit)).await;
    assert_eq!(scene.waiting().await, ["at once, if you can", "later"]);
    scene.model.push(Step::text("fine"));
    scene.model.push(Step::text("fine"));
    scene.model.release("end");
    scene.until_done("k1").await;
    assert_eq!(
        scene.said().await,
        ["read it", "and say hello", "at once, if you can", "later"]
    );
    let ends = scene.kinds();
    assert_eq!(ends.iter().filter(|kind| *kind == "turn_ended").count(), 3);
}

#[tokio::test]
async fn rs_16_a_paused_queue_waits_and_a_submit_goes_ahead_of_it() {
    let scene = Scene::new("full").await;
    let turn = scene.held("end").await;
    scene.enqueue("one", "k1").await;
    let second = scene.enqueue("two", "k2").await;
    scene.changed("POST", "/inbox/pause", None).await;
    scene.model.release("end");
    let status = scene.ended(&turn).await;
    assert_eq!(status["runtimeState"]["outcome"], "paused");
    scene.model.push(Step::text("fine"));
    scene.turn("ahead").await;
    assert_eq!(scene.waiting().await, ["one", "two"]);
    // So does what a person wants at once.
    scene.model.push(Step::text("fine"));
    let edit = json!({ "intent": "steer" });
    let path = format!("/inbox/items/{}", text(&second["itemId"]));
    scene.changed("PATCH", &path, Some(edit)).await;
    scene.until_done("k2").await;
    assert_eq!(scene.waiting().await, ["one"]);
    assert_eq!(scene.get("/inbox").await["paused"], true);
    let behind = scene.enqueue("three", "k3").await;
    assert_eq!(behind["disposition"], "queued_followup");
    scene.model.push(Step::text("fine"));
    scene.model.push(Step::text("fine"));
    scene.changed("POST", "/inbox/resume", None).await;
    scene.until_done("k3").await;
    assert_eq!(
        scene.said().await,
        ["first", "ahead", "two", "one", "three"]
    );
    let inbox = scene.get("/inbox").await;
    assert_eq!(
        (&inbox["paused"], &inbox["reason"]),
        (&json!(false), &json!(""))
    );
}

#[tokio::test]
async fn rs_16_a_stop_holds_back_what_waited_and_not_what_comes_then() {
    let scene = Scene::new("full").await;
    let turn = scene.held("never").await;
    scene.enqueue("waited", "k1").await;
    let (status, _) = scene.post("/cancel", json!({ "turnId": turn })).await;
    assert_eq!(status, 202);
    scene.ended(&turn).await;
    let inbox = scene.get("/inbox").await;
    assert_eq!(
        (&inbox["paused"], &inbox["reason"], &inbox["recovered"]),
        (&json!(true), &json!("stopped"), &json!(false))
    );
    scene.model.push(Step::text("fine"));
    scene.turn("something else").await;
    assert_eq!(scene.waiting().await, ["waited"]);
    let id = text(&inbox["items"][0]["itemId"]);
    scene
        .changed("DELETE", &format!("/inbox/items/{id}"), None)
        .await;
    // Nothing waits: there is nothing to be paused any more, and a Stop pauses nothing.
    assert_eq!(scene.get("/inbox").await["paused"], false);
    let turn = scene.held("never either").await;
    scene.post("/cancel", json!({ "turnId": turn })).await;
    scene.model.push(Step::text("fine"));
    scene.enqueue("behind the stop", "k2").await;
    scene.until_done("k2").await;
    assert_eq!(scene.said().await.last().unwrap(), "behind the stop");
}

#[tokio::test]
async fn rs_16_behind_a_turn_that_failed_nothing_runs_by_itself() {
    let scene = Scene::new("full").await;
    scene
        .model
        .push(Step::status(400, "{\"error\":{\"message\":\"no\"}}").held("end"));
    let turn = scene.submit("first").await;
    scene.model.wait_for_requests(1).await;
    scene.enqueue("waits", "k1").await;
    scene.model.release("end");
    let status = scene.ended(&turn).await;
    assert_eq!(status["runtimeState"]["turnStatus"], "failed");
    let inbox = scene.get("/inbox").await;
    assert_eq!(
        (&inbox["paused"], &inbox["reason"]),
        (&json!(true), &json!("turn_failed"))
    );
    assert_eq!(scene.model.request_count(), 1);
    scene.model.push(Step::text("fine"));
    scene.changed("POST", "/inbox/resume", None).await;
    scene.until_done("k1").await;
}

#[tokio::test]
async fn rs_16_while_a_question_waits_input_is_queued_and_runs_behind_the_turn() {
    let scene = Scene::new("ask").await;
    scene.model.push(shell("s", "echo x"));
    scene.model.push(Step::text("done"));
    scene.model.push(Step::text("fine"));
    scene.submit("go").await;
    scene.question().await;
    let (status, body) = scene.post("/submit", json!({ "input": "more" })).await;
    assert_eq!((status, body["code"].as_str()), (409, Some("session_busy")));
    assert!(text(&body["message"]).contains("/inbox/items"), "{body}");
    scene.enqueue("more", "k1").await;
    assert_eq!(scene.waiting().await, ["more"]);
    scene.answer(true, "once").await;
    scene.until_done("k1").await;
    assert_eq!(scene.said().await, ["go", "more"]);
    assert_eq!(scene.tools().await[0]["state"], "completed");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn rs_16_jobs_hold_nothing_up() {
    let scene = Scene::new("full").await;
    let sleep = format!("sleep 76{}", std::process::id());
    scene
        .model
        .push(shell("s", &format!("{sleep} & echo up")).held("call"));
    scene.model.push(Step::text("it is up"));
    scene.submit("start it").await;
    scene.model.wait_for_requests(1).await;
    scene.enqueue("next", "k1").await;
    scene.model.push(Step::text("fine"));
    scene.model.release("call");
    scene.until_done("k1").await;
    let jobs = scene.get("/jobs").await;
    assert_eq!(jobs.as_array().unwrap().len(), 1, "{jobs}");
    scene
        .post("/jobs/cancel", json!({ "id": jobs[0]["id"] }))
        .await;
    eventually("the job to be gone", SOON, async || {
        (scene.get("/jobs").await == json!([])).then_some(())
    })
    .await;
}

/// Two clients send at once, each by submit, and by the queue with the same key where that is busy.
/// What comes between them differs from round to round.
#[tokio::test]
async fn c15_two_windows_that_send_at_once_make_one_history() {
    let scene = Scene::new("full").await;
    // As many as one page of the transcript shows.
    let rounds = scaled(20).min(125);
    let other = scene.host.client();
    let mut expected = Vec::new();
    for round in 0..rounds {
        scene.model.push(Step::text("fine"));
        scene.model.push(Step::text("fine"));
        let (left, right) = (format!("left {round}"), format!("right {round}"));
        let (first, second) = tokio::join!(
            send(&scene.client, &scene, &left, round % 3),
            send(&other, &scene, &right, round % 7)
        );
        assert!(first && second);
        scene.until_done(&key_of(&left)).await;
        scene.until_done(&key_of(&right)).await;
        expected.extend([left, right]);
    }
    eventually("idle", SOON, async || {
        (scene.get("/status").await["runtimeState"]["phase"] == "idle").then_some(())
    })
    .await;
    let items = scene.items().await;
    let kinds: Vec<&str> = items
        .iter()
        .map(|item| item["kind"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["user", "assistant"].repeat(2 * rounds), "linear");
    let mut said = scene.said().await;
    for pair in said.chunks_mut(2) {
        pair.sort();
    }
    assert_eq!(said, expected, "each once");
    let mut seen = other
        .get_ok(&scene.path("/transcript/page?limit=500"))
        .await["items"]
        .as_array()
        .unwrap()
        .clone();
    seen.reverse();
    assert_eq!(seen, items, "both see the same");
}

fn key_of(input: &str) -> String {
    input.replace(' ', "-")
}

async fn send(client: &TestClient, scene: &Scene, input: &str, pause: usize) -> bool {
    for _ in 0..pause * 50 {
        tokio::task::yield_now().await;
    }
    let key = key_of(input);
    let body = json!({ "input": input, "submissionId": key });
    let (status, reply) = client.post(&scene.path("/submit"), &body).await;
    if status == 202 {
        return true;
    }
    assert_eq!(reply["code"], "session_busy", "{reply}");
    let body = json!({ "input": input, "idempotencyKey": key });
    let (status, reply) = client.post(&scene.path("/inbox/items"), &body).await;
    assert_eq!(status, 202, "{reply}");
    reply["disposition"] != "idempotent_hit"
}
