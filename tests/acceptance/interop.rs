//! A real Reasonix serve, driven by our remote client: what works, what is refused with a clear code,
//! and what such a host itself does not keep. Not part of `npm test`: `npm run test:interop` installs
//! that program and runs these, and docs/WIRE.md quotes what they say.

mod serve;

use std::sync::atomic::Ordering;

use holdfast_api::inbox::{Disposition, EditItem, Enqueue, Intent, MoveItem};
use holdfast_api::session::{
    Approve, Cancel, Cancelled, CreateSession, SessionsQuery, Submit, Submitted,
};
use holdfast_api::transcript::TranscriptSnapshot;
use holdfast_api::{ApiError, Selector, SessionHost};
use holdfast_domain::recovery::admission::{Action, ActionRequest};
use holdfast_domain::runtime::snapshot::{Phase, TurnStatus};
use holdfast_remote::{Condition, Dialect};
use holdfast_testkit::wait::{SOON, until, until_asked};
use holdfast_testkit::{Lie, Step};
use serde_json::json;

use serve::{Serve, proven};

fn message(input: &str, key: &str) -> Submit {
    Submit {
        input: input.to_owned(),
        submission_id: Some(key.to_owned()),
    }
}

fn queued(input: &str, key: &str) -> Enqueue {
    Enqueue {
        input: input.to_owned(),
        intent: Intent::Followup,
        idempotency_key: key.to_owned(),
    }
}

fn code<T: std::fmt::Debug>(answer: Result<T, ApiError>) -> String {
    answer.unwrap_err().code
}

/// The texts of a transcript, oldest first; a call as its name and state.
fn shown(snapshot: &TranscriptSnapshot) -> Vec<String> {
    let items = snapshot.items.iter().rev();
    items
        .map(|item| match &item.tool {
            Some(tool) => format!("{} {}", tool.name, tool.state),
            None => format!(
                "{}: {}",
                item.kind,
                item.text.as_deref().unwrap_or_default()
            ),
        })
        .collect()
}

async fn eventually_shown(serve: &Serve, selector: &Selector, wanted: &str) -> TranscriptSnapshot {
    until_asked(wanted, SOON, async || {
        let snapshot = serve.host.transcript_snapshot(selector).await.unwrap();
        shown(&snapshot)
            .iter()
            .any(|text| text == wanted)
            .then_some(snapshot)
    })
    .await
}

#[tokio::test]
#[ignore = "needs the Reasonix program"]
async fn rs_34_a_reasonix_serve_is_recognised_and_read() {
    let (serve, selector) = Serve::new().await;
    assert_eq!(serve.host.connection().dialect(), Dialect::Reasonix);
    assert!(serve.host.connection().verify().await);
    let status = serve.host.status(&selector).await.unwrap();
    assert_eq!(Some(&status.session_id), selector.session.as_ref());
    assert_eq!(status.runtime_state.unwrap().phase, Phase::Idle);
    let work = std::fs::canonicalize(serve.work()).unwrap();
    assert_eq!(status.workspace, work.to_string_lossy());
    let list = serve
        .host
        .list_sessions(&SessionsQuery::default())
        .await
        .unwrap();
    assert_eq!(list.items.len(), 1);
    assert!(list.items[0].state.open);
    proven("recognised by itself; states, status and the list of sessions are read");

    let none = "host_unsupported";
    assert_eq!(code(serve.host.jobs(&selector).await), none);
    assert_eq!(code(serve.host.diff(&selector, "a").await), none);
    assert_eq!(code(serve.host.output(&selector, "a", 0).await), none);
    assert_eq!(code(serve.host.fork(&selector).await), none);
    assert_eq!(code(serve.host.compact(&selector).await), none);
    assert_eq!(code(serve.host.delete_session("a").await), none);
    proven("what it can't do is refused with host_unsupported, without a request");

    let other = Serve::with_token("not-the-token");
    until("the refusal", SOON, || {
        let condition = other.host.connection().view().condition;
        matches!(condition, Condition::Refused { ref code, .. } if code == "host_unauthorized")
            .then_some(())
    })
    .await;
    proven("a wrong token is refused, and not tried again by itself");
}

#[tokio::test]
#[ignore = "needs the Reasonix program"]
async fn rs_30_a_turn_of_a_reasonix_serve_is_followed_by_its_stream() {
    let (serve, selector) = Serve::new().await;
    let step = Step::chunks(&["the ", "answer"]).with_reasoning("thinking it over");
    serve.model.push(step.held_after("rest", 2));
    let sent = serve
        .host
        .submit(&selector, message("go", "k1"))
        .await
        .unwrap();
    assert!(!sent.duplicate);
    let running = |state: &holdfast_domain::runtime::snapshot::RuntimeState, _| {
        state.phase == Phase::Executing && state.turn_status == TurnStatus::InProgress
    };
    let state = serve.until(&selector, "the turn", running).await;
    let live = until_asked("the text so far", SOON, async || {
        let snapshot = serve.host.transcript_snapshot(&selector).await.unwrap();
        snapshot.live.filter(|live| !live.text.is_empty())
    })
    .await;
    assert_eq!(
        (live.turn_id, live.text.as_str()),
        (state.turn_id.clone(), "the ")
    );
    assert!(sent.turn_id.is_empty() || sent.turn_id == state.turn_id);
    proven("a submit begins a turn; its state and its text so far are shown while it runs");

    assert_eq!(
        code(serve.host.submit(&selector, message("more", "k2")).await),
        "session_busy"
    );
    let gaps = serve.kept.gaps.load(Ordering::SeqCst);
    serve.model.release("rest");
    let idle = serve.idle(&selector).await;
    assert_eq!(idle.turn_status, TurnStatus::Completed);
    let snapshot = eventually_shown(&serve, &selector, "assistant: the answer").await;
    assert_eq!(shown(&snapshot), ["user: go", "assistant: the answer"]);
    until("the transcript to be read anew", SOON, || {
        (serve.kept.gaps.load(Ordering::SeqCst) > gaps).then_some(())
    })
    .await;
    proven("a second submit is session_busy; the end is told, and the transcript read anew");

    let again = serve
        .host
        .submit(&selector, message("go", "k1"))
        .await
        .unwrap();
    assert_eq!(
        again,
        Submitted {
            turn_id: idle.turn_id,
            duplicate: true
        }
    );
    assert_eq!(
        code(serve.host.submit(&selector, message("else", "k1")).await),
        "idempotency_conflict"
    );
    assert_eq!(serve.model.request_count(), 1);
    proven("the same key again is the same message; with another text it is refused");

    serve.network.lie("POST /submit", Lie::DropReply);
    let lost = serve
        .host
        .submit(&selector, message("lost", "k3"))
        .await
        .unwrap();
    assert!(lost.duplicate);
    serve.network.lie("POST /submit", Lie::DropRequest);
    let never = serve.host.submit(&selector, message("never", "k4")).await;
    assert_eq!(code(never), "message_not_arrived");
    serve.idle(&selector).await;
    assert_eq!(serve.network.count("POST /submit"), 6);
    proven("a submit whose answer is lost is found by its key, and never sent again");

    let (_, conflicts, failures) = serve.host.connection().view().counters;
    assert_eq!((conflicts, failures), (0, 0));
    assert!(serve.host.connection().verify().await);
    proven("no frame contradicted a read");
}

#[tokio::test]
#[ignore = "needs the Reasonix program"]
async fn c16_a_question_of_a_reasonix_serve_is_answered_once() {
    let (serve, selector) = Serve::new().await;
    let write = |file: &str| json!({ "path": file, "content": "made\n" }).to_string();
    serve
        .model
        .push(Step::call("c1", "write_file", &write("made.txt")));
    serve
        .model
        .push(Step::call("c2", "write_file", &write("denied.txt")));
    serve
        .host
        .submit(&selector, message("make it", "k1"))
        .await
        .unwrap();
    let question = serve.question(&selector).await;
    assert_eq!(question.approval.tool, "write_file");
    assert_eq!(question.approval.subject, "made.txt");
    serve
        .until(&selector, "the question", |state, _| state.pending_prompt)
        .await;
    let snapshot = serve.host.transcript_snapshot(&selector).await.unwrap();
    assert_eq!(shown(&snapshot), ["user: make it", "write_file proposed"]);
    proven("a question is in the state, among the prompts, and its call is proposed");

    let answer = |allow: bool| Approve {
        id: question.approval.id.clone(),
        generation: question.approval.generation,
        allow,
        scope: Some("once".to_owned()),
        reason: None,
    };
    let unknown = Approve {
        id: "turn_of_another/1".to_owned(),
        ..answer(true)
    };
    assert_eq!(
        code(serve.host.approve(&selector, unknown).await),
        "prompt_not_pending"
    );
    let stale = Approve {
        generation: 99,
        ..answer(true)
    };
    assert_eq!(
        code(serve.host.approve(&selector, stale).await),
        "prompt_stale"
    );
    let words = Approve {
        reason: Some("no".to_owned()),
        ..answer(false)
    };
    assert_eq!(
        code(serve.host.approve(&selector, words).await),
        "host_unsupported"
    );
    let elsewhere = Selector::of("00000000000000000000000000000000");
    assert!(serve.host.approve(&elsewhere, answer(true)).await.is_err());
    assert_eq!(serve.network.count("POST /approve"), 0);
    proven("an answer to another question, an old one or another session's is never sent");

    serve.host.approve(&selector, answer(true)).await.unwrap();
    assert_eq!(serve.network.count("POST /approve"), 1);
    assert_eq!(
        code(serve.host.approve(&selector, answer(true)).await),
        "prompt_not_pending"
    );
    let next = until_asked("the next question", SOON, async || {
        let prompts = serve.host.pending_prompts(&selector).await.unwrap();
        prompts
            .into_iter()
            .find(|next| next.prompt_id != question.prompt_id)
    })
    .await;
    assert_eq!(
        std::fs::read_to_string(serve.work().join("made.txt")).unwrap(),
        "made\n"
    );
    let no = Approve {
        id: next.approval.id,
        generation: next.approval.generation,
        ..answer(false)
    };
    serve.host.approve(&selector, no).await.unwrap();
    serve.idle(&selector).await;
    assert!(!serve.work().join("denied.txt").exists());
    let snapshot = eventually_shown(&serve, &selector, "assistant: done").await;
    let states: Vec<String> = shown(&snapshot);
    assert!(
        states.contains(&"write_file completed".to_owned()),
        "{states:?}"
    );
    assert!(
        states.contains(&"write_file failed".to_owned()),
        "{states:?}"
    );
    proven("yes writes the file, no leaves it; a second answer is prompt_not_pending");
}

#[tokio::test]
#[ignore = "needs the Reasonix program"]
async fn rs_16_the_queue_of_a_reasonix_serve() {
    let (serve, selector) = Serve::new().await;
    let host = &serve.host;
    serve.model.push(Step::text("first").held("first"));
    host.submit(&selector, message("go", "k1")).await.unwrap();
    let one = host.enqueue(&selector, queued("one", "q1")).await.unwrap();
    assert_eq!(
        (one.disposition, one.position),
        (Disposition::QueuedFollowup, 1)
    );
    let again = host.enqueue(&selector, queued("one", "q1")).await.unwrap();
    assert_eq!(
        (again.item_id, again.disposition),
        (one.item_id.clone(), Disposition::IdempotentHit)
    );
    assert_eq!(
        code(host.enqueue(&selector, queued("x", "q1")).await),
        "idempotency_conflict"
    );
    let long = format!("{}end", "two ".repeat(2000));
    let two = host.enqueue(&selector, queued(&long, "q2")).await.unwrap();
    let three = host
        .enqueue(&selector, queued("three", "q3"))
        .await
        .unwrap();
    assert_eq!(
        host.inbox_receipt(&selector, "q2").await.unwrap().item_id,
        two.item_id
    );
    assert_eq!(
        code(host.inbox_receipt(&selector, "q9").await),
        "receipt_unknown"
    );
    proven("messages are queued by key, and found by it");

    host.pause_inbox(&selector).await.unwrap();
    let edit = EditItem {
        input: Some("one, edited".to_owned()),
        intent: None,
    };
    host.edit_item(&selector, &one.item_id, edit).await.unwrap();
    let to_end = MoveItem {
        item_id: one.item_id.clone(),
        position: 3,
    };
    host.move_item(&selector, to_end).await.unwrap();
    host.delete_item(&selector, &three.item_id).await.unwrap();
    let view = host.inbox(&selector).await.unwrap();
    let texts: Vec<&str> = view.items.iter().map(|item| item.input.as_str()).collect();
    assert_eq!(texts, [long.as_str(), "one, edited"]);
    assert!(view.paused && view.items.iter().all(|item| item.queued_at > 0));
    proven("they are edited, moved, given up, and read whole; the queue is paused");

    serve.network.lie("POST /inbox/items", Lie::DropReply);
    let lost = host.enqueue(&selector, queued("four", "q4")).await.unwrap();
    assert_eq!(
        (lost.disposition, lost.position),
        (Disposition::QueuedFollowup, 3)
    );
    serve.network.lie("POST /inbox/items", Lie::DropRequest);
    let never = host.enqueue(&selector, queued("five", "q5")).await;
    assert_eq!(code(never), "message_not_arrived");
    proven("one whose answer is lost is found by its key, and never sent again");

    serve.model.release("first");
    host.resume_inbox(&selector).await.unwrap();
    until_asked("the queue to be empty", SOON, async || {
        host.inbox(&selector)
            .await
            .unwrap()
            .items
            .is_empty()
            .then_some(())
    })
    .await;
    eventually_shown(&serve, &selector, "user: four").await;
    serve.idle(&selector).await;
    assert_eq!(serve.model.request_count(), 4);
    assert_eq!(
        code(host.inbox_receipt(&selector, "q4").await),
        "host_unsupported"
    );
    proven("resumed, they run in their order; what became of a key after that it does not tell");
}

#[tokio::test]
#[ignore = "needs the Reasonix program"]
async fn c37_a_late_stop_does_not_reach_the_next_turn_of_a_reasonix_serve() {
    let (serve, selector) = Serve::new().await;
    serve
        .host
        .submit(&selector, message("first", "k1"))
        .await
        .unwrap();
    let first = serve.idle(&selector).await;
    let stop = |turn: &str| Cancel {
        turn_id: Some(turn.to_owned()),
    };
    serve
        .model
        .push(Step::chunks(&["half", "rest"]).held_after("rest", 1));
    serve
        .host
        .submit(&selector, message("second", "k2"))
        .await
        .unwrap();
    let second = serve
        .until(&selector, "the second turn", |state, _| {
            state.running && state.turn_id != first.turn_id && state.turn_id != ""
        })
        .await;
    let late = serve
        .host
        .cancel(&selector, stop(&first.turn_id))
        .await
        .unwrap();
    assert_eq!(late, Cancelled::AlreadyEnded);
    assert_eq!(serve.network.count("POST /cancel"), 0);
    assert!(serve.facts(&selector).0.unwrap().running);
    proven("a Stop of an earlier turn is answered from its state, and never sent");

    let now = serve
        .host
        .cancel(&selector, stop(&second.turn_id))
        .await
        .unwrap();
    assert_eq!(now, Cancelled::Requested);
    let ended = serve.idle(&selector).await;
    assert_eq!(
        (ended.turn_id, ended.turn_status),
        (second.turn_id.clone(), TurnStatus::Interrupted)
    );
    assert_eq!(
        serve
            .host
            .cancel(&selector, stop(&second.turn_id))
            .await
            .unwrap(),
        Cancelled::AlreadyEnded
    );
    proven("a Stop of the present turn ends it, and a second one has nothing to do");
}

#[tokio::test]
#[ignore = "needs the Reasonix program"]
async fn tr_42_the_retired_recovery_of_a_reasonix_serve() {
    let (serve, selector) = Serve::new().await;
    let snapshot = serve.host.tool_recovery_snapshot(&selector).await.unwrap();
    assert_eq!(snapshot.session_path, serve::path(&selector));
    assert_eq!(
        (
            snapshot.calls.len(),
            snapshot.retry_enabled,
            snapshot.dismiss_enabled
        ),
        (0, false, false)
    );
    let other = Selector::of("00000000000000000000000000000000");
    assert_eq!(
        code(serve.host.tool_recovery_snapshot(&other).await),
        "session_mismatch"
    );
    let request = ActionRequest {
        session_path: snapshot.session_path,
        runtime_epoch: snapshot.runtime_epoch,
        revision: snapshot.revision,
        attempt_id: "a".to_owned(),
        inspection_id: String::new(),
        action: Action::Inspect,
    };
    let refused = serve
        .host
        .resolve_tool_recovery(&selector, request, "test")
        .await;
    assert_eq!(code(refused), "host_unsupported");
    assert_eq!(serve.network.count("POST /tool-recovery"), 0);
    proven("its retired recovery is shown for its own session; an action is never sent");
}

#[tokio::test]
#[ignore = "needs the Reasonix program"]
async fn rs_35_a_reasonix_serve_has_one_session_at_a_time() {
    let (serve, first) = Serve::new().await;
    serve
        .host
        .submit(&first, message("go", "k1"))
        .await
        .unwrap();
    serve.idle(&first).await;
    let created = serve
        .host
        .create_session(CreateSession::default())
        .await
        .unwrap();
    let second = Selector::of(&created.session_id);
    serve.show(&second);
    serve
        .until(&second, "the new session", |_, synced| synced)
        .await;
    until("the first to be unconfirmed", SOON, || {
        (!serve.facts(&first).1).then_some(())
    })
    .await;
    assert_eq!(
        code(serve.host.submit(&first, message("more", "k2")).await),
        "session_mismatch"
    );
    assert_eq!(
        code(serve.host.transcript_snapshot(&first).await),
        "session_mismatch"
    );
    assert!(serve.host.pending_prompts(&first).await.unwrap().is_empty());
    assert_eq!(serve.model.request_count(), 1);
    proven("the session that is not current is unconfirmed, and no message reaches the other one");

    serve
        .host
        .resume(first.session.as_deref().unwrap())
        .await
        .unwrap();
    let back = serve
        .until(&first, "it to be confirmed again", |_, synced| synced)
        .await;
    assert!(!back.running);
    serve
        .host
        .submit(&first, message("more", "k2"))
        .await
        .unwrap();
    eventually_shown(&serve, &first, "user: more").await;
    serve.idle(&first).await;
    proven("made current again it is confirmed, though its revisions begin anew in the same epoch");

    serve.model.push(Step::text("held").held("end"));
    serve
        .host
        .submit(&first, message("wait", "k3"))
        .await
        .unwrap();
    let busy = serve.host.resume(&created.session_id).await;
    assert_eq!(code(busy), "session_busy");
    serve.model.release("end");
    let elsewhere = CreateSession {
        workspace: Some("/".to_owned()),
        ..CreateSession::default()
    };
    assert_eq!(
        code(serve.host.create_session(elsewhere).await),
        "host_unsupported"
    );
    proven("while it works no other session can be current; another folder is host_unsupported");
}

#[tokio::test]
#[ignore = "needs the Reasonix program"]
async fn rs_36_a_killed_reasonix_serve_is_adopted_after_its_restart() {
    let (mut serve, selector) = Serve::new().await;
    // It ends with the folder, whoever lives then.
    let command = "echo begun; while [ -e alive ]; do sleep 0.1; done";
    std::fs::write(serve.work().join("alive"), "").unwrap();
    let call = json!({ "command": command }).to_string();
    serve.model.push(Step::call("c1", "bash", &call));
    serve
        .host
        .submit(&selector, message("go", "k1"))
        .await
        .unwrap();
    let question = serve.question(&selector).await;
    let yes = Approve {
        id: question.approval.id,
        generation: question.approval.generation,
        allow: true,
        scope: None,
        reason: None,
    };
    serve.host.approve(&selector, yes.clone()).await.unwrap();
    eventually_shown(&serve, &selector, "bash in_flight").await;
    serve
        .host
        .enqueue(&selector, queued("later", "q1"))
        .await
        .unwrap();
    let before = serve
        .until(&selector, "the command", |state, synced| {
            synced && state.running && !state.pending_prompt
        })
        .await;
    serve.kill9().await;
    assert_eq!(serve.facts(&selector), (Some(before.clone()), false));
    assert_eq!(
        code(serve.host.submit(&selector, message("x", "k9")).await),
        "host_disconnected"
    );
    proven("after kill -9 the last facts stay, unconfirmed, and commands are refused");

    serve.restart();
    until("the connection", SOON, || {
        let condition = serve.host.connection().view().condition;
        (condition == Condition::Connected).then_some(())
    })
    .await;
    assert!(!serve.host.connection().verify().await);
    assert!(!serve.facts(&selector).1);
    assert_eq!(
        code(serve.host.submit(&selector, message("x", "k9")).await),
        "session_mismatch"
    );
    proven("it restarts with another session; the one that the tab shows stays unconfirmed");

    serve
        .host
        .resume(selector.session.as_deref().unwrap())
        .await
        .unwrap();
    let after = serve
        .until(&selector, "it to be adopted", |_, synced| synced)
        .await;
    assert_ne!(after.runtime_epoch, before.runtime_epoch);
    assert_eq!((after.phase, after.pending_prompt), (Phase::Idle, false));
    let snapshot = serve.host.transcript_snapshot(&selector).await.unwrap();
    assert_eq!(shown(&snapshot), ["user: go", "bash unknown"]);
    assert_eq!(
        code(serve.host.approve(&selector, yes).await),
        "prompt_not_pending"
    );
    proven("resumed, it is adopted with its new epoch; the command without a result is unknown");

    assert!(serve.host.inbox(&selector).await.unwrap().items.is_empty());
    assert_eq!(
        code(serve.host.inbox_receipt(&selector, "q1").await),
        "receipt_unknown"
    );
    proven("its queue did not survive: what it had accepted is gone, and the receipt says so");

    let again = serve
        .host
        .submit(&selector, message("go", "k1"))
        .await
        .unwrap();
    assert!(again.duplicate);
    serve
        .host
        .submit(&selector, message("on", "k2"))
        .await
        .unwrap();
    eventually_shown(&serve, &selector, "user: on").await;
    serve.idle(&selector).await;
    proven("a key of before the kill is still known; a new message runs");
}
