//! A person's actions on an unknown attempt, over HTTP: what lifts the barrier, what does not, and
//! that of two at once exactly one wins, also across a restart.

use holdfast_testkit::Step;
use serde_json::{Value, json};

use super::publication::unknown_write;
use super::requests::{checked, said, told};
use super::stage::{Stage, action_on, calls, text, write};
use super::surfaces::Expected;

/// A session with one unknown write, `c1`.
async fn unknown() -> (Stage, String) {
    let stage = unknown_write().await;
    let attempt = stage.unresolved().await;
    (stage, attempt)
}

/// Asks for another write in a new turn and answers the card's state.
async fn next_write(stage: &Stage, call: &str) -> String {
    stage.model.push(calls([write(call, "next.txt", call)]));
    stage.turn("write").await;
    text(&stage.tool(call).await["state"])
}

fn refused(answer: &(u16, Value), code: &str) {
    assert_eq!((answer.0, &answer.1["code"]), (409, &json!(code)));
    assert!(
        answer.1["snapshot"]["calls"].is_array(),
        "a refusal brings the present snapshot: {}",
        answer.1
    );
}

#[tokio::test]
async fn c09_of_two_clients_that_confirm_at_once_one_wins() {
    let (mut stage, attempt) = unknown().await;
    let id = text(&stage.inspect(&attempt).await["inspection_id"]);
    let seen = stage.recovery().await;
    let request = action_on(&seen, "confirm", &attempt, &id);
    let route = stage.route("/tool-recovery");
    let (one, other) = (stage.client(), stage.client());
    let answers = tokio::join!(one.post(&route, &request), other.post(&route, &request));
    let (won, lost) = if answers.0.0 == 200 {
        answers
    } else {
        (answers.1, answers.0)
    };
    assert_eq!(won.0, 200, "{}", won.1);
    assert_eq!(won.1["calls"], json!([]));
    refused(&lost, "snapshot_changed");
    assert_eq!(stage.count("resolved"), 1);

    stage.restart();
    refused(
        &stage.post("/tool-recovery", &request).await,
        "snapshot_changed",
    );
    refused(
        &stage.resolve("confirm", &attempt, &id).await,
        "attempt_resolved",
    );
    refused(
        &stage.resolve("dismiss", &attempt, "").await,
        "attempt_resolved",
    );
    assert_eq!(stage.count("resolved"), 1);
    let confirmed = Expected {
        calls: &[("c1", "user_confirmed")],
        pending: false,
        jobs: 0,
        turn: "interrupted",
    };
    stage.check_surfaces(&confirmed).await;
    let card = stage.tool("c1").await;
    assert_eq!(card["output"], "", "a confirmation is no output: {card}");
    stage.check_command_line(&confirmed);
}

#[tokio::test]
async fn tr_38_an_inspection_outlives_the_host_and_its_confirmation_counts_once() {
    let (mut stage, attempt) = unknown().await;
    let id = text(&stage.inspect(&attempt).await["inspection_id"]);
    let before = action_on(&stage.recovery().await, "confirm", &attempt, &id);
    stage.restart();
    refused(
        &stage.post("/tool-recovery", &before).await,
        "snapshot_changed",
    );
    let request = action_on(&stage.recovery().await, "confirm", &attempt, &id);
    let route = stage.route("/tool-recovery");
    let (one, other) = (stage.client(), stage.client());
    let answers = tokio::join!(one.post(&route, &request), other.post(&route, &request));
    let mut statuses = [answers.0.0, answers.1.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409]);
    stage.restart();
    assert_eq!(stage.count("resolved"), 1);
    assert_eq!(stage.recovery().await["statistics"]["confirmed"], 1);
    assert_eq!(stage.recovery().await["calls"], json!([]));
}

#[tokio::test]
async fn tr_33_only_the_latest_inspection_of_the_same_attempt_counts() {
    let (stage, attempt) = unknown().await;
    for action in ["confirm", "reject"] {
        refused(&stage.resolve(action, &attempt, "").await, "not_inspected");
    }
    let first = text(&stage.inspect(&attempt).await["inspection_id"]);
    let second = text(&stage.inspect(&attempt).await["inspection_id"]);
    assert_ne!(first, second);
    for action in ["confirm", "reject"] {
        refused(
            &stage.resolve(action, &attempt, &first).await,
            "not_inspected",
        );
    }
    refused(
        &stage.resolve("retry", &attempt, &second).await,
        "retry_disabled",
    );
    refused(
        &stage
            .resolve("inspect", "00000000000000000000000000000000", "")
            .await,
        "attempt_unknown",
    );
    assert_eq!(stage.count("resolved"), 0);
    assert_eq!(stage.resolve("confirm", &attempt, &second).await.0, 200);
}

#[tokio::test]
async fn tr_33_a_rejection_lifts_nothing_and_leaves_the_other_ways() {
    let (mut stage, attempt) = unknown().await;
    let id = text(&stage.inspect(&attempt).await["inspection_id"]);
    let (status, snapshot) = stage.resolve("reject", &attempt, &id).await;
    assert_eq!(status, 200, "{snapshot}");
    assert_eq!(snapshot["statistics"]["rejected"], 1);
    assert_eq!(snapshot["statistics"]["unknown"], 1);
    assert_eq!(next_write(&stage, "w1").await, "not_started");
    stage.restart();
    assert_eq!(next_write(&stage, "w2").await, "not_started");
    let id = text(&stage.inspect(&attempt).await["inspection_id"]);
    assert_eq!(stage.resolve("confirm", &attempt, &id).await.0, 200);
    assert_eq!(next_write(&stage, "w3").await, "completed");
    checked(&stage.model);
}

#[tokio::test]
async fn tr_24_a_confirmation_lifts_the_barrier_and_is_told_as_a_persons_word() {
    let (mut stage, attempt) = unknown().await;
    assert_eq!(next_write(&stage, "w1").await, "not_started");
    let id = text(&stage.inspect(&attempt).await["inspection_id"]);
    assert_eq!(stage.resolve("confirm", &attempt, &id).await.0, 200);
    assert_eq!(next_write(&stage, "w2").await, "completed");
    let messages = checked(&stage.model);
    assert!(told(&messages, "c1").contains("unknown"), "it stays");
    let said = said(&messages);
    let note = &said[said.len() - 2];
    assert!(note.contains("the person looked and says"), "{note}");
    assert!(!note.contains("notes.txt"), "no arguments: {note}");
    let expected = Expected {
        calls: &[
            ("c1", "user_confirmed"),
            ("w1", "not_started"),
            ("w2", "completed"),
        ],
        pending: false,
        jobs: 0,
        turn: "completed",
    };
    stage.check_surfaces(&expected).await;
    stage.check_command_line(&expected);
}

#[tokio::test]
async fn tr_24_a_dismissal_lifts_the_barrier_and_the_outcome_stays_unknown() {
    let (mut stage, attempt) = unknown().await;
    assert_eq!(next_write(&stage, "w1").await, "not_started");
    let (status, snapshot) = stage.resolve("dismiss", &attempt, "").await;
    assert_eq!(status, 200, "{snapshot}");
    assert_eq!(snapshot["statistics"]["dismissed"], 1);
    assert_eq!(next_write(&stage, "w2").await, "completed");
    let said = said(&checked(&stage.model));
    let note = &said[said.len() - 2];
    assert!(note.contains("the outcome stays unknown"), "{note}");
    stage.restart();
    let expected = Expected {
        calls: &[
            ("c1", "user_dismissed"),
            ("w1", "not_started"),
            ("w2", "completed"),
        ],
        pending: false,
        jobs: 0,
        turn: "completed",
    };
    stage.check_surfaces(&expected).await;
    stage.check_command_line(&expected);
}

#[tokio::test]
async fn tr_34_a_dismissal_is_admitted_during_a_turn_and_on_an_older_revision() {
    let (stage, attempt) = unknown().await;
    let seen = stage.recovery().await;
    let id = text(&stage.inspect(&attempt).await["inspection_id"]);
    stage
        .model
        .push(calls([write("w1", "next.txt", "w1")]).held("thinking"));
    stage.submit("write").await;
    stage
        .until_status("the turn", |state| state["phase"] == "executing")
        .await;
    for action in ["inspect", "confirm", "reject"] {
        refused(&stage.resolve(action, &attempt, &id).await, "turn_running");
    }
    let other = json!({ "runtimeEpoch": "00000000000000000000000000000000" });
    let mut elsewhere = action_on(&seen, "dismiss", &attempt, "");
    elsewhere["runtimeEpoch"] = other["runtimeEpoch"].clone();
    refused(
        &stage.post("/tool-recovery", &elsewhere).await,
        "snapshot_changed",
    );
    let (status, body) = stage
        .post("/tool-recovery", &action_on(&seen, "dismiss", &attempt, ""))
        .await;
    assert_eq!(status, 200, "{body}");
    stage.model.release("thinking");
    stage.allow_all().await;
    assert_eq!(stage.tool("w1").await["state"], "completed");
    checked(&stage.model);
    // Told with the next message, behind what was sent already.
    stage.turn("and?").await;
    let said = said(&checked(&stage.model));
    assert!(said[said.len() - 2].contains("the outcome stays unknown"));
}

#[tokio::test]
async fn tr_34_a_running_command_is_not_dismissed() {
    let mut stage = Stage::new("full", vec![]).await;
    let began = stage.beside("began");
    let gate = stage.beside("gate");
    let command = format!(
        "touch {}; {}",
        began.display(),
        super::stage::wait_for_file(&gate)
    );
    stage
        .model
        .push(Step::default().with_call(super::stage::shell("c1", &command)));
    stage.submit("wait").await;
    super::stage::until_there(&began).await;
    stage.restart();
    let attempt = text(&stage.tool("c1").await["attemptId"]);
    refused(
        &stage.resolve("dismiss", &attempt, "").await,
        "executor_alive",
    );
    std::fs::write(gate, "").unwrap();
    stage.until_no_jobs().await;
    refused(
        &stage.resolve("dismiss", &attempt, "").await,
        "attempt_resolved",
    );
    assert_eq!(stage.tool("c1").await["state"], "completed");
}
