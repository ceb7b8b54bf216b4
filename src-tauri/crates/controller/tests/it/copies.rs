//! Copies of a session: whose receipts they carry, and what they may not conclude (TR-06, C26).

use holdfast_api::event::Event;
use holdfast_api::host::SessionHost;
use holdfast_domain::recovery::admission::Action;
use holdfast_domain::transcript::record::Record;

use crate::barrier::with_unknown;
use crate::bench::Bench;
use crate::recovery::with_open_write;
use crate::restart::runtime;
use crate::script::shell;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_06_a_copy_keeps_the_receipts_session_and_key_and_blocks_there_too() {
    let bench = Bench::new();
    let (session, attempt) = with_unknown(&bench, "full").await;
    let log = session.log_bytes();
    let made = session.host.fork(&session.selector).await.unwrap();
    assert_ne!(made.session_id, session.id);
    let mut copy = bench.of(session.host.clone(), &made.session_id);
    assert_eq!(copy.open_attempt().await, attempt);
    let receipts = |log: Vec<Record>| -> Vec<Record> {
        let is_receipt = |record: &Record| matches!(record, Record::Receipt(_));
        log.into_iter().filter(is_receipt).collect()
    };
    assert_eq!(receipts(copy.log()), receipts(session.log()));
    let record = copy.recovery().await.calls.remove(0);
    assert_eq!(record.identity.session_id, session.id);
    assert_eq!(copy.items().await.len(), session.items().await.len());
    bench.script.runs(&bench.ledger().append("effect"));
    copy.turn("again").await;
    assert!(
        bench
            .script
            .last_result()
            .starts_with("blocked: recovery_required")
    );
    // A word about the one is no word about the other.
    copy.act(Action::Dismiss, &attempt, "").await.unwrap();
    assert_eq!(copy.recovery().await.calls, []);
    assert_eq!(session.open_attempt().await, attempt);
    assert_eq!(session.log_bytes(), log, "the original is only read");
    bench.script.runs(&bench.ledger().append("of the copy"));
    copy.turn("go on").await;
    let last = receipts(copy.log()).pop().unwrap();
    assert!(matches!(last, Record::Receipt(r) if r.identity.session_id == made.session_id));
    assert_eq!(bench.ledger().lines(), ["effect", "of the copy"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_06_a_copy_proves_nothing_about_what_the_original_still_runs() {
    let bench = Bench::new();
    let (session, attempt) = with_open_write(&bench, "notes.txt", "new").await;
    let made = session.host.fork(&session.selector).await.unwrap();
    let copy = bench.of(session.host.clone(), &made.session_id);
    let (_, snapshot) = session.inspect(&attempt).await;
    let own = serde_json::to_value(&snapshot.calls[0]).unwrap();
    assert_eq!(own["inspection_state"], "absent_fenced");
    let (_, snapshot) = copy.inspect(&attempt).await;
    let copied = serde_json::to_value(&snapshot.calls[0]).unwrap();
    assert_eq!(copied["inspection_state"], "unknown");
    // Opened anew, nothing is concluded either, and nothing is written twice.
    session.host.close().await;
    let log = copy.log_bytes();
    let copy = bench.of(bench.host(), &made.session_id);
    assert_eq!(copy.open_attempt().await, attempt);
    assert_eq!(copy.log_bytes(), log);
}

#[test]
fn tr_06_c26_a_copy_of_a_session_whose_command_runs_blocks_and_fences_nothing() {
    let bench = Bench::new();
    let stay = bench.outside("stay");
    std::fs::write(&stay, "").unwrap();
    let command = format!(
        "while test -e {}; do sleep 0.02; done; {}",
        holdfast_testkit::ledger::quoted(&stay.to_string_lossy()),
        bench.ledger().append("effect")
    );
    runtime().block_on(async {
        let mut session = bench.session("full").await;
        bench.script.runs(&command);
        session.submit("run it").await;
        session
            .until("the start", |event| {
                matches!(event, Event::ToolStarted { .. })
            })
            .await;
        let id = "c0".repeat(16);
        let folder = session.folder.with_file_name(&id);
        let holder = holdfast_journal::Holder {
            pid: 1,
            host: String::new(),
            since: 1,
            socket: None,
        };
        let lease = holdfast_journal::Lease::create(&folder, &holder).unwrap();
        let disk: std::sync::Arc<dyn holdfast_files::Storage> =
            std::sync::Arc::new(holdfast_files::Disk);
        holdfast_journal::copy_session(&disk, &session.folder, &session.id, &lease, &id).unwrap();
        drop(lease);
        let mut copy = bench.of(session.host.clone(), &id);
        let attempt = copy.open_attempt().await;
        assert_eq!(copy.status().await.background_jobs, 0);
        assert!(
            !folder.join("effects").join(&attempt).exists(),
            "nothing was fenced"
        );
        std::fs::remove_file(&stay).unwrap();
        session.until_done().await;
        assert_eq!(session.tools().await[0].state, "completed");
        assert_eq!(
            copy.open_attempt().await,
            attempt,
            "the copy knows nothing of it"
        );
        bench.script.calls(&[("shell", &shell("true"))]);
        copy.turn("go on").await;
        assert!(
            bench
                .script
                .last_result()
                .starts_with("blocked: recovery_required")
        );
        session.host.close().await;
    });
    assert_eq!(bench.ledger().lines(), ["effect"]);
}
