//! A person's retry over HTTP, and a host killed at each point of it: the right outcome each time,
//! and never a second execution (TR-36).

use serde_json::{Value, json};

use super::requests::{checked, said};
use super::stage::{Stage, action_on, calls, text, write};

const OLD: &str = "the old content\n";
const NEW: &str = "the new content\n";

/// A session with an unknown write, `c1`, that is inspected as absent and fenced, in a host that
/// offers a retry. What the killed host had put in place, somebody has replaced since.
async fn ready() -> (Stage, String) {
    let mut stage = Stage::new("full", vec![calls([write("c1", "notes.txt", NEW)])]).await;
    let file = stage.in_workspace("notes.txt");
    std::fs::write(&file, OLD).unwrap();
    stage.restart_stopping_at("after_rename", 1);
    stage.submit("write the notes").await;
    stage.kill_where_it_parks().await;
    std::fs::write(stage.beside("copy"), OLD).unwrap();
    std::fs::rename(stage.beside("copy"), &file).unwrap();
    stage.restart_with_retry();
    let attempt = stage.unresolved().await;
    let record = stage.inspect(&attempt).await;
    assert_eq!(record["inspection_state"], "absent_fenced", "{record}");
    assert_eq!(record["retry"]["allowed"], true, "{record}");
    (stage, attempt)
}

/// The request for a retry, on the present snapshot and its latest inspection.
async fn retry_of(stage: &Stage, attempt: &str) -> Value {
    let snapshot = stage.recovery().await;
    assert_eq!(snapshot["retryEnabled"], true);
    let record = super::stage::record_of(&snapshot, attempt);
    action_on(&snapshot, "retry", attempt, &text(&record["inspection_id"]))
}

fn content(stage: &Stage) -> String {
    std::fs::read_to_string(stage.in_workspace("notes.txt")).unwrap()
}

/// The card of the retry, if the transcript has one.
async fn retry_card(stage: &Stage) -> Option<Value> {
    let tools = stage.tools().await;
    tools
        .into_iter()
        .find(|(id, _)| id.starts_with("retry_"))
        .map(|(_, card)| card)
}

/// An old request, and a new one for the same attempt, run nothing any more.
async fn spent(stage: &Stage, request: &Value, attempt: &str) {
    let starts = stage.count("tool_started");
    let (status, answer) = stage.post("/tool-recovery", request).await;
    assert_eq!((status, &answer["code"]), (409, &json!("snapshot_changed")));
    let (status, answer) = stage
        .resolve("retry", attempt, &text(&request["inspectionId"]))
        .await;
    assert_eq!((status, &answer["code"]), (409, &json!("attempt_resolved")));
    assert_eq!(stage.count("tool_started"), starts);
}

#[tokio::test]
async fn tr_36_a_retry_over_http_runs_once_and_is_told_by_a_note() {
    let (stage, attempt) = ready().await;
    let request = retry_of(&stage, &attempt).await;
    let (status, snapshot) = stage.post("/tool-recovery", &request).await;
    assert_eq!(status, 200, "{snapshot}");
    assert_eq!(snapshot["calls"], json!([]));
    assert_eq!(snapshot["statistics"]["retried"], 1);
    assert_eq!(stage.idle().await["unresolved"], 0);
    assert_eq!(content(&stage), NEW);
    let card = retry_card(&stage).await.unwrap();
    assert_eq!(
        (&card["state"], &card["resultSource"], &card["retryOf"]),
        (&json!("completed"), &json!("live"), &json!(attempt))
    );
    let original = stage.tool("c1").await;
    assert_eq!(original["supersededBy"], card["attemptId"]);
    assert_eq!(
        original["output"], "",
        "its own result is not known: {original}"
    );
    spent(&stage, &request, &attempt).await;
    stage.turn("and now?").await;
    let messages = checked(&stage.model);
    assert!(
        !messages
            .iter()
            .any(|message| message.to_string().contains("retry_"))
    );
    let said = said(&messages);
    let note = &said[said.len() - 2];
    assert!(note.contains("run again behind a fence"), "{note}");
    assert!(note.contains("completed"), "{note}");
    assert_eq!(stage.count("tool_started"), 2);
}

#[tokio::test]
async fn tr_35_without_its_variable_a_host_offers_no_retry() {
    let (mut stage, attempt) = ready().await;
    let request = retry_of(&stage, &attempt).await;
    // Another host on the same data, without the variable, and then with another value.
    for value in [None, Some("true")] {
        stage.restart_with_variable("REASONIX_TOOL_RECOVERY_RETRY", value);
        let snapshot = stage.recovery().await;
        assert_eq!(snapshot["retryEnabled"], false);
        let record = super::stage::record_of(&snapshot, &attempt);
        assert_eq!(record["retry"]["code"], "retry_disabled");
        let asked = action_on(
            &snapshot,
            "retry",
            &attempt,
            &text(&request["inspectionId"]),
        );
        let (status, answer) = stage.post("/tool-recovery", &asked).await;
        assert_eq!((status, &answer["code"]), (409, &json!("retry_disabled")));
    }
    stage.restart_with_retry();
    let asked = retry_of(&stage, &attempt).await;
    assert_eq!(
        asked["inspectionId"], request["inspectionId"],
        "nothing is lost"
    );
    assert_eq!(stage.post("/tool-recovery", &asked).await.0, 200);
    stage.idle().await;
    assert_eq!(content(&stage), NEW);
}

/// The host is killed at that place of a retry. `ran`: the file has the new content then.
async fn killed_in_retry(place: &str, ran: bool) {
    let (mut stage, attempt) = ready().await;
    stage.restart_stopping_at(place, 1);
    let request = retry_of(&stage, &attempt).await;
    stage.resolve_unheard(&request);
    stage.kill_where_it_parks().await;
    stage.restart();
    assert_eq!(content(&stage), if ran { NEW } else { OLD }, "{place}");
    let stored = place != "retry_admitted";
    assert_eq!(
        stage.count("tool_started"),
        1 + usize::from(stored),
        "{place}"
    );
    assert_eq!(stage.count("superseded"), usize::from(stored), "{place}");
    let snapshot = stage.recovery().await;
    let blocked = snapshot["calls"].as_array().unwrap().clone();
    if stored {
        let card = retry_card(&stage).await.unwrap();
        let state = text(&card["state"]);
        let wanted: &[&str] = match (ran, place) {
            (true, "result_durable") => &["completed"],
            (true, _) => &["completed", "unknown"],
            (false, _) => &["not_started", "unknown"],
        };
        assert!(wanted.contains(&state.as_str()), "{place}: {card}");
        // The original is never behind the barrier again; its retry is while it is unknown.
        let ids: Vec<&Value> = blocked
            .iter()
            .map(|call| &call["identity"]["attempt_id"])
            .collect();
        let unknown: Vec<&Value> = Some(&card["attemptId"])
            .filter(|_| state == "unknown")
            .into_iter()
            .collect();
        assert_eq!(ids, unknown, "{place}");
        spent(&stage, &request, &attempt).await;
    } else {
        assert_eq!(blocked.len(), 1);
        assert!(retry_card(&stage).await.is_none());
    }
    // Nothing runs by itself, in whatever turn.
    let starts = stage.count("tool_started");
    stage.turn("continue").await;
    checked(&stage.model);
    assert_eq!(stage.count("tool_started"), starts, "{place}");
    assert_eq!(content(&stage), if ran { NEW } else { OLD }, "{place}");
    // What is left open can be settled, by another retry where nothing happened.
    for call in blocked {
        let open = text(&call["identity"]["attempt_id"]);
        let record = stage.inspect(&open).await;
        let id = text(&record["inspection_id"]);
        let action = if ran { "confirm" } else { "retry" };
        let (status, answer) = stage.resolve(action, &open, &id).await;
        assert_eq!(status, 200, "{place}: {answer}");
        stage.idle().await;
        assert_eq!(content(&stage), NEW, "{place}");
    }
    assert_eq!(stage.recovery().await["calls"], json!([]), "{place}");
}

#[tokio::test]
async fn tr_36_killed_before_the_records_of_a_retry() {
    killed_in_retry("retry_admitted", false).await;
}

#[tokio::test]
async fn tr_36_killed_between_the_start_record_and_the_execution_of_a_retry() {
    killed_in_retry("start_durable", false).await;
}

#[tokio::test]
async fn tr_36_killed_while_a_retry_executes_before_its_effect() {
    killed_in_retry("after_temp", false).await;
}

#[tokio::test]
async fn tr_36_killed_while_a_retry_executes_behind_its_effect() {
    killed_in_retry("after_rename", true).await;
}

#[tokio::test]
async fn tr_36_killed_between_the_end_of_a_retry_and_its_result() {
    killed_in_retry("tool_ended", true).await;
}

#[tokio::test]
async fn tr_36_killed_behind_the_result_of_a_retry() {
    killed_in_retry("result_durable", true).await;
}

/// TR-05: the three lines of a retry are one write, and a torn one leaves at most the earlier lines.
#[tokio::test]
async fn tr_05_a_torn_write_of_a_retry_leaves_at_most_the_earlier_lines() {
    let (mut stage, attempt) = ready().await;
    stage.restart_stopping_at("start_durable", 1);
    let request = retry_of(&stage, &attempt).await;
    stage.resolve_unheard(&request);
    stage.kill_where_it_parks().await;
    let whole = std::fs::read(stage.log()).unwrap();
    let ends: Vec<usize> = whole
        .iter()
        .enumerate()
        .filter(|(_, byte)| **byte == b'\n')
        .map(|(place, _)| place + 1)
        .collect();
    let [.., before, receipt, superseded, start] = ends[..] else {
        panic!("too few lines");
    };
    assert_eq!(start, whole.len());
    for (cut, receipts, is_superseded) in [
        (before, 1, false),
        (before + 10, 1, false),
        (receipt - 3, 1, false),
        (receipt, 2, false),
        (receipt + 10, 2, false),
        (superseded, 2, true),
        (superseded + 10, 2, true),
        (start - 3, 2, true),
    ] {
        std::fs::write(stage.log(), &whole[..cut]).unwrap();
        stage.restart();
        let snapshot = stage.recovery().await;
        assert_eq!(stage.count("receipt"), receipts, "cut at {cut}");
        assert_eq!(stage.count("tool_started"), 1, "cut at {cut}");
        let calls = snapshot["calls"].as_array().unwrap();
        if is_superseded {
            assert!(calls.is_empty(), "cut at {cut}: {snapshot}");
            let card = retry_card(&stage).await.unwrap();
            assert_eq!(card["state"], "cancelled", "cut at {cut}");
            spent(&stage, &request, &attempt).await;
        } else {
            // The safe side: the original is as unknown as it was.
            assert_eq!(calls.len(), 1, "cut at {cut}: {snapshot}");
            assert_eq!(calls[0]["identity"]["attempt_id"], attempt);
            assert!(retry_card(&stage).await.is_none());
        }
        assert_eq!(content(&stage), OLD, "cut at {cut}");
        stage.kill();
    }
}

#[tokio::test]
async fn tr_38_of_a_retry_and_a_confirmation_over_http_exactly_one_wins() {
    let (mut stage, attempt) = ready().await;
    let retry = retry_of(&stage, &attempt).await;
    let mut confirm = retry.clone();
    confirm["action"] = json!("confirm");
    let route = stage.route("/tool-recovery");
    let clients = [
        stage.client(),
        stage.client(),
        stage.client(),
        stage.client(),
    ];
    let answers = tokio::join!(
        clients[0].post(&route, &retry),
        clients[1].post(&route, &confirm),
        clients[2].post(&route, &retry),
        clients[3].post(&route, &confirm)
    );
    let won: Vec<bool> = [answers.0.0, answers.1.0, answers.2.0, answers.3.0]
        .into_iter()
        .map(|status| status == 200)
        .collect();
    assert_eq!(won.iter().filter(|won| **won).count(), 1, "{won:?}");
    let retried = won[0] || won[2];
    stage.idle().await;
    assert_eq!(content(&stage), if retried { NEW } else { OLD });
    stage.restart();
    spent(&stage, &retry, &attempt).await;
    assert_eq!(stage.count("superseded"), usize::from(retried));
    assert_eq!(stage.count("resolved"), usize::from(!retried));
    assert_eq!(content(&stage), if retried { NEW } else { OLD });
}

/// By its own host, and through the local socket of the one that holds the session.
#[tokio::test]
async fn tr_36_the_command_line_stays_until_its_retry_has_ended() {
    for held in [false, true] {
        let (mut stage, _) = ready().await;
        if !held {
            stage.end();
        }
        let session = stage.session.clone();
        let snapshot = stage.command(&["recovery", "retry", "--session", &session, "--json"]);
        assert_eq!(snapshot["calls"], json!([]), "held: {held}, {snapshot}");
        assert_eq!(snapshot["statistics"]["retried"], 1);
        assert_eq!(content(&stage), NEW, "held: {held}");
        stage.restart();
        assert_eq!(retry_card(&stage).await.unwrap()["state"], "completed");
    }
}
