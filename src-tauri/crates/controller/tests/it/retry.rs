//! A person's retry: TR-35, TR-36, TR-37, and what TR-30, TR-31 and TR-38 say of it.

use std::sync::Arc;

use holdfast_api::event::Event;
use holdfast_api::host::SessionHost;
use holdfast_api::session::{Cancel, Cancelled, PatchSession};
use holdfast_controller::HostOptions;
use holdfast_domain::recovery::admission::Action;
use holdfast_domain::recovery::attempt::InspectionState;
use holdfast_domain::recovery::file::FileIntent;
use holdfast_domain::runtime::snapshot::{Phase, TurnStatus};
use holdfast_domain::transcript::record::Record;
use holdfast_files::fault::{Fault, Plan};
use holdfast_testkit::Sink;
use holdfast_testkit::sink::{Conduct, Sight};
use holdfast_tools::{BroughtTool, Registry, RegistryConfig, Workspace};

use crate::barrier::with_unknown;
use crate::bench::{Bench, eventually, request};
use crate::recovery::{Ending, with_calls};
use crate::script::{Scripted, write};
use crate::sink_tool::SinkTool;
use crate::walk::{Stand, WALKED, World, hint, receipts, refused, walk, walk_present};
use crate::worlds::{FileWorld, SinkWorld};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_37_an_authoritative_sink_walks_unknown_unfenced_fenced_and_its_key_is_stable() {
    let mut bench = Bench::new();
    let world = SinkWorld::new(&mut bench);
    walk(&bench, &world).await;
    let asked = world.sink.asked();
    assert_eq!(asked.len(), 2, "two requests, and one effect");
    assert_eq!(asked[0].key, asked[1].key);
    assert_ne!(asked[0].sender, asked[1].sender);
    // What the first one may still send is of no use any more.
    world.sink.commit_held();
    assert_eq!(world.effects(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_37_what_is_in_the_sink_is_not_put_again() {
    let mut bench = Bench::new();
    let world = SinkWorld::new(&mut bench);
    walk_present(&bench, &world).await;
    assert_eq!(world.sink.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_37_the_verifier_of_write_file_walks_the_same_way() {
    let mut bench = Bench::new();
    let world = FileWorld::new(&mut bench, "write_file");
    walk(&bench, &world).await;
    let mut other = Bench::new();
    let world = FileWorld::new(&mut other, "write_file");
    walk_present(&other, &world).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_37_the_verifier_of_edit_file_walks_the_same_way() {
    let mut bench = Bench::new();
    let world = FileWorld::new(&mut bench, "edit_file");
    walk(&bench, &world).await;
    let mut other = Bench::new();
    let world = FileWorld::new(&mut other, "edit_file");
    walk_present(&other, &world).await;
}

#[test]
fn tr_35_a_verifier_counts_only_once_it_walks_acceptance_4() {
    let bench = Bench::new();
    let workspace = Workspace::open(&bench.workspace(), Vec::new()).unwrap();
    let registry = Registry::new(RegistryConfig::default()).unwrap();
    let intent = FileIntent {
        version: 1,
        path: "f".to_owned(),
        resolved_path: "/f".to_owned(),
        before: String::new(),
        after: String::new(),
        encoding: "utf-8".to_owned(),
        existed: false,
    };
    let mut verified: Vec<&str> = registry
        .specs()
        .iter()
        .map(|spec| spec.name.as_str())
        .filter(|name| registry.verifier(name, Some(&intent), &workspace).is_some())
        .collect();
    verified.sort_unstable();
    assert_eq!(verified, WALKED);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_35_each_host_decides_for_itself_and_switching_it_off_destroys_nothing() {
    let mut bench = Bench::new();
    let world = SinkWorld::new(&mut bench);
    let (mut session, attempt) = world.begin(&bench).await;
    world.make(Stand::AbsentFenced, &attempt);
    let (inspection, snapshot) = session.inspect(&attempt).await;
    assert!(snapshot.retry_enabled && hint(&session, &attempt).await.allowed);
    session.host.close().await;

    bench.retry = false;
    session = bench.of(bench.host(), &session.id);
    let off = session.recovery().await;
    assert!(!off.retry_enabled);
    assert_eq!(off.calls[0].inspection_id, inspection);
    assert_eq!(
        off.calls[0].inspection_state,
        Some(InspectionState::AbsentFenced)
    );
    assert_eq!(hint(&session, &attempt).await.code, "retry_disabled");
    refused(&session, &attempt, &inspection, "retry_disabled").await;
    session.host.close().await;

    bench.retry = true;
    session = bench.of(bench.host(), &session.id);
    session
        .act(Action::Retry, &attempt, &inspection)
        .await
        .unwrap();
    session.idle().await;
    assert_eq!(world.effects(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_26_the_hint_of_a_retry_leaves_the_revision_stable() {
    let mut bench = Bench::new();
    let world = SinkWorld::new(&mut bench);
    let (session, attempt) = world.begin(&bench).await;
    world.make(Stand::AbsentFenced, &attempt);
    session.inspect(&attempt).await;
    let before = session.recovery().await;
    // The world is another now; the snapshot says what is recorded, and looks nowhere.
    world.make(Stand::Dark, &attempt);
    assert_eq!(session.recovery().await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_36_a_command_without_its_exit_receipt_is_never_run_again() {
    let mut bench = Bench::new();
    bench.retry = true;
    let (session, attempt) = with_unknown(&bench, "full").await;
    let (inspection, snapshot) = session.inspect(&attempt).await;
    assert_eq!(
        snapshot.calls[0].inspection_state,
        Some(InspectionState::Unknown)
    );
    assert_eq!(hint(&session, &attempt).await.code, "not_fenced");
    refused(&session, &attempt, &inspection, "not_fenced").await;
    assert_eq!(bench.ledger().count("effect"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_36_a_read_only_session_refuses_it_and_another_mode_asks_nobody() {
    let mut bench = Bench::new();
    let world = SinkWorld::new(&mut bench);
    let (session, attempt) = world.begin(&bench).await;
    world.make(Stand::AbsentFenced, &attempt);
    let mode = async |mode: &str| {
        let patch = PatchSession {
            mode: Some(mode.to_owned()),
            ..PatchSession::default()
        };
        session
            .host
            .patch_session(&session.id, patch)
            .await
            .unwrap();
    };
    let (inspection, _) = session.inspect(&attempt).await;
    mode("read-only").await;
    assert_eq!(hint(&session, &attempt).await.code, "mode_read_only");
    refused(&session, &attempt, &inspection, "mode_read_only").await;
    mode("ask").await;
    session
        .act(Action::Retry, &attempt, &inspection)
        .await
        .unwrap();
    session.idle().await;
    assert_eq!(world.effects(), 1);
    assert!(
        !session
            .log()
            .iter()
            .any(|record| matches!(record, Record::PromptAsked(_))),
        "the person's retry is the approval of this call"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_05_the_barrier_exempts_the_retried_attempt_and_no_other() {
    let mut bench = Bench::new();
    bench.retry = true;
    let (one, two) = (write("one", "1"), write("two", "2"));
    let (session, attempts) = with_calls(
        &bench,
        &[("write_file", &one), ("write_file", &two)],
        Ending::EffectUnknown,
    )
    .await;
    let (inspection, _) = session.inspect(&attempts[0]).await;
    assert_eq!(hint(&session, &attempts[0]).await.code, "recovery_required");
    refused(&session, &attempts[0], &inspection, "recovery_required").await;
    session
        .act(Action::Dismiss, &attempts[1], "")
        .await
        .unwrap();
    assert!(hint(&session, &attempts[0]).await.allowed);
    session
        .act(Action::Retry, &attempts[0], &inspection)
        .await
        .unwrap();
    session.idle().await;
    let read = |name| std::fs::read_to_string(bench.workspace().join(name)).ok();
    assert_eq!((read("one"), read("two")), (Some("1".to_owned()), None));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_36_it_is_an_ordinary_executing_phase_and_can_be_stopped() {
    let mut bench = Bench::new();
    let world = SinkWorld::new(&mut bench);
    let (mut session, first) = world.begin(&bench).await;
    world.make(Stand::AbsentFenced, &first);
    let turn_before = session.status().await.runtime_state.unwrap().turn_id;
    let (inspection, _) = session.inspect(&first).await;
    world.sink.conduct(Conduct::HoldAndStall);
    session
        .act(Action::Retry, &first, &inspection)
        .await
        .unwrap();
    // Whoever has the answer finds it executing, under an id that is no turn's.
    let state = session.status().await.runtime_state.unwrap();
    assert_eq!(
        (
            state.phase,
            state.turn_status,
            state.cancellable,
            state.unresolved
        ),
        (Phase::Executing, TurnStatus::InProgress, true, 0)
    );
    assert_ne!(state.turn_id, turn_before);
    let busy = session.try_submit("meanwhile").await.unwrap_err();
    assert_eq!(busy.code, "session_busy");
    let other = session.act(Action::Inspect, &first, "").await.unwrap_err();
    assert_eq!(other.code, "turn_running");
    eventually("the second request", || {
        (world.sink.asked().len() == 2).then_some(())
    })
    .await;
    // C37: a late Stop of the turn before does not reach it.
    let stop = async |turn: &str| {
        let cancel = Cancel {
            turn_id: Some(turn.to_owned()),
        };
        session
            .host
            .cancel(&session.selector, cancel)
            .await
            .unwrap()
    };
    assert_eq!(stop(&turn_before).await, Cancelled::AlreadyEnded);
    assert_eq!(stop(&state.turn_id).await, Cancelled::Requested);
    let frames = session
        .until(
            "the end of the retry",
            |event| matches!(event, Event::TurnDone { status, .. } if status == "cancelled"),
        )
        .await;
    assert!(frames.iter().any(|frame| {
        matches!(&frame.event, Event::ToolStarted { tool } if tool.id.starts_with("retry_"))
    }));
    let state = session.idle().await.runtime_state.unwrap();
    assert_eq!((state.turn_id, state.unresolved), (turn_before, 1));

    // TR-10: a stop proves no end. The retry is unknown now, and may be retried like any other.
    let second = session.open_attempt().await;
    assert_ne!(second, first);
    world.sink.conduct(Conduct::Apply);
    let (inspection, snapshot) = session.inspect(&second).await;
    assert_eq!(
        snapshot.calls[0].inspection_state,
        Some(InspectionState::Unknown),
        "the sink may still do it"
    );
    assert_eq!(
        snapshot.calls[0].arguments,
        Some(serde_json::json!({"thing": "t"})),
        "the stored arguments, through the chain"
    );
    refused(&session, &second, &inspection, "not_fenced").await;
    world.make(Stand::AbsentFenced, &second);
    let (inspection, _) = session.inspect(&second).await;
    session
        .act(Action::Retry, &second, &inspection)
        .await
        .unwrap();
    // Its end is heard here, so that the turn below waits for its own.
    session.until_done().await;
    session.idle().await;
    world.sink.commit_held();
    assert_eq!(world.effects(), 1);
    let keys: Vec<String> = receipts(&session)
        .into_iter()
        .map(|receipt| receipt.idempotency_key)
        .collect();
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| *key == keys[0]));
    assert_eq!(session.recovery().await.statistics.retried, 2);
    // The chain is told to its end.
    session.turn("and now?").await;
    let note = session
        .items()
        .await
        .into_iter()
        .find(|item| item.kind == "note")
        .and_then(|item| item.text)
        .unwrap();
    assert!(note.contains("completed"), "{note}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_36_the_jail_and_the_digest_before_hold_for_the_retry_too() {
    let mut bench = Bench::new();
    let world = FileWorld::new(&mut bench, "write_file");
    let (session, attempt) = world.begin(&bench).await;
    let (inspection, _) = session.inspect(&attempt).await;
    // Somebody else wrote meanwhile: nothing is published over that.
    world.put("by hand");
    refused(&session, &attempt, &inspection, "not_fenced").await;
    assert_eq!(
        std::fs::read_to_string(bench.workspace().join("f")).unwrap(),
        "by hand"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_32_a_verifier_that_hangs_proves_nothing() {
    let mut bench = Bench::new();
    let world = SinkWorld::new(&mut bench);
    let options = HostOptions::new(
        bench.data(),
        bench.config.clone(),
        Arc::clone(&bench.source) as Arc<dyn holdfast_controller::source::Source>,
        Arc::new(Scripted(Arc::clone(&bench.script))),
    );
    assert_eq!(options.inspection_time, std::time::Duration::from_secs(5));
    bench.inspection_time = Some(std::time::Duration::from_millis(200));
    let (session, attempt) = world.begin(&bench).await;
    world.make(Stand::AbsentFenced, &attempt);
    world.sink.sight(Sight::Stuck);
    let (inspection, snapshot) = session.inspect(&attempt).await;
    assert_eq!(
        snapshot.calls[0].inspection_state,
        Some(InspectionState::Unknown)
    );
    assert!(snapshot.calls[0].inspection_summary.contains("too long"));
    refused(&session, &attempt, &inspection, "not_fenced").await;
    assert_eq!(world.effects(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_31_a_retry_that_can_not_be_stored_did_not_run_at_any_fault() {
    let mut bench = Bench::new();
    let world = SinkWorld::new(&mut bench);
    let (session, attempt) = world.begin(&bench).await;
    world.make(Stand::AbsentFenced, &attempt);
    let (inspection, before) = session.inspect(&attempt).await;
    let mut faults = 0;
    for place in 1.. {
        assert!(place < 40, "it never came through");
        bench.storage.inject(Plan {
            fault: Fault::Fail(std::io::ErrorKind::StorageFull),
            first: place,
            last: place,
            only: None,
        });
        let answer = session.act(Action::Retry, &attempt, &inspection).await;
        bench.storage.heal();
        match answer {
            Ok(_) => break,
            Err(error) => {
                faults += 1;
                assert_eq!(error.code, "not_durable", "at {place}");
                let shown = error.snapshot.unwrap();
                assert_eq!(shown.calls[0].identity, before.calls[0].identity);
                assert_eq!(shown.statistics.retried, 0);
                assert_eq!(world.sink.asked().len(), 1, "nothing was sent, at {place}");
                assert!(!session.status().await.running);
            }
        }
    }
    assert!(faults >= 2, "the write and the sync");
    session.idle().await;
    assert_eq!((world.effects(), world.sink.asked().len()), (1, 2));
    // And all the same when storage fails for good.
    let mut bench = Bench::new();
    let world = SinkWorld::new(&mut bench);
    let (session, attempt) = world.begin(&bench).await;
    world.make(Stand::AbsentFenced, &attempt);
    let (inspection, _) = session.inspect(&attempt).await;
    bench.storage.inject(Plan {
        fault: Fault::Fail(std::io::ErrorKind::StorageFull),
        first: 1,
        last: u64::MAX,
        only: None,
    });
    for _ in 0..2 {
        let error = session
            .act(Action::Retry, &attempt, &inspection)
            .await
            .unwrap_err();
        assert_eq!(error.code, "not_durable");
    }
    // TR-30: what is not durable is said behind all other causes.
    world.make(Stand::Dark, &attempt);
    let error = session
        .act(Action::Retry, &attempt, &inspection)
        .await
        .unwrap_err();
    assert_eq!(error.code, "not_fenced");
    world.make(Stand::AbsentFenced, &attempt);
    bench.storage.heal();
    session
        .act(Action::Retry, &attempt, &inspection)
        .await
        .unwrap();
    session.idle().await;
    assert_eq!((world.effects(), world.sink.asked().len()), (1, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_38_of_concurrent_retries_confirmations_and_dismissals_exactly_one_wins() {
    for first in [Action::Retry, Action::Confirm, Action::Dismiss] {
        let mut bench = Bench::new();
        let world = SinkWorld::new(&mut bench);
        let (mut session, attempt) = world.begin(&bench).await;
        world.make(Stand::AbsentFenced, &attempt);
        let (inspection, snapshot) = session.inspect(&attempt).await;
        let tasks: Vec<_> = (0..9)
            .map(|place| {
                let action = match place % 3 {
                    0 => first,
                    1 => Action::Retry,
                    _ => Action::Confirm,
                };
                let asked = request(&snapshot, action, &attempt, &inspection);
                let (host, selector) = (session.host.clone(), session.selector.clone());
                tokio::spawn(async move {
                    let answer = host.resolve_tool_recovery(&selector, asked, "test").await;
                    (action, answer)
                })
            })
            .collect();
        let mut won = Vec::new();
        for task in tasks {
            let (action, answer) = task.await.unwrap();
            match answer {
                Ok(_) => won.push(action),
                Err(error) => assert!(
                    ["turn_running", "snapshot_changed", "attempt_resolved"]
                        .contains(&error.code.as_str()),
                    "{error:?}"
                ),
            }
        }
        assert_eq!(won.len(), 1, "{won:?}");
        session.idle().await;
        let effects = usize::from(won[0] == Action::Retry);
        assert_eq!(world.effects(), effects);
        session.host.close().await;
        session = bench.of(bench.host(), &session.id);
        for action in [Action::Retry, Action::Confirm] {
            let late = session
                .resolve(request(&snapshot, action, &attempt, &inspection))
                .await;
            assert_eq!(late.unwrap_err().code, "snapshot_changed");
            let late = session.act(action, &attempt, &inspection).await;
            assert_eq!(late.unwrap_err().code, "attempt_resolved");
        }
        assert_eq!(world.effects(), effects);
        let decided = session
            .log()
            .iter()
            .filter(|record| matches!(record, Record::Superseded(_) | Record::Resolved(_)))
            .count();
        assert_eq!(decided, 1);
    }
}

#[test]
fn two_tools_of_one_name_are_a_defect() {
    let sink = Sink::start();
    let twice: Vec<Arc<dyn BroughtTool>> = vec![
        Arc::new(SinkTool::new(sink.client())),
        Arc::new(SinkTool::new(sink.client())),
    ];
    let config = RegistryConfig {
        brought: twice,
        ..RegistryConfig::default()
    };
    assert_eq!(Registry::new(config).unwrap_err().code(), "internal");
}
