//! One truth on all surfaces (TR-47): each state that an attempt can be in, on each surface that
//! shows it.

use std::collections::BTreeMap;

use holdfast_api::event::{Event, Frame};
use holdfast_api::host::SessionHost;
use holdfast_api::session::SessionsQuery;
use holdfast_api::transcript::{ToolView, TranscriptItem};
use holdfast_domain::recovery::admission::Action;

use crate::barrier::with_unknown;
use crate::bench::{Bench, Session, eventually};
use crate::script::shell;

/// Attempts that are behind the barrier in this state.
fn counts(state: &str) -> u64 {
    u64::from(state == "unknown")
}

fn states(items: &[TranscriptItem]) -> Vec<(String, String)> {
    let mut states: Vec<(String, String)> = items
        .iter()
        .filter_map(|item| item.tool.as_ref())
        .map(|tool| (tool.attempt_id.clone(), tool.state.clone()))
        .collect();
    states.sort();
    states
}

/// The last that each attempt's frames said of its state.
fn told(frames: &[Frame]) -> BTreeMap<String, String> {
    let said = |tool: &ToolView| (tool.attempt_id.clone(), tool.state.clone());
    frames
        .iter()
        .filter_map(|frame| match &frame.event {
            Event::ToolDispatch { tool }
            | Event::ToolStarted { tool }
            | Event::ToolResult { tool } => Some(said(tool)),
            _ => None,
        })
        .collect()
}

/// Every surface says `state` of the one attempt. `frames` is what the event stream told.
async fn all_say(bench: &Bench, session: &Session, frames: &[Frame], state: &str) {
    let page = session.items().await;
    let shown = states(&page);
    let attempt = shown[0].0.clone();
    assert_eq!(
        shown,
        [(attempt.clone(), state.to_owned())],
        "transcript page"
    );
    let snapshot = session
        .host
        .transcript_snapshot(&session.selector)
        .await
        .unwrap();
    assert_eq!(states(&snapshot.items), shown, "transcript snapshot");
    assert_eq!(
        told(frames).get(&attempt).map(String::as_str),
        Some(state),
        "event stream"
    );
    let recovery = session.recovery().await;
    let open: Vec<(String, String)> = recovery
        .calls
        .iter()
        .map(|call| {
            (
                call.identity.attempt_id.clone(),
                call.state.as_str().to_owned(),
            )
        })
        .collect();
    let wanted = if counts(state) == 1 {
        shown.clone()
    } else {
        Vec::new()
    };
    assert_eq!(open, wanted, "recovery snapshot of {state}");
    assert_eq!(recovery.statistics.unknown, counts(state));
    let status = session.status().await;
    let runtime = status.runtime_state.clone().unwrap();
    assert_eq!(runtime.unresolved, counts(state), "status of {state}");
    assert_eq!(session.host.hub().state(&session.id), Some(runtime.clone()));
    let list = session.host.list_sessions(&SessionsQuery::default()).await;
    let row = list.unwrap().items.remove(0);
    assert_eq!(row.state.unresolved, counts(state), "list of {state}");
    assert_eq!(row.state.background_jobs, runtime.background_jobs);
    if state == "in_flight" {
        // Only the host that runs it can know; beside it nobody says more than "unknown".
        return;
    }
    // The command line reads beside the host, and a list may know the log alone.
    let other = bench.host();
    let beside = other.read_transcript(&session.id).unwrap();
    assert_eq!(states(&beside), shown, "command line");
    let row = other
        .list_sessions(&SessionsQuery::default())
        .await
        .unwrap()
        .items
        .remove(0);
    assert_eq!(
        (row.state.open, row.state.unresolved),
        (false, counts(state)),
        "closed list"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_47_ends_of_commands_are_the_same_on_all_surfaces() {
    for (command, state, in_request) in [
        ("echo fine", "completed", "exit status 0"),
        ("echo bad; exit 2", "failed", "exit status 2"),
    ] {
        let bench = Bench::new();
        let mut session = bench.session("full").await;
        bench.script.runs(command);
        let frames = session.turn("go").await;
        all_say(&bench, &session, &frames, state).await;
        assert!(bench.script.last_result().contains(in_request));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_47_running_and_stopped_are_the_same_on_all_surfaces() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let command = format!(
        "{}; while :; do sleep 0.02; done",
        bench.ledger().append("began")
    );
    bench.script.calls(&[("shell", &shell(&command))]);
    session.submit("go").await;
    let mut frames = session
        .until("the start", |event| {
            matches!(event, Event::ToolStarted { .. })
        })
        .await;
    eventually("the command", || {
        (bench.ledger().count("began") == 1).then_some(())
    })
    .await;
    all_say(&bench, &session, &frames, "in_flight").await;
    session.stop().await;
    frames.extend(session.until_done().await);
    all_say(&bench, &session, &frames, "interrupted").await;
    session.turn("and now").await;
    assert!(
        bench
            .script
            .last_result()
            .contains("effects may be partial")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_47_unknown_and_resolved_are_the_same_on_all_surfaces() {
    for (action, state, note) in [
        (Action::Confirm, "user_confirmed", "the effect happened"),
        (Action::Dismiss, "user_dismissed", "stays unknown"),
    ] {
        let bench = Bench::new();
        let (mut session, attempt) = with_unknown(&bench, "full").await;
        let (inspection, _) = session.inspect(&attempt).await;
        let is_told =
            |event: &Event| matches!(event, Event::ToolResult { tool } if tool.state == "unknown");
        // With the inspection the state is told once more, behind all that came before.
        let frames = session.until("unknown", is_told).await;
        all_say(&bench, &session, &frames, "unknown").await;
        session.act(action, &attempt, &inspection).await.unwrap();
        let is_told =
            |event: &Event| matches!(event, Event::ToolResult { tool } if tool.state == state);
        let frames = session.until("the resolution", is_told).await;
        all_say(&bench, &session, &frames, state).await;
        session.turn("and now").await;
        let request = bench.script.requests().pop().unwrap();
        let texts = serde_json::to_string(&request.messages).unwrap();
        assert!(texts.contains("outcome of this call is unknown") && texts.contains(note));
    }
}
