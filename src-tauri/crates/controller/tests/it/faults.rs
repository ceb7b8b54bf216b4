//! A turn with one command and one write, over storage that fails at every place there is: TR-05,
//! TR-48, C12.

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::transcript::record::Record;
use holdfast_domain::transcript::session::Session as Fold;
use holdfast_files::fault::{Fault, Plan};
use holdfast_testkit::ledger::quoted;
use holdfast_testkit::wait::scaled;

use crate::bench::{Bench, Session, records};
use crate::script::{shell, write};

/// Runs that go on at the same time.
const SIDE_BY_SIDE: usize = 6;

/// A command that puts down whether its receipt and start were in the log when it ran.
fn witness(bench: &Bench, session: &Session) -> String {
    let log = quoted(&session.folder.join("log.jsonl").to_string_lossy());
    let ledger = quoted(&bench.ledger().path().to_string_lossy());
    format!("grep -c '\"kind\":\"tool_started\"' {log} >> {ledger}")
}

fn ask(bench: &Bench, session: &Session) {
    let command = witness(bench, session);
    bench
        .script
        .calls(&[
            ("shell", &shell(&command)),
            ("write_file", &write("f", "new")),
        ])
        .says("both done");
}

/// How many operations a turn without faults makes.
async fn operations() -> u64 {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    ask(&bench, &session);
    let before = bench.storage.operations();
    session.turn("go").await;
    assert_eq!(bench.ledger().lines(), ["1"]);
    bench.storage.operations() - before
}

/// What every run must hold, whatever failed.
async fn run(fault: Fault, first: u64, last: u64) {
    let what = format!("{fault:?} at {first}…{last}");
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    ask(&bench, &session);
    bench.storage.inject(Plan {
        fault,
        first,
        last,
        only: None,
    });
    let accepted = session.try_submit("go").await.is_ok();
    if accepted {
        session.until_done().await;
    }
    let status = session.idle().await;
    assert!(
        !status.running && !status.cancellable,
        "{what}: {status:#?}"
    );
    // Nothing ran without its receipt and start in the log.
    let ran = bench.ledger().lines();
    assert!(ran.is_empty() || ran == ["1"], "{what}: {ran:?}");
    if last == u64::MAX && bench.storage.hits() > 0 {
        // TR-48: read-only, and said so; nothing can be added.
        let refused = session.try_submit("more").await.unwrap_err();
        assert_eq!(refused.status, 507, "{what}: {refused:?}");
        assert!(session.status().await.storage_failed, "{what}");
    }
    truthful(&bench, &session, &what).await;
    // Without a restart, the session is usable as soon as storage is.
    bench.storage.heal();
    bench.script.forget();
    let before = bench.script.requests().len();
    let frames = session.turn("go on").await;
    let what = format!("{what}, then {:?}", crate::bench::ends(&frames));
    assert!(bench.script.requests().len() > before, "{what}");
    let status = session.status().await;
    assert!(!status.storage_failed, "{what}");
    truthful(&bench, &session, &what).await;
    // What ran and could be read has its real result by now.
    for tool in session.tools().await {
        let settled = ["completed", "not_started"].contains(&tool.state.as_str());
        assert!(settled, "{what}: {tool:#?}");
    }
    assert!(session.recovery().await.calls.is_empty(), "{what}");
    // TR-16: nothing of it ran again.
    assert_eq!(bench.ledger().lines(), ran, "{what}");
    // The log tells the same story to the next host.
    let told: Vec<String> = session
        .tools()
        .await
        .into_iter()
        .map(|tool| tool.state)
        .collect();
    session.host.close().await;
    let again = bench.of(bench.host(), &session.id);
    let later: Vec<String> = again
        .tools()
        .await
        .into_iter()
        .map(|tool| tool.state)
        .collect();
    assert_eq!(later, told, "{what}");
    again.host.close().await;
}

/// The state of each attempt against the effects: what happened is never said not to have.
async fn truthful(bench: &Bench, session: &Session, what: &str) {
    let snapshot = session.recovery().await;
    let file = std::fs::read_to_string(bench.workspace().join("f")).ok();
    for tool in session.tools().await {
        let happened = match tool.name.as_str() {
            "shell" => !bench.ledger().lines().is_empty(),
            _ => file.is_some(),
        };
        let unresolved = snapshot
            .calls
            .iter()
            .any(|call| call.identity.attempt_id == tool.attempt_id);
        match tool.state.as_str() {
            "completed" => assert!(happened, "{what}: {tool:#?}"),
            "not_started" | "proposed" => assert!(!happened, "{what}: {tool:#?}"),
            "unknown" => assert!(unresolved, "{what}: {tool:#?}"),
            other => panic!("{what}: {other}: {tool:#?}"),
        }
    }
}

async fn at_every_place(faults: &[Fault], lasting: bool) {
    let count = operations().await;
    // Every place at full scale; with a smaller one, places evenly spread.
    let step = (100 / scaled(100).min(100)).max(1) as u64;
    let mut runs = Vec::new();
    for fault in faults {
        for first in (1..=count + 1).step_by(usize::try_from(step).unwrap()) {
            runs.push((*fault, first, if lasting { u64::MAX } else { first }));
        }
    }
    for group in runs.chunks(SIDE_BY_SIDE) {
        let group = group
            .iter()
            .map(|(fault, first, last)| run(*fault, *first, *last));
        futures_util::future::join_all(group).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_05_tr_48_one_failed_operation_at_every_place() {
    at_every_place(&[Fault::Fail(std::io::ErrorKind::StorageFull)], false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_05_tr_48_one_short_or_torn_write_at_every_place() {
    at_every_place(&[Fault::Short, Fault::Torn], false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_05_tr_48_one_dropped_or_lost_operation_at_every_place() {
    at_every_place(&[Fault::Drop, Fault::Lose], false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_48_storage_that_fails_from_any_place_on_and_then_works_again() {
    at_every_place(&[Fault::Fail(std::io::ErrorKind::StorageFull)], true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_05_a_receipt_that_can_not_be_stored_means_not_started() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    session.turn("warm").await;
    let model = bench.script.live();
    session.submit("go").await;
    crate::bench::eventually("the request", || {
        (bench.script.requests().len() == 2).then_some(())
    })
    .await;
    bench.storage.inject(Plan {
        fault: Fault::Fail(std::io::ErrorKind::StorageFull),
        first: 1,
        last: 1,
        only: Some(holdfast_files::fault::Operation::Sync),
    });
    let call = holdfast_provider::ModelCall {
        provider_id: "p".to_owned(),
        name: "shell".to_owned(),
        arguments: shell(&bench.ledger().append("never")),
    };
    model.send(crate::script::finished("", vec![call])).unwrap();
    let frames = session.until_done().await;
    assert_eq!(
        crate::bench::ends(&frames),
        [("failed".to_owned(), "write_failed".to_owned())]
    );
    assert!(bench.ledger().lines().is_empty());
    let reset = session.log().into_iter().find_map(|record| match record {
        Record::WriteReset(reset) => Some(reset),
        _ => None,
    });
    assert_eq!(reset.unwrap().not_started.len(), 1);
    assert!(
        !session
            .log()
            .iter()
            .any(|record| matches!(record, Record::Receipt(_)))
    );
    assert!(session.recovery().await.calls.is_empty());
    let status = session.status().await;
    assert_eq!(status.last_error.unwrap().code, "write_failed");
    assert!(!status.storage_failed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_48_a_restart_after_a_failed_result_reads_the_safe_side() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let stay = bench.outside("stay");
    std::fs::write(&stay, "").unwrap();
    let command = format!(
        "{}; while test -e {}; do sleep 0.02; done",
        bench.ledger().append("effect"),
        quoted(&stay.to_string_lossy())
    );
    bench.script.runs(&command);
    session.submit("go").await;
    crate::bench::eventually("the command", || {
        (bench.ledger().count("effect") == 1).then_some(())
    })
    .await;
    bench.storage.inject(Plan {
        fault: Fault::Fail(std::io::ErrorKind::StorageFull),
        first: 1,
        last: u64::MAX,
        only: None,
    });
    std::fs::remove_file(&stay).unwrap();
    let frames = session.until_done().await;
    assert_eq!(
        crate::bench::ends(&frames),
        [("failed".to_owned(), "storage_failed".to_owned())]
    );
    assert_eq!(session.tools().await[0].state, "unknown");
    session.host.close().await;
    bench.storage.heal();
    let again = bench.of(bench.host(), &session.id);
    let tool = again.tools().await.remove(0);
    // Its receipt is beside the log, and is what it rests on.
    assert_eq!(
        (tool.state.as_str(), tool.result_source.as_deref()),
        ("completed", Some("recovered"))
    );
    let fold = Fold::from_entries(
        records(&session.folder, &session.id)
            .into_iter()
            .zip(1..)
            .map(|(record, seq)| holdfast_domain::transcript::record::Entry {
                seq,
                at: seq,
                record,
            })
            .collect::<Vec<_>>()
            .iter(),
    );
    assert_eq!(
        fold.attempt(&tool.attempt_id).unwrap().state,
        AttemptState::Completed
    );
}
