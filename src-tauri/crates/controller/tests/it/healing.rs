//! Storage that fails under a running command, an answer or a Stop, and works again (TR-48, C12).

use holdfast_api::host::SessionHost;
use holdfast_api::session::{Cancelled, PatchSession};
use holdfast_domain::transcript::record::Record;
use holdfast_files::fault::{Fault, Plan};
use holdfast_testkit::ledger::quoted;

use crate::bench::{Bench, Session, ends, eventually};

fn break_storage(bench: &Bench) {
    bench.storage.inject(Plan {
        fault: Fault::Fail(std::io::ErrorKind::StorageFull),
        first: 1,
        last: u64::MAX,
        only: None,
    });
}

async fn rename(session: &Session, title: &str) -> Result<(), holdfast_api::ApiError> {
    let patch = PatchSession {
        title: Some(title.to_owned()),
        ..PatchSession::default()
    };
    session.host.patch_session(&session.id, patch).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_48_a_running_command_goes_on_while_its_log_is_brought_back() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let stay = bench.outside("stay");
    std::fs::write(&stay, "").unwrap();
    bench.script.runs(&format!(
        "{}; while test -e {}; do sleep 0.02; done; echo the end",
        bench.ledger().append("effect"),
        quoted(&stay.to_string_lossy())
    ));
    session.submit("go").await;
    eventually("the command", || {
        (bench.ledger().count("effect") == 1).then_some(())
    })
    .await;
    break_storage(&bench);
    let refused = rename(&session, "lost").await.unwrap_err();
    assert_eq!(
        (refused.status, refused.code.as_str()),
        (507, "storage_failed")
    );
    assert!(session.status().await.storage_failed);
    bench.storage.heal();
    rename(&session, "kept").await.unwrap();
    // It is still this host's own: neither fenced, nor found again, nor given up.
    let status = session.status().await;
    assert!(status.running && !status.storage_failed);
    assert_eq!((status.title.as_str(), status.background_jobs), ("kept", 0));
    assert_eq!(session.tools().await[0].state, "in_flight");
    std::fs::remove_file(&stay).unwrap();
    let frames = session.until_done().await;
    assert_eq!(ends(&frames), [("completed".to_owned(), String::new())]);
    let tool = session.tools().await.remove(0);
    assert_eq!(
        (tool.state.as_str(), tool.result_source.as_deref()),
        ("completed", Some("live"))
    );
    assert!(bench.script.last_result().contains("the end"));
    assert!(!session.log().iter().any(|record| matches!(
        record,
        Record::Restarted(_) | Record::AttemptChanged(_) | Record::NotStarted(_)
    )));
    let ends: Vec<String> = session
        .log()
        .into_iter()
        .filter_map(|record| match record {
            Record::TurnEnded(ended) => Some(ended.status),
            _ => None,
        })
        .collect();
    assert_eq!(
        ends,
        ["completed"],
        "the turn was not taken for one of a lost host"
    );
    assert_eq!(bench.ledger().lines(), ["effect"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_48_an_answer_that_can_not_be_stored_runs_nothing_and_can_be_given_again() {
    let bench = Bench::new();
    let mut session = bench.session("ask").await;
    bench.script.runs(&bench.ledger().append("once"));
    session.submit("go").await;
    let prompt = session.prompt().await;
    break_storage(&bench);
    let refused = session.answer(&prompt, true).await.unwrap_err();
    assert_eq!(refused.status, 507, "{refused:?}");
    assert!(bench.ledger().lines().is_empty());
    session.until_done().await;
    let status = session.status().await;
    assert!(!status.running && status.pending_prompt && status.cancellable);
    let refused = session.answer(&prompt, false).await.unwrap_err();
    assert_eq!(refused.status, 507, "{refused:?}");
    bench.storage.heal();
    session.answer(&prompt, true).await.unwrap();
    session.until_done().await;
    assert_eq!(bench.ledger().lines(), ["once"]);
    assert_eq!(session.tools().await[0].state, "completed");
    assert_eq!(
        session.answer(&prompt, true).await.unwrap_err().code,
        "prompt_not_pending"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_48_a_stop_that_can_not_be_stored_ends_the_turn_and_can_be_given_again() {
    let bench = Bench::new();
    let mut session = bench.session("ask").await;
    bench.script.runs(&bench.ledger().append("never"));
    session.submit("go").await;
    session.prompt().await;
    break_storage(&bench);
    assert_eq!(session.stop().await, Cancelled::Requested);
    session.until_done().await;
    let status = session.status().await;
    assert!(!status.running && status.pending_prompt && !status.cancel_requested);
    // Still open, and still to be stopped.
    assert_eq!(session.stop().await, Cancelled::Requested);
    assert!(session.status().await.pending_prompt);
    bench.storage.heal();
    assert_eq!(session.stop().await, Cancelled::Requested);
    session
        .when("no question", |status| !status.pending_prompt)
        .await;
    assert_eq!(
        session.tools().await[0].code.as_deref(),
        Some("not_started")
    );
    assert_eq!(session.stop().await, Cancelled::AlreadyEnded);
    session.turn("go on").await;
    assert!(bench.ledger().lines().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_48_a_job_that_ends_while_nothing_can_be_stored_counts_no_longer() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let stay = bench.outside("stay");
    std::fs::write(&stay, "").unwrap();
    bench.script.runs(&format!(
        "(while test -e {}; do sleep 0.02; done) & echo left",
        quoted(&stay.to_string_lossy())
    ));
    session.turn("go").await;
    assert_eq!(session.status().await.background_jobs, 1);
    break_storage(&bench);
    std::fs::remove_file(&stay).unwrap();
    session
        .when("its end", |status| status.background_jobs == 0)
        .await;
    bench.storage.heal();
    session.turn("go on").await;
    assert_eq!(session.tools().await[0].state, "completed");
    session.host.close().await;
    let again = bench.of(bench.host(), &session.id);
    again
        .when("no job", |status| status.background_jobs == 0)
        .await;
}
