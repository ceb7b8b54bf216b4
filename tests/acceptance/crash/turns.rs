//! A host killed in a turn, away from any effect: in a streamed answer, right behind an accepted
//! message, while a person is asked. And: nothing is executed again by itself (TR-16).

use holdfast_testkit::wait::SOON;
use holdfast_testkit::{Step, TestClient};
use serde_json::json;

use super::requests::{checked, said, told};
use super::stage::{Stage, calls, shell, text, until_there, wait_for_file};
use super::surfaces::Expected;

const INTERRUPTED: Expected<'static> = Expected {
    calls: &[],
    pending: false,
    jobs: 0,
    turn: "interrupted",
};

#[tokio::test]
async fn rs_16_killed_in_a_streamed_answer_the_message_is_kept_and_nothing_is_invented() {
    let steps = vec![Step::chunks(&["half of ", "an answer"]).held_after("rest", 1)];
    let mut stage = Stage::new("full", steps).await;
    let stream = stage.client().events(&stage.route("/events"), None).await;
    stage.submit("tell me").await;
    stream
        .wait_for_frame("text", SOON, |frame| frame.kind() == "text")
        .await;
    stage.kill();
    stage.restart();
    stage.check_surfaces(&INTERRUPTED).await;
    let items = stage.transcript().await;
    // The deltas were provisional; what was acknowledged is the message.
    assert_eq!(items.len(), 1, "{items:?}");
    assert_eq!(items[0]["text"], "tell me");
    stage.turn("again").await;
    let messages = checked(&stage.model);
    assert_eq!(said(&messages), ["tell me", "again"]);
    let items = stage.transcript().await;
    assert_eq!(items.last().unwrap()["text"], "done");
    stage.check_command_line(&Expected {
        turn: "completed",
        ..INTERRUPTED
    });
}

#[tokio::test]
async fn rs_16_a_message_that_was_answered_with_202_survives_a_kill_at_once() {
    let steps = vec![Step::text("never seen").held("never")];
    let mut stage = Stage::new("full", steps).await;
    let body = json!({ "input": "keep this", "submissionId": "key-1" });
    let (status, first) = stage.post("/submit", &body).await;
    stage.kill();
    assert_eq!(status, 202, "{first}");
    stage.model.release("never");
    stage.restart();
    stage.check_surfaces(&INTERRUPTED).await;
    // Its turn had begun, or it had not: then the message waits.
    let waits = stage.get("/inbox").await["items"].as_array().unwrap().len();
    assert_eq!(waits + stage.transcript().await.len(), 1);
    check_repeated(&mut stage, &body, waits == 1).await;
    let (_, again) = stage.post("/submit", &body).await;
    assert_eq!(again["turnId"], first["turnId"]);
}

#[tokio::test]
async fn rs_16_a_durable_message_whose_turn_had_not_begun_waits_and_is_there_once() {
    let mut stage = Stage::new("full", vec![]).await;
    stage.restart_stopping_at("submit_durable", 1);
    let body = json!({ "input": "keep this", "submissionId": "key-1" });
    stage.submit_unheard(&body);
    stage.kill_where_it_parks().await;
    assert_eq!(stage.model.request_count(), 0);
    stage.restart();
    stage.check_surfaces(&INTERRUPTED).await;
    assert_eq!(stage.model.request_count(), 0, "TR-16");
    let inbox = stage.get("/inbox").await;
    assert_eq!(
        (&inbox["paused"], &inbox["recovered"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(inbox["items"][0]["input"], "keep this");
    assert_eq!(inbox["items"][0]["idempotencyKey"], "key-1");
    check_repeated(&mut stage, &body, true).await;
    stage.check_command_line(&Expected {
        turn: "completed",
        ..INTERRUPTED
    });
}

/// The same message again is the same message; it runs nothing.
async fn check_repeated(stage: &mut Stage, body: &serde_json::Value, waits: bool) {
    let asked = stage.model.request_count();
    let (status, again) = stage.post("/submit", body).await;
    assert_eq!(
        (status, &again["duplicate"]),
        (202, &json!(true)),
        "{again}"
    );
    let other = json!({ "input": "another text", "submissionId": body["submissionId"] });
    let (status, refused) = stage.post("/submit", &other).await;
    assert_eq!(status, 409, "{refused}");
    assert_eq!(refused["code"], "idempotency_conflict");
    stage.idle().await;
    assert_eq!(stage.model.request_count(), asked);
    let input = text(&body["input"]);
    if waits {
        let (status, body) = stage.post("/inbox/resume", &json!({})).await;
        assert_eq!(status, 204, "{body}");
        stage
            .until_status("its turn", |state| {
                state["phase"] == "idle" && state["turnStatus"] == "completed"
            })
            .await;
        assert_eq!(stage.get("/inbox").await["items"], json!([]));
    }
    let items = stage.transcript().await;
    let users: Vec<_> = items.iter().filter(|item| item["kind"] == "user").collect();
    assert_eq!(users.len(), 1, "{items:?}");
    assert_eq!(users[0]["text"], input);
    stage.turn("go on").await;
    assert_eq!(said(&checked(&stage.model)), [input, "go on".to_owned()]);
    assert_eq!(stage.count("inbox_returned"), usize::from(waits));
}

#[tokio::test]
async fn tr_51_a_question_outlives_the_host_and_is_answered_once() {
    let mut stage = Stage::new("ask", vec![]).await;
    let command = stage.ledger.append("allowed");
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("write it").await;
    let before = stage.until_asked("c1").await;
    stage.kill();
    stage.restart();
    let waiting = Expected {
        calls: &[("c1", "proposed")],
        pending: true,
        ..INTERRUPTED
    };
    stage.check_surfaces(&waiting).await;
    assert_eq!(stage.prompt().await, before, "the same question");
    assert_eq!(stage.count("receipt"), 0);
    // A clean end keeps it too.
    stage.check_command_line(&waiting);
    stage.restart();

    let (status, body) = stage.allow(&before).await;
    assert_eq!(status, 204, "{body}");
    let (status, late) = stage.allow(&before).await;
    assert_eq!((status, &late["code"]), (409, &json!("prompt_not_pending")));
    stage.idle().await;
    let done = Expected {
        calls: &[("c1", "completed")],
        pending: false,
        turn: "completed",
        ..waiting
    };
    stage.check_surfaces(&done).await;
    assert_eq!(stage.ledger.lines(), ["allowed"]);
    checked(&stage.model);
    stage.check_command_line(&done);
}

#[tokio::test]
async fn tr_51_killed_at_the_durable_question() {
    let mut stage = Stage::new("ask", vec![]).await;
    let command = stage.ledger.append("denied");
    stage.model.push(calls([shell("c1", &command)]));
    stage.restart_stopping_at("prompt_durable", 1);
    stage.submit("write it").await;
    stage.kill_where_it_parks().await;
    stage.restart();
    let asked = stage.prompt().await;
    let (status, body) = stage.answer(&asked, false).await;
    assert_eq!(status, 204, "{body}");
    let denied = Expected {
        calls: &[("c1", "not_started")],
        ..INTERRUPTED
    };
    stage.idle().await;
    stage.check_surfaces(&denied).await;
    stage.turn("go on").await;
    assert!(told(&checked(&stage.model), "c1").starts_with("denied"));
    stage.check_command_line(&Expected {
        turn: "completed",
        ..denied
    });
    assert_eq!(stage.ledger.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn tr_16_nothing_runs_again_by_itself_whatever_a_client_repeats() {
    let mut stage = Stage::new("full", vec![]).await;
    let gate = stage.beside("gate");
    let began = stage.beside("began");
    let command = format!(
        "{}; touch {}; {}",
        stage.ledger.append("once"),
        began.display(),
        wait_for_file(&gate)
    );
    stage.model.push(calls([shell("c1", &command)]));
    let body = json!({ "input": "do it", "submissionId": "key-1" });
    let (status, first) = stage.post("/submit", &body).await;
    assert_eq!(status, 202, "{first}");
    until_there(&began).await;
    for _ in 0..2 {
        stage.restart();
        let (status, again) = stage.post("/submit", &body).await;
        assert_eq!(status, 202);
        assert_eq!(
            (text(&again["turnId"]), &again["duplicate"]),
            (text(&first["turnId"]), &json!(true))
        );
        // A client that comes back with an old place in the stream gets facts, not effects.
        let stream = stage
            .client()
            .events(
                &stage.route("/events"),
                Some("00000000000000000000000000000000.1"),
            )
            .await;
        stream
            .wait_for_frame("a gap", SOON, |frame| frame.kind() == "gap")
            .await;
        stage.turn("continue").await;
    }
    std::fs::write(gate, "").unwrap();
    stage.until_no_jobs().await;
    stage.until_tool("c1", "completed").await;
    stage.turn("continue").await;
    checked(&stage.model);
    assert_eq!(stage.ledger.lines(), ["once"]);
    assert_eq!(stage.count("receipt"), 1);
    assert_eq!(stage.count("tool_started"), 1);
    assert_eq!(stage.count("tool_result"), 1);
}

#[tokio::test]
async fn what_was_answered_about_a_session_survives_a_kill_at_once() {
    let mut stage = Stage::new("ask", vec![]).await;
    let patch = json!({ "title": "kept", "mode": "read-only" });
    let path = format!("/sessions/{}", stage.session);
    let client = stage.client();
    let request = client.request("PATCH".parse().unwrap(), &path);
    let (status, body) = TestClient::send(request.json(&patch)).await.unwrap();
    stage.kill();
    assert_eq!(status, 204, "{body}");
    stage.restart();
    let created = stage
        .client()
        .post_ok("/sessions", &json!({ "title": "the second" }))
        .await;
    stage.restart();
    let status = stage.status().await;
    assert_eq!(
        (&status["title"], &status["mode"]),
        (&json!("kept"), &json!("read-only"))
    );
    let list = stage.client().get_ok("/sessions").await;
    let titles: Vec<(String, String)> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| (text(&row["sessionId"]), text(&row["title"])))
        .collect();
    assert_eq!(titles.len(), 2, "{titles:?}");
    assert!(titles.contains(&(stage.session.clone(), "kept".to_owned())));
    assert!(titles.contains(&(text(&created["sessionId"]), "the second".to_owned())));
}

#[tokio::test]
async fn rs_08_a_restarted_host_has_a_new_epoch_and_no_current_session() {
    let mut stage = Stage::new("ask", vec![]).await;
    let before = stage.status().await["runtimeState"]["runtimeEpoch"].clone();
    assert_eq!(
        stage.client().get_ok("/status").await["sessionId"],
        json!(stage.session)
    );
    stage.restart();
    let nothing = stage.client().get_ok("/status").await;
    assert_eq!(nothing["sessionId"], "");
    let after = stage.status().await["runtimeState"].clone();
    assert_ne!(after["runtimeEpoch"], before);
    assert_eq!(after["phase"], "idle");
    assert_eq!(after["turnStatus"], "");
}
