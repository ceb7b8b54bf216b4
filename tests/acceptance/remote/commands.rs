//! Commands whose answer gets lost: looked up, and never sent again (TR-42, RS-16, C24).

use holdfast_api::SessionHost;
use holdfast_api::inbox::Enqueue;
use holdfast_api::session::{Approve, Cancel, Cancelled, Submit};
use holdfast_domain::recovery::admission::{Action, ActionRequest};
use holdfast_testkit::wait::SOON;
use holdfast_testkit::{Lie, Step};
use serde_json::json;

use super::stage::Far;
use crate::agent::scene::{eventually, shell};

#[tokio::test]
async fn rs_16_c24_a_submit_whose_answer_is_lost_is_found_by_its_key() {
    let far = Far::new("full").await;
    far.scene.model.push(Step::text("done"));
    let submit = Submit {
        input: "go".to_owned(),
        submission_id: Some("k1".to_owned()),
    };
    far.network.lie("POST /submit", Lie::DropReply);
    let found = far
        .host
        .submit(&far.selector(), submit.clone())
        .await
        .unwrap();
    assert_eq!(
        far.network.count("POST /submit"),
        1,
        "never again by itself"
    );
    far.scene.ended(&found.turn_id).await;
    // One that did not arrive says so; the person sends it again with the same key.
    let submit = Submit {
        input: "more".to_owned(),
        submission_id: Some("k2".to_owned()),
    };
    far.network.lie("POST /submit", Lie::DropRequest);
    let lost = far.host.submit(&far.selector(), submit.clone()).await;
    assert_eq!(lost.unwrap_err().code, "message_not_arrived");
    assert_eq!(far.network.count("POST /submit"), 2);
    far.network.tell_the_truth("POST /submit");
    far.scene.model.push(Step::text("done"));
    let sent = far.host.submit(&far.selector(), submit).await.unwrap();
    assert!(!sent.duplicate);
    far.scene.ended(&sent.turn_id).await;
    // Nobody can tell: that is what is said.
    far.network.lie("POST /submit", Lie::DropReply);
    far.network.lie("GET /inbox/receipt", Lie::DropRequest);
    far.scene.model.push(Step::text("done"));
    let submit = Submit {
        input: "last".to_owned(),
        submission_id: Some("k3".to_owned()),
    };
    let lost = far.host.submit(&far.selector(), submit).await;
    assert_eq!(lost.unwrap_err().code, "reply_lost");
}

#[tokio::test]
async fn rs_16_c24_an_enqueue_whose_answer_is_lost_is_found_by_its_key() {
    let far = Far::new("full").await;
    far.scene.model.push(Step::text("done").held("end"));
    far.scene.model.push(Step::text("done"));
    let turn = far.scene.submit("go").await;
    far.network.lie("POST /inbox/items", Lie::DropReply);
    let request = Enqueue {
        input: "next".to_owned(),
        intent: holdfast_api::inbox::Intent::default(),
        idempotency_key: "k1".to_owned(),
    };
    let found = far.host.enqueue(&far.selector(), request).await.unwrap();
    assert_eq!(far.network.count("POST /inbox/items"), 1);
    let view = far.host.inbox(&far.selector()).await.unwrap();
    let items: Vec<&str> = view
        .items
        .iter()
        .map(|item| item.item_id.as_str())
        .collect();
    assert_eq!(items, [found.item_id.as_str()], "exactly one item");
    far.scene.model.release("end");
    far.scene.ended(&found.item_id).await;
    assert_ne!(found.item_id, turn);
}

#[tokio::test]
async fn tr_42_a_recovery_action_whose_answer_is_lost_is_shown_by_the_snapshot() {
    let mut far = Far::new("full").await;
    // A command whose supervisor is killed with its host leaves an unknown outcome.
    let attempt = unknown(&mut far).await;
    let snapshot = far
        .host
        .tool_recovery_snapshot(&far.selector())
        .await
        .unwrap();
    let request = ActionRequest {
        action: Action::Dismiss,
        runtime_epoch: snapshot.runtime_epoch.clone(),
        revision: snapshot.revision.clone(),
        session_path: snapshot.session_path.clone(),
        attempt_id: attempt,
        inspection_id: String::new(),
    };
    far.network.lie("POST /tool-recovery", Lie::DropReply);
    let after = far
        .host
        .resolve_tool_recovery(&far.selector(), request.clone(), "window")
        .await
        .unwrap();
    assert_eq!(after.calls, []);
    assert_eq!(far.network.count("POST /tool-recovery"), 1);
    // Another session's snapshot is refused, and so is one that is too large.
    let mut other = serde_json::to_value(&after).unwrap();
    other["sessionPath"] = json!("session-id:00000000000000000000000000000000");
    far.network
        .lie("GET /tool-recovery", Lie::json(200, &other));
    let refused = far.host.tool_recovery_snapshot(&far.selector()).await;
    assert_eq!(refused.unwrap_err().code, "host_reply_invalid");
    let mut large = serde_json::to_value(&after).unwrap();
    large["padding"] = json!("x".repeat(2 * 1024 * 1024));
    far.network
        .lie("GET /tool-recovery", Lie::json(200, &large));
    let refused = far.host.tool_recovery_snapshot(&far.selector()).await;
    assert_eq!(refused.unwrap_err().code, "host_reply_invalid");
    // A refusal carries the present snapshot (TR-41).
    far.network.tell_the_truth("POST /tool-recovery");
    far.network.tell_the_truth("GET /tool-recovery");
    let refused = far
        .host
        .resolve_tool_recovery(&far.selector(), request, "window")
        .await;
    assert!(refused.unwrap_err().snapshot.is_some());
}

async fn unknown(far: &mut Far) -> String {
    let go = far.scene.file("go");
    far.scene.model.push(shell(
        "c1",
        &format!("echo $$ > {}; sleep 600", go.display()),
    ));
    far.scene.submit("run it").await;
    let pid = eventually("the command", SOON, async || {
        let text = std::fs::read_to_string(&go).ok()?;
        text.trim().parse::<i32>().ok()
    })
    .await;
    let tool = far.scene.tool_in("c1", "in_flight").await;
    let attempt = tool["attemptId"].as_str().unwrap().to_owned();
    far.scene.host.kill9();
    // Whoever keeps it, and the command.
    for process in crate::agent::scene::processes_with(&attempt) {
        kill(process);
    }
    kill(pid);
    far.scene.restart_after_death().await;
    far.network.lead_to(Some(far.scene.host.url()));
    far.network.cut();
    far.host.connection().retry_now();
    far.until("the unknown outcome", |state, synced| {
        synced && state.is_some_and(|state| state.unresolved == 1)
    })
    .await;
    attempt
}

fn kill(pid: i32) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

#[tokio::test]
async fn c16_an_answer_whose_reply_is_lost_is_judged_by_the_questions_that_wait() {
    let far = Far::new("ask").await;
    far.scene.model.push(shell("c1", "true"));
    far.scene.model.push(Step::text("done"));
    let turn = far.scene.submit("go").await;
    let question = far.scene.question().await;
    let answer = Approve {
        id: question["approval"]["id"].as_str().unwrap().to_owned(),
        generation: question["approval"]["generation"].as_u64().unwrap(),
        allow: true,
        scope: None,
        reason: None,
    };
    far.network.lie("POST /approve", Lie::DropRequest);
    let lost = far.host.approve(&far.selector(), answer.clone()).await;
    assert_eq!(lost.unwrap_err().code, "answer_not_arrived");
    far.network.lie("POST /approve", Lie::DropReply);
    far.host
        .approve(&far.selector(), answer.clone())
        .await
        .unwrap();
    assert_eq!(far.network.count("POST /approve"), 2);
    far.scene.ended(&turn).await;
    far.network.tell_the_truth("POST /approve");
    let late = far.host.approve(&far.selector(), answer).await;
    assert_eq!(late.unwrap_err().code, "prompt_not_pending");
}

#[tokio::test]
async fn c37_a_stop_whose_answer_is_lost_is_judged_by_the_state_and_names_its_turn() {
    let far = Far::new("full").await;
    far.scene.model.push(Step::text("never").held("end"));
    let turn = far.scene.submit("go").await;
    far.network.lie("POST /cancel", Lie::DropReply);
    let cancel = Cancel {
        turn_id: Some(turn.clone()),
    };
    far.host
        .cancel(&far.selector(), cancel.clone())
        .await
        .unwrap();
    let ended = far.scene.ended(&turn).await;
    assert_eq!(ended["runtimeState"]["turnStatus"], "cancelled");
    let late = far.host.cancel(&far.selector(), cancel).await.unwrap();
    assert_eq!(late, Cancelled::AlreadyEnded);
}
