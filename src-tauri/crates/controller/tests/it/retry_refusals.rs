//! When a person's retry is refused, and by which code (TR-30).

use std::sync::Arc;

use holdfast_domain::recovery::admission::Action;
use holdfast_domain::recovery::attempt::InspectionState;
use holdfast_domain::transcript::record::Record;

use crate::bench::{Bench, request};
use crate::recovery::{Ending, with_calls};
use crate::restart::{lose_host_during, runtime, waits_for};
use crate::script::write;
use crate::sink_tool::SinkTool;
use crate::walk::{Stand, World, hint, refused};
use crate::worlds::SinkWorld;

#[test]
fn tr_30_executor_alive_while_the_command_runs_on() {
    let mut bench = Bench::new();
    bench.retry = true;
    let command = waits_for(&bench, "true");
    let id = lose_host_during(&bench, &command);
    runtime().block_on(async {
        let session = bench.of(bench.host(), &id);
        let tool = session.tools().await.remove(0);
        assert_eq!(tool.state, "in_flight");
        let attempt = tool.attempt_id;
        let inspected = session.act(Action::Inspect, &attempt, "").await.unwrap();
        assert!(inspected.calls.is_empty(), "what runs is not uncertain");
        let id = session
            .log()
            .into_iter()
            .rev()
            .find_map(|record| match record {
                Record::Inspected(inspected) => Some(inspected.inspection.inspection_id),
                _ => None,
            })
            .unwrap();
        for action in [
            Action::Retry,
            Action::Confirm,
            Action::Reject,
            Action::Dismiss,
        ] {
            let error = session.act(action, &attempt, &id).await.unwrap_err();
            assert_eq!(error.code, "executor_alive", "{action:?}");
        }
        std::fs::remove_file(bench.outside("stay")).unwrap();
        session
            .when("its end", |status| status.background_jobs == 0)
            .await;
        assert_eq!(bench.ledger().lines(), ["effect"]);
        session.host.close().await;
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_30_tool_unavailable_when_the_host_has_it_no_more() {
    let mut bench = Bench::new();
    let world = SinkWorld::new(&mut bench);
    let (mut session, attempt) = world.begin(&bench).await;
    session.host.close().await;
    bench.tools.clear();
    session = bench.of(bench.host(), &session.id);
    // TR-32: a tool that is gone leaves nothing to look at.
    let (inspection, snapshot) = session.inspect(&attempt).await;
    assert_eq!(
        snapshot.calls[0].inspection_state,
        Some(InspectionState::Unknown)
    );
    assert_eq!(hint(&session, &attempt).await.code, "tool_unavailable");
    refused(&session, &attempt, &inspection, "tool_unavailable").await;
    session.act(Action::Dismiss, &attempt, "").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_30_sink_changed_when_the_arguments_mean_another_place() {
    let mut bench = Bench::new();
    let world = SinkWorld::new(&mut bench);
    let (mut session, attempt) = world.begin(&bench).await;
    world.make(Stand::AbsentFenced, &attempt);
    let (inspection, _) = session.inspect(&attempt).await;
    session.host.close().await;
    bench.tools = vec![Arc::new(
        SinkTool::new(world.sink.client()).moved("sink:two"),
    )];
    session = bench.of(bench.host(), &session.id);
    refused(&session, &attempt, &inspection, "sink_changed").await;
    let looked = session.act(Action::Inspect, &attempt, "").await;
    assert_eq!(looked.unwrap_err().code, "sink_changed");
    assert_eq!(world.sink.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_30_sink_changed_when_a_link_leads_elsewhere() {
    let mut bench = Bench::new();
    bench.retry = true;
    let workspace = bench.workspace();
    for folder in ["one", "two"] {
        std::fs::create_dir(workspace.join(folder)).unwrap();
    }
    let link = workspace.join("link");
    std::os::unix::fs::symlink("one", &link).unwrap();
    let arguments = write("link/f", "after");
    let (session, attempts) =
        with_calls(&bench, &[("write_file", &arguments)], Ending::EffectUnknown).await;
    let (inspection, _) = session.inspect(&attempts[0]).await;
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("two", &link).unwrap();
    refused(&session, &attempts[0], &inspection, "sink_changed").await;
    for folder in ["one", "two"] {
        assert!(!workspace.join(folder).join("f").exists());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_30_retry_target_changed_when_the_tool_is_another() {
    let mut bench = Bench::new();
    let world = SinkWorld::new(&mut bench);
    let (mut session, attempt) = world.begin(&bench).await;
    world.make(Stand::AbsentFenced, &attempt);
    let (inspection, _) = session.inspect(&attempt).await;
    session.host.close().await;
    bench.tools = vec![Arc::new(
        SinkTool::new(world.sink.client()).renamed("put_two"),
    )];
    session = bench.of(bench.host(), &session.id);
    refused(&session, &attempt, &inspection, "retry_target_changed").await;
    assert_eq!(world.sink.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_30_session_closed_while_and_after_a_host_ends() {
    let mut bench = Bench::new();
    let world = SinkWorld::new(&mut bench);
    let (session, attempt) = world.begin(&bench).await;
    world.make(Stand::AbsentFenced, &attempt);
    let (inspection, snapshot) = session.inspect(&attempt).await;
    session.host.close().await;
    let before = session.log_bytes();
    for action in [
        Action::Inspect,
        Action::Retry,
        Action::Confirm,
        Action::Dismiss,
    ] {
        let late = session
            .resolve(request(&snapshot, action, &attempt, &inspection))
            .await
            .unwrap_err();
        assert_eq!((late.status, late.code.as_str()), (409, "session_closed"));
    }
    assert_eq!(session.log_bytes(), before);
    // It was given back, and another host may have it at once.
    let next = bench.of(bench.host(), &session.id);
    assert_eq!(next.open_attempt().await, attempt);
    assert_eq!(world.effects(), 0);
}
