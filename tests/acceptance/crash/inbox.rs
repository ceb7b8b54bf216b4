//! RS-16 over kills: what was accepted waits, is never lost, never doubled, and never runs by itself.

use holdfast_testkit::wait::{SOON, scaled, until_asked};
use holdfast_testkit::{Step, TestClient};
use serde_json::{Value, json};

use super::requests::{checked, said};
use super::stage::{Stage, text};

impl Stage {
    async fn enqueue(&self, input: &str, key: &str) -> Value {
        let (status, reply) = self.post("/inbox/items", &item(input, key)).await;
        assert_eq!(status, 202, "{reply}");
        reply
    }

    /// The texts that wait.
    async fn waiting(&self) -> Vec<String> {
        let inbox = self.get("/inbox").await;
        let items = inbox["items"].as_array().unwrap();
        items.iter().map(|item| text(&item["input"])).collect()
    }

    /// What waits is paused, and marked as found by this host.
    async fn check_recovered(&self, waiting: &[&str]) {
        let inbox = self.get("/inbox").await;
        assert_eq!(
            (&inbox["paused"], &inbox["recovered"], &inbox["reason"]),
            (&json!(true), &json!(true), &json!("host_restarted")),
            "{inbox}"
        );
        assert_eq!(self.waiting().await, waiting);
        let state = self.status().await["runtimeState"].clone();
        assert_eq!(
            (&state["phase"], &state["outcome"]),
            (&json!("idle"), &json!("paused"))
        );
    }

    async fn receipt(&self, key: &str) -> (u16, Value) {
        let path = format!("{}&key={key}", self.route("/inbox/receipt"));
        self.client().get(&path).await
    }

    async fn until_receipt(&self, key: &str, state: &str) -> Value {
        until_asked(&format!("{key} to be {state}"), SOON, async || {
            let (status, receipt) = self.receipt(key).await;
            (status == 200 && receipt["state"] == state).then_some(receipt)
        })
        .await
    }

    async fn resume(&self) {
        let (status, body) = self.post("/inbox/resume", &json!({})).await;
        assert_eq!(status, 204, "{body}");
    }

    async fn change(&self, method: &str, path: &str, body: &Value) {
        let client = self.client();
        let request = client.request(method.parse().unwrap(), &self.route(path));
        let (status, reply) = TestClient::send(request.json(body)).await.unwrap();
        assert_eq!(status, 204, "{reply}");
    }

    /// The person's messages of the transcript.
    async fn spoken(&self) -> Vec<String> {
        let items = self.transcript().await;
        items
            .iter()
            .filter(|item| item["kind"] == "user")
            .map(|item| text(&item["text"]))
            .collect()
    }
}

fn item(input: &str, key: &str) -> Value {
    json!({ "input": input, "idempotencyKey": key })
}

#[tokio::test]
async fn c23_behind_a_kill_the_queue_is_paused_and_recovered_and_all_of_it_can_be_resumed() {
    let mut stage = Stage::new("full", vec![Step::text("never seen").held("never")]).await;
    stage.submit("first").await;
    stage.model.wait_for_requests(1).await;
    let mut ids = Vec::new();
    for word in ["one", "two", "three", "four"] {
        ids.push(text(&stage.enqueue(word, word).await["itemId"]));
    }
    stage.kill();
    stage.restart();
    stage
        .check_recovered(&["one", "two", "three", "four"])
        .await;
    assert_eq!(stage.model.request_count(), 1, "nothing runs by itself");

    let path = format!("/inbox/items/{}", ids[1]);
    stage
        .change("PATCH", &path, &json!({ "input": "two, better" }))
        .await;
    let first = json!({ "itemId": ids[2], "position": 1 });
    stage.change("POST", "/inbox/move", &first).await;
    let path = format!("/inbox/items/{}", ids[0]);
    stage.change("DELETE", &path, &json!({})).await;
    // What was changed survives too, and so does the pause.
    stage.kill();
    stage.restart();
    stage
        .check_recovered(&["three", "two, better", "four"])
        .await;
    assert_eq!(stage.receipt("one").await.1["state"], "deleted");
    // A clean end keeps it as well.
    stage.end();
    stage.restart();
    stage
        .check_recovered(&["three", "two, better", "four"])
        .await;
    stage.turn("ahead of it").await;
    assert_eq!(stage.waiting().await.len(), 3);
    stage.resume().await;
    stage.until_receipt("four", "done").await;
    let order = ["first", "ahead of it", "three", "two, better", "four"];
    assert_eq!(stage.spoken().await, order);
    assert_eq!(said(&checked(&stage.model)), order);
}

#[tokio::test]
async fn c17_sent_while_finishing_and_again_behind_a_kill_it_runs_once() {
    let mut stage = Stage::new("full", vec![Step::text("the first answer")]).await;
    stage.restart_stopping_at("turn_ending", 1);
    stage.submit("first").await;
    // The session's own route can't answer where it parks; the states come from memory.
    until_asked("finishing", SOON, async || {
        let states = stage.client().get_ok("/runtime-states").await;
        (states["sessions"][0]["state"]["phase"] == "finishing").then_some(())
    })
    .await;
    stage.enqueue_unheard("the draft", "k1");
    stage.kill_where_it_parks().await;
    stage.restart();
    // The client asks for the receipt before anything else; there is none, so it sends once more.
    let (status, body) = stage.receipt("k1").await;
    assert_eq!(
        (status, body["code"].as_str()),
        (404, Some("receipt_unknown"))
    );
    stage.enqueue("the draft", "k1").await;
    let again = stage.enqueue("the draft", "k1").await;
    assert_eq!(again["disposition"], "idempotent_hit");
    stage.until_receipt("k1", "done").await;
    assert_eq!(stage.spoken().await, ["first", "the draft"]);
    assert_eq!(said(&checked(&stage.model)), ["first", "the draft"]);
}

#[tokio::test]
async fn c17_what_was_durable_and_never_answered_is_one_item_and_runs_once() {
    let mut stage = Stage::new("full", vec![]).await;
    stage.restart_stopping_at("item_durable", 1);
    stage.model.push(Step::text("never seen").held("never"));
    stage.submit("first").await;
    stage.model.wait_for_requests(1).await;
    stage.enqueue_unheard("the draft", "k1");
    stage.kill_where_it_parks().await;
    stage.restart();
    stage.check_recovered(&["the draft"]).await;
    let again = stage.enqueue("the draft", "k1").await;
    assert_eq!(
        (&again["disposition"], &again["position"]),
        (&json!("idempotent_hit"), &json!(1))
    );
    let (status, conflict) = stage.post("/inbox/items", &item("another", "k1")).await;
    assert_eq!(
        (status, conflict["code"].as_str()),
        (409, Some("idempotency_conflict"))
    );
    stage.check_recovered(&["the draft"]).await;
    stage.resume().await;
    stage.until_receipt("k1", "done").await;
    assert_eq!(stage.spoken().await, ["first", "the draft"]);
    assert_eq!(stage.count("inbox_queued"), 1);
}

#[tokio::test]
async fn c24_the_reply_to_an_enqueue_is_lost_and_its_receipt_tells() {
    let stage = Stage::new("full", vec![Step::text("fine").held("end")]).await;
    stage.submit("first").await;
    stage.model.wait_for_requests(1).await;
    // Whoever sent it is gone before the answer.
    stage.enqueue_unheard("the draft", "k1");
    let receipt = stage.until_receipt("k1", "queued").await;
    assert_eq!(receipt["disposition"], "queued_followup");
    assert_eq!(stage.waiting().await, ["the draft"]);
    stage.model.release("end");
    let receipt = stage.until_receipt("k1", "done").await;
    assert_eq!(receipt["turnId"], receipt["itemId"]);
    assert_eq!(stage.spoken().await, ["first", "the draft"]);
    assert_eq!(stage.count("inbox_queued"), 1);
    assert_eq!(stage.count("user_message"), 2);
}

#[tokio::test]
async fn rs_16_killed_between_the_queue_and_the_turn_the_item_waits_again_in_its_place() {
    let mut stage = Stage::new("full", vec![]).await;
    stage.restart_stopping_at("next_durable", 1);
    stage.model.push(Step::text("the first answer").held("end"));
    stage.submit("first").await;
    stage.model.wait_for_requests(1).await;
    let queued = stage.enqueue("one", "k1").await;
    stage.enqueue("two", "k2").await;
    stage.model.release("end");
    stage.kill_where_it_parks().await;
    assert_eq!(stage.count("user_message"), 2, "it had left the queue");
    stage.restart();
    stage.check_recovered(&["one", "two"]).await;
    assert_eq!(stage.get("/inbox").await["items"][0]["recovered"], true);
    assert_eq!(stage.spoken().await, ["first"], "in one place only");
    assert_eq!(stage.receipt("k1").await.1["state"], "queued");
    // A kill in between changes nothing.
    stage.kill();
    stage.restart();
    stage.check_recovered(&["one", "two"]).await;
    stage.resume().await;
    stage.until_receipt("k2", "done").await;
    let receipt = stage.receipt("k1").await.1;
    assert_eq!(receipt["turnId"], queued["itemId"]);
    assert_eq!(stage.spoken().await, ["first", "one", "two"]);
    assert_eq!(said(&checked(&stage.model)), ["first", "one", "two"]);
}

#[tokio::test]
async fn rs_16_after_a_restart_a_question_and_the_queue_are_both_there() {
    let mut stage = Stage::new("ask", vec![]).await;
    let command = stage.ledger.append("allowed");
    stage
        .model
        .push(super::stage::calls([super::stage::shell("c1", &command)]));
    stage.submit("write it").await;
    stage.until_asked("c1").await;
    stage.enqueue("and then this", "k1").await;
    stage.kill();
    stage.restart();
    stage.check_recovered(&["and then this"]).await;
    let prompt = stage.prompt().await;
    // A question waits: what is resumed runs behind it and does not close it.
    stage.resume().await;
    assert_eq!(stage.waiting().await, ["and then this"]);
    let (status, body) = stage.allow(&prompt).await;
    assert_eq!(status, 204, "{body}");
    stage.until_receipt("k1", "done").await;
    assert_eq!(stage.ledger.lines(), ["allowed"]);
    assert_eq!(stage.spoken().await, ["write it", "and then this"]);
    checked(&stage.model);
}

/// A client sends on and on, the host dies at a moment that nobody chose, the client sends again what
/// was not answered, and resumes.
#[tokio::test]
async fn rs_16_killed_again_and_again_every_message_runs_exactly_once() {
    let mut stage = Stage::new("full", vec![]).await;
    let mut sent: Vec<String> = Vec::new();
    for round in 0..scaled(8) {
        let words: Vec<String> = (0..4).map(|n| format!("m{round}-{n}")).collect();
        for (n, word) in words.iter().enumerate() {
            // Of the last ones, the answers are not waited for.
            if n < 2 {
                stage.enqueue(word, word).await;
            } else {
                stage.enqueue_unheard(word, word);
            }
            for _ in 0..round * 97 {
                tokio::task::yield_now().await;
            }
        }
        stage.kill();
        stage.restart();
        for word in &words {
            let (status, receipt) = stage.receipt(word).await;
            let acknowledged = word.ends_with("-0") || word.ends_with("-1");
            assert!(status == 200 || !acknowledged, "{word} is lost: {receipt}");
            stage.enqueue(word, word).await;
        }
        sent.extend(words);
        stage.resume().await;
        for word in &sent {
            stage.until_receipt(word, "done").await;
        }
        stage.idle().await;
    }
    let mut messages: Vec<String> = Vec::new();
    let mut came_back = 0;
    for (kind, payload) in stage.records() {
        match kind.as_str() {
            "user_message" => messages.push(text(&payload["text"])),
            // It is the last one of those.
            "inbox_returned" => {
                messages.pop();
                came_back += 1;
            }
            _ => {}
        }
    }
    messages.sort();
    sent.sort();
    assert_eq!(messages, sent, "each once; {came_back} had come back");
    checked(&stage.model);
}
