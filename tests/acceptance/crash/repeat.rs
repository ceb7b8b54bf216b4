//! The repeat guard with real hosts: a model that is told "continue" and proposes its command a
//! second time runs nothing before a person allows it, in every mode (TR-46, TR-23).

use holdfast_testkit::Step;
use holdfast_testkit::TestClient;
use holdfast_testkit::wait::{SOON, until_asked};
use serde_json::{Value, json};

use super::requests::{checked, said, told};
use super::stage::{Stage, calls, shell, text, until_there, wait_for_file};

/// One line into the ledger, `happened`, then a gate, and an end with a status of its own. Behind an
/// open gate it goes through.
fn gated(stage: &Stage) -> String {
    format!(
        "{}; touch {}; {}; exit 3",
        stage.ledger.append("effect"),
        stage.beside("happened").display(),
        wait_for_file(&stage.beside("gate")),
    )
}

fn open_gate(stage: &Stage) {
    std::fs::write(stage.beside("gate"), "").unwrap();
}

/// `c1` ran its effect and stands at the gate; its host is dead.
async fn killed_at_the_gate(mode: &str) -> (Stage, String) {
    let mut stage = Stage::new(mode, vec![]).await;
    let command = gated(&stage);
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("do it").await;
    if mode == "ask" {
        let asked = stage.until_asked("c1").await;
        assert_eq!(asked["kind"], "approval");
        let answer = json!({
            "id": asked["approval"]["id"],
            "generation": asked["approval"]["generation"],
            "allow": true,
            "scope": "session",
        });
        assert_eq!(stage.post("/approve", &answer).await.0, 204);
    }
    until_there(&stage.beside("happened")).await;
    stage.kill();
    (stage, command)
}

/// The real end of `c1` was adopted by another host.
async fn adopted(mode: &str) -> (Stage, String) {
    let (mut stage, command) = killed_at_the_gate(mode).await;
    open_gate(&stage);
    stage.restart();
    stage.until_no_jobs().await;
    let card = stage.until_tool("c1", "failed").await;
    assert_eq!(card["resultSource"], "recovered", "{card}");
    assert_eq!(stage.ledger.count("effect"), 1);
    (stage, command)
}

/// The model proposes that command as `call`, in a new turn.
async fn proposed_again(stage: &Stage, call: &str, command: &str) -> Value {
    stage.model.push(calls([shell(call, command)]));
    stage.submit("continue").await;
    stage.until_asked(call).await
}

/// A question about a repetition of `c1`.
fn check_question(asked: &Value, state: &str, same_call: bool) {
    let approval = &asked["approval"];
    assert_eq!(asked["kind"], "repeat", "{asked}");
    assert_eq!(approval["scopes"], json!(["once"]), "{asked}");
    let earlier = &approval["earlier"];
    assert_eq!(earlier["callId"], "c1", "{asked}");
    assert_eq!(earlier["state"], state, "{asked}");
    assert_eq!(earlier["sameCall"], same_call, "{asked}");
    assert_eq!(earlier["tool"], "shell", "{asked}");
    assert!(earlier["startedAt"].is_number(), "{asked}");
    assert_eq!(earlier["endedAt"].is_number(), state != "in_flight");
    let outcome = text(&earlier["outcome"]);
    assert!(text(&approval["reason"]).contains(&outcome), "{asked}");
}

/// The turn ends, and nobody is asked on the way.
async fn runs_without_a_question(stage: &Stage, call: &str, command: &str, end: &str) {
    stage.model.push(calls([shell(call, command)]));
    stage.submit("once more").await;
    let state = stage
        .until_status("the turn to end or to ask", |state| {
            state["pendingPrompt"] == true
                || (state["phase"] == "idle" && state["turnStatus"] != "in_progress")
        })
        .await;
    assert_eq!(state["pendingPrompt"], false, "{state}");
    assert_eq!(stage.tool(call).await["state"], end);
}

#[tokio::test]
async fn tr_46_after_a_kill_the_same_command_runs_once_more_only_when_a_person_allows_it() {
    let (stage, command) = adopted("full").await;
    let asked = proposed_again(&stage, "c2", &command).await;
    check_question(&asked, "failed", true);
    assert_eq!(asked["approval"]["earlier"]["exitCode"], 3, "{asked}");
    assert_eq!(stage.tool("c2").await["state"], "proposed");
    assert_eq!(stage.count("receipt"), 1, "a question has no receipt");
    // Nothing further is allowed with it.
    let answer = json!({
        "id": asked["approval"]["id"],
        "generation": 1,
        "allow": true,
        "scope": "session",
    });
    let (status, body) = stage.post("/approve", &answer).await;
    assert_eq!((status, &body["code"]), (400, &json!("scope_unknown")));
    assert_eq!(stage.ledger.count("effect"), 1);

    // Two clients answer at once: it runs once.
    let (one, other) = (stage.client(), stage.client());
    let allow = json!({ "id": asked["approval"]["id"], "generation": 1, "allow": true });
    let route = stage.route("/approve");
    let answers = tokio::join!(one.post(&route, &allow), other.post(&route, &allow));
    let mut statuses = [answers.0.0, answers.1.0];
    statuses.sort_unstable();
    assert_eq!(statuses, [204, 409]);
    stage.idle().await;
    assert_eq!(stage.tool("c2").await["state"], "failed");
    assert_eq!(stage.ledger.count("effect"), 2);

    // Allowed once: used up for that triple.
    runs_without_a_question(&stage, "c3", &command, "failed").await;
    assert_eq!(stage.ledger.count("effect"), 3);
    checked(&stage.model);
}

#[tokio::test]
async fn tr_46_a_space_more_is_asked_as_the_first_command_behind_the_restart() {
    let (stage, command) = adopted("full").await;
    stage
        .model
        .push(calls([shell("c2", &format!("{command} "))]));
    stage
        .model
        .push(calls([shell("c3", &format!("{command}  "))]));
    stage.submit("continue").await;
    let asked = stage.until_asked("c2").await;
    check_question(&asked, "failed", false);
    assert_eq!(stage.answer(&asked, false).await.0, 204);
    // Denied: the next one is the first that would run.
    let again = stage.until_asked("c3").await;
    check_question(&again, "failed", false);
    assert_eq!(stage.answer(&again, false).await.0, 204);
    stage.idle().await;
    assert_eq!(stage.ledger.count("effect"), 1);
    // The first turn is over. The very same command is asked all the same.
    runs_without_a_question(&stage, "c4", "true", "completed").await;
    let same = proposed_again(&stage, "c5", &command).await;
    check_question(&same, "failed", true);
    assert_eq!(stage.answer(&same, false).await.0, 204);
    stage.idle().await;
    let messages = checked(&stage.model);
    assert!(told(&messages, "c2").starts_with("denied"));
    assert_eq!(stage.ledger.count("effect"), 1);
}

#[tokio::test]
async fn tr_46_the_first_command_behind_a_restart_is_asked_once() {
    let (stage, _) = adopted("full").await;
    let asked = proposed_again(&stage, "c2", "true").await;
    check_question(&asked, "failed", false);
    stage.model.push(calls([shell("c3", "echo another")]));
    assert_eq!(stage.allow(&asked).await.0, 204);
    stage.idle().await;
    assert_eq!(stage.tool("c2").await["state"], "completed");
    assert_eq!(stage.tool("c3").await["state"], "completed");
    assert_eq!(stage.ledger.count("effect"), 1);
}

#[tokio::test]
async fn tr_46_denied_stays_and_allowed_is_used_up_across_restarts() {
    let (mut stage, command) = adopted("full").await;
    let asked = proposed_again(&stage, "c2", &command).await;
    assert_eq!(stage.answer(&asked, false).await.0, 204);
    stage.idle().await;
    stage.kill();
    stage.restart();
    let asked = proposed_again(&stage, "c3", &command).await;
    check_question(&asked, "failed", true);
    assert_eq!(stage.ledger.count("effect"), 1);
    assert_eq!(stage.allow(&asked).await.0, 204);
    stage.idle().await;
    assert_eq!(stage.ledger.count("effect"), 2);
    stage.kill();
    stage.restart();
    runs_without_a_question(&stage, "c4", &command, "failed").await;
    assert_eq!(stage.ledger.count("effect"), 3);
    checked(&stage.model);
}

#[tokio::test]
async fn tr_46_a_question_about_a_repetition_outlives_the_host() {
    let (mut stage, command) = adopted("full").await;
    let asked = proposed_again(&stage, "c2", &command).await;
    stage.kill();
    stage.restart();
    let state = stage.status().await["runtimeState"].clone();
    assert_eq!(
        (
            &state["phase"],
            &state["turnStatus"],
            &state["pendingPrompt"]
        ),
        (&json!("idle"), &json!("interrupted"), &json!(true))
    );
    assert_eq!(stage.prompt().await, asked, "it is the same question");
    assert_eq!(stage.allow(&asked).await.0, 204);
    stage.idle().await;
    assert_eq!(stage.ledger.count("effect"), 2);
    runs_without_a_question(&stage, "c3", &command, "failed").await;
    checked(&stage.model);
}

#[tokio::test]
async fn tr_46_an_allowance_whose_call_never_started_is_not_used_up() {
    let (mut stage, command) = adopted("full").await;
    stage.kill();
    stage.restart_stopping_at("start_durable", 1);
    let asked = proposed_again(&stage, "c2", &command).await;
    stage.answer_unheard(&asked);
    stage.kill_where_it_parks().await;
    stage.restart();
    assert_eq!(stage.tool("c2").await["state"], "not_started");
    let asked = proposed_again(&stage, "c3", &command).await;
    check_question(&asked, "failed", true);
    assert_eq!(stage.answer(&asked, false).await.0, 204);
    stage.idle().await;
    assert_eq!(stage.ledger.count("effect"), 1);
    checked(&stage.model);
}

#[tokio::test]
async fn tr_46_what_runs_again_behind_a_restart_is_asked_about_and_anew_when_it_ends() {
    let (mut stage, command) = killed_at_the_gate("full").await;
    stage.restart();
    let asked = proposed_again(&stage, "c2", &command).await;
    check_question(&asked, "in_flight", true);
    assert!(text(&asked["approval"]["reason"]).contains("still runs"));
    open_gate(&stage);
    // It has another end now than the person was shown.
    let again = until_asked("the question about what has ended", SOON, async || {
        let asked = stage.prompt().await;
        (asked["approval"]["generation"] == 2).then_some(asked)
    })
    .await;
    check_question(&again, "failed", true);
    assert_eq!(again["promptId"], asked["promptId"]);
    let (status, body) = stage.allow(&asked).await;
    assert_eq!((status, &body["code"]), (409, &json!("prompt_stale")));
    assert_eq!(stage.ledger.count("effect"), 1);
    assert_eq!(stage.allow(&again).await.0, 204);
    stage.idle().await;
    assert_eq!(stage.ledger.count("effect"), 2);
    checked(&stage.model);
}

#[tokio::test]
async fn tr_46_stopped_then_repeated_is_asked_and_a_grant_does_not_go_around_it() {
    let mut stage = Stage::new("ask", vec![]).await;
    let command = gated(&stage);
    let grant = |asked: &Value| {
        json!({
            "id": asked["approval"]["id"],
            "generation": asked["approval"]["generation"],
            "allow": true,
            "scope": "session",
        })
    };
    stage.model.push(calls([shell("c1", &command)]));
    let turn = stage.submit("do it").await;
    let asked = stage.until_asked("c1").await;
    assert_eq!(asked["kind"], "approval");
    assert_eq!(asked["approval"].get("earlier"), None, "{asked}");
    assert_eq!(stage.post("/approve", &grant(&asked)).await.0, 204);
    until_there(&stage.beside("happened")).await;
    assert_eq!(
        stage.post("/cancel", &json!({ "turnId": turn })).await.0,
        202
    );
    stage.idle().await;
    assert_eq!(stage.tool("c1").await["state"], "interrupted");
    open_gate(&stage);

    let asked = proposed_again(&stage, "c2", &command).await;
    check_question(&asked, "interrupted", true);
    assert!(text(&asked["approval"]["reason"]).contains("may be partial"));
    assert_eq!(stage.answer(&asked, false).await.0, 204);
    stage.idle().await;
    // Another restart, and another mode.
    let route = format!("/sessions/{}", stage.session);
    let client = stage.client();
    let request = client.request("PATCH".parse().unwrap(), &route);
    let patched = TestClient::send(request.json(&json!({ "mode": "full" }))).await;
    assert!(
        patched.as_ref().is_ok_and(|(status, _)| *status < 300),
        "{patched:?}"
    );
    stage.kill();
    stage.restart();
    let asked = proposed_again(&stage, "c3", &command).await;
    check_question(&asked, "interrupted", true);
    assert_eq!(stage.ledger.count("effect"), 1);
    assert_eq!(stage.allow(&asked).await.0, 204);
    stage.idle().await;
    assert_eq!(stage.ledger.count("effect"), 2);
    runs_without_a_question(&stage, "c4", &command, "failed").await;
    checked(&stage.model);
}

/// A session whose command `c1` had its effect, and nobody can tell how it ended.
#[cfg(target_os = "linux")]
async fn unknown() -> (Stage, String, String) {
    let stage = Stage::new("full", vec![]).await;
    // The command ends its own supervisor and itself.
    let command = format!(
        "{}; kill -9 $PPID; kill -9 $$",
        stage.ledger.append("effect")
    );
    stage.model.push(calls([shell("c1", &command)]));
    stage.model.push(Step::text("I don't know"));
    stage.turn("do it").await;
    assert_eq!(stage.tool("c1").await["state"], "unknown");
    let attempt = stage.unresolved().await;
    (stage, command, attempt)
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn tr_23_a_confirmed_command_is_not_run_again_by_itself_and_its_confirmation_is_no_output() {
    let (mut stage, command, attempt) = unknown().await;
    // While it is unknown the barrier refuses it, and nobody is asked.
    stage.model.push(calls([shell("b1", &command)]));
    stage.turn("continue").await;
    assert_eq!(stage.tool("b1").await["code"], "recovery_required");
    let id = text(&stage.inspect(&attempt).await["inspection_id"]);
    assert_eq!(stage.resolve("confirm", &attempt, &id).await.0, 200);
    stage.restart();

    let asked = proposed_again(&stage, "c2", &command).await;
    check_question(&asked, "user_confirmed", true);
    assert_eq!(stage.answer(&asked, false).await.0, 204);
    stage.idle().await;
    let asked = proposed_again(&stage, "c3", &command).await;
    check_question(&asked, "user_confirmed", true);
    assert_eq!(stage.answer(&asked, false).await.0, 204);
    stage.idle().await;
    assert_eq!(stage.ledger.lines(), ["effect"]);

    let card = stage.tool("c1").await;
    assert_eq!(card["output"], "", "a confirmation is no output: {card}");
    assert_ne!(card["resultSource"], "live");
    let messages = checked(&stage.model);
    let answer = told(&messages, "c1");
    assert!(answer.contains("unknown"), "{answer}");
    assert!(!answer.contains("the person"), "{answer}");
    let notes: Vec<String> = said(&messages)
        .into_iter()
        .filter(|text| text.starts_with("[host note]"))
        .collect();
    assert_eq!(notes.len(), 1, "told once: {notes:?}");
    assert!(notes[0].contains("says that the effect happened"));
    assert!(notes[0].contains("no tool output"));
    assert!(!notes[0].contains("kill -9"), "no arguments: {notes:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn tr_46_a_dismissed_command_is_asked_about_until_a_person_allows_it() {
    let (stage, command, attempt) = unknown().await;
    assert_eq!(stage.resolve("dismiss", &attempt, "").await.0, 200);
    let asked = proposed_again(&stage, "c2", &command).await;
    check_question(&asked, "user_dismissed", true);
    assert!(text(&asked["approval"]["reason"]).contains("without knowing"));
    assert_eq!(stage.ledger.lines(), ["effect"]);
    assert_eq!(stage.allow(&asked).await.0, 204);
    stage.idle().await;
    assert_eq!(stage.ledger.lines(), ["effect", "effect"]);
    checked(&stage.model);
}

#[tokio::test]
async fn tr_46_a_new_message_closes_the_question_and_the_guard_stays() {
    let (mut stage, command) = adopted("full").await;
    proposed_again(&stage, "c2", &command).await;
    stage.kill();
    stage.restart();
    let asked = proposed_again(&stage, "c3", &command).await;
    check_question(&asked, "failed", true);
    assert_eq!(stage.tool("c2").await["state"], "not_started");
    assert_eq!(stage.answer(&asked, false).await.0, 204);
    stage.idle().await;
    let messages = checked(&stage.model);
    assert!(told(&messages, "c2").starts_with("not started"));
    assert_eq!(stage.ledger.count("effect"), 1);
}

#[tokio::test]
async fn tr_46_the_question_is_told_to_a_client_that_only_listens() {
    let (stage, command) = adopted("full").await;
    let events = stage.client().events(&stage.route("/events"), None).await;
    let asked = proposed_again(&stage, "c2", &command).await;
    let frame = events
        .wait_for_frame("the question", SOON, |frame| {
            frame.kind() == "approval_request"
        })
        .await;
    assert_eq!(frame.data["prompt"], asked);
}
