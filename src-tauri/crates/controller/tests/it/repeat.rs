//! The repeat guard of one host: its place in the order of a start (TR-05 (5)), modes and grants,
//! a copy of a session, and a host without anybody to ask (TR-46).

use std::sync::Arc;

use holdfast_api::host::SessionHost;
use holdfast_api::session::{Approve, PatchSession, PendingPrompt};
use holdfast_controller::{Host, HostOptions};
use holdfast_domain::transcript::record::Record;
use holdfast_files::{Disk, Storage};
use holdfast_journal::{Holder, Lease, copy_session};

use crate::bench::{Bench, Session, ends, eventually};
use crate::script::Scripted;

/// Its effect, and then it does not end, unless the gate is open.
fn command(bench: &Bench) -> String {
    format!(
        "{}; while [ ! -e '{}' ]; do sleep 0.05; done",
        bench.ledger().append("effect"),
        bench.outside("gate").display()
    )
}

/// A session whose command had its effect and was stopped. The gate is open.
async fn stopped(bench: &Bench, mode: &str) -> Session {
    let mut session = bench.session(mode).await;
    bench.script.runs(&command(bench));
    session.submit("go").await;
    if mode != "full" {
        let asked = session.prompt().await;
        answer_for_the_session(&session, &asked).await;
    }
    eventually("the effect", || {
        (bench.ledger().count("effect") == 1).then_some(())
    })
    .await;
    session.stop().await;
    let frames = session.until_done().await;
    assert_eq!(ends(&frames)[0].0, "cancelled");
    assert_eq!(session.tools().await[0].state, "interrupted");
    std::fs::write(bench.outside("gate"), "").unwrap();
    session
}

async fn answer_for_the_session(session: &Session, asked: &PendingPrompt) {
    let answer = Approve {
        id: asked.prompt_id.clone(),
        generation: asked.approval.generation,
        allow: true,
        scope: Some("session".to_owned()),
        reason: None,
    };
    session
        .host
        .approve(&session.selector, answer)
        .await
        .unwrap();
}

fn check(asked: &PendingPrompt) {
    assert_eq!(asked.kind, "repeat");
    assert_eq!(asked.approval.scopes, ["once"]);
    let earlier = asked.approval.earlier.as_ref().unwrap();
    assert_eq!(earlier.state, "interrupted");
    assert!(earlier.same_call);
    assert!(earlier.outcome.contains("effects may be partial"));
    assert!(earlier.started_at <= earlier.ended_at);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_46_no_mode_and_no_grant_goes_around_the_question() {
    for mode in ["full", "edits", "ask"] {
        let bench = Bench::new();
        let mut session = stopped(&bench, mode).await;
        bench.script.runs(&command(&bench));
        session.submit("continue").await;
        let asked = session.prompt().await;
        check(&asked);
        assert_eq!(bench.ledger().count("effect"), 1, "{mode}");
        session.answer(&asked, true).await.unwrap();
        session.until_done().await;
        assert_eq!(bench.ledger().count("effect"), 2, "{mode}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_05_a_mode_that_refuses_goes_before_the_question_about_a_repetition() {
    let bench = Bench::new();
    let mut session = stopped(&bench, "full").await;
    let patch = PatchSession {
        mode: Some("read-only".to_owned()),
        ..PatchSession::default()
    };
    session
        .host
        .patch_session(&session.id, patch)
        .await
        .unwrap();
    bench.script.runs(&command(&bench));
    session.turn("continue").await;
    assert!(session.prompts().await.is_empty());
    let refused = session.tools().await.remove(1);
    assert_eq!(refused.code.as_deref(), Some("mode_read_only"));
    assert_eq!(bench.ledger().count("effect"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_46_a_stop_at_the_question_closes_it_and_the_guard_stays() {
    let bench = Bench::new();
    let mut session = stopped(&bench, "full").await;
    for _ in 0..2 {
        bench.script.runs(&command(&bench));
        session.submit("continue").await;
        check(&session.prompt().await);
        session.stop().await;
        session.until_done().await;
        assert!(session.prompts().await.is_empty());
    }
    let receipts = |record: &Record| matches!(record, Record::Receipt(_));
    assert_eq!(session.log().iter().filter(|r| receipts(r)).count(), 1);
    assert_eq!(bench.ledger().count("effect"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_46_a_copy_of_the_session_asks_too() {
    let bench = Bench::new();
    let session = stopped(&bench, "full").await;
    session.host.close().await;
    let copy = "c".repeat(32);
    let folder = session.folder.with_file_name(&copy);
    let me = Holder {
        pid: std::process::id(),
        host: String::new(),
        since: 0,
        socket: None,
    };
    let lease = Lease::create(&folder, &me).unwrap();
    let storage: Arc<dyn Storage> = Arc::new(Disk);
    copy_session(&storage, &session.folder, &session.id, &lease, &copy).unwrap();
    drop(lease);

    let mut copied = bench.of(bench.host(), &copy);
    bench.script.runs(&command(&bench));
    copied.submit("continue").await;
    let asked = copied.prompt().await;
    check(&asked);
    copied.answer(&asked, true).await.unwrap();
    copied.until_done().await;
    assert_eq!(bench.ledger().count("effect"), 2);
    bench.script.runs(&command(&bench));
    copied.turn("once more").await;
    assert_eq!(bench.ledger().count("effect"), 3, "used up in the copy");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_46_where_nobody_can_be_asked_it_is_refused_and_the_turn_goes_on() {
    let bench = Bench::new();
    let session = stopped(&bench, "full").await;
    session.host.close().await;
    let mut options = HostOptions::new(
        bench.data(),
        bench.config.clone(),
        bench.source.clone(),
        Arc::new(Scripted(Arc::clone(&bench.script))),
    );
    options.attended = false;
    let mut alone = bench.of(Host::new(options).unwrap(), &session.id);
    bench.script.runs(&command(&bench));
    bench.script.says("I leave it");
    let frames = alone.turn("continue").await;
    assert_eq!(ends(&frames)[0].0, "completed");
    let refused = alone.tools().await.remove(1);
    assert_eq!(refused.code.as_deref(), Some("repeat_refused"));
    assert_eq!(refused.state, "not_started");
    assert!(bench.script.last_result().contains("Nothing was run"));
    assert_eq!(bench.ledger().count("effect"), 1);
}
