//! What a session does now: RS-01, RS-02, RS-04, RS-05, RS-07, RS-09…RS-13, RS-38.

use holdfast_api::event::{Event, Frame};
use holdfast_api::host::SessionHost;
use holdfast_api::session::{CreateSession, SessionsQuery};
use holdfast_api::transcript::PageQuery;
use holdfast_domain::runtime::snapshot::{Activity, Phase, RuntimeState, TurnStatus};
use holdfast_provider::ModelEvent;
use holdfast_testkit::wait::scaled;

use crate::bench::{Bench, Session, eventually};
use crate::script::{finished, shell};

fn text(text: &str) -> crate::script::Item {
    Ok(ModelEvent::Text(text.to_owned()))
}

fn states(frames: &[Frame]) -> Vec<RuntimeState> {
    frames
        .iter()
        .filter_map(|frame| match &frame.event {
            Event::RuntimeState { runtime_state, .. } => Some(runtime_state.clone()),
            _ => None,
        })
        .collect()
}

async fn state_when(
    session: &Session,
    what: &str,
    wanted: impl Fn(&RuntimeState) -> bool,
) -> RuntimeState {
    let status = session
        .when(what, |status| {
            status.runtime_state.as_ref().is_some_and(&wanted)
        })
        .await;
    status.runtime_state.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_01_a_storm_of_reads_writes_nothing() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    bench.script.runs("echo out");
    session.turn("go").await;
    let attempt = session.tools().await[0].attempt_id.clone();
    eventually("the index", || {
        session.folder.join("index.json").exists().then_some(())
    })
    .await;
    let before = (
        bench.storage.operations(),
        session.log_bytes(),
        session.status().await,
    );
    let snapshot = session.recovery().await;
    for _ in 0..scaled(100) {
        let (host, selector) = (&session.host, &session.selector);
        host.status(selector).await.unwrap();
        host.runtime_states().await.unwrap();
        host.tool_recovery_snapshot(selector).await.unwrap();
        host.list_sessions(&SessionsQuery::default()).await.unwrap();
        host.pending_prompts(selector).await.unwrap();
        host.transcript_page(selector, &PageQuery::default())
            .await
            .unwrap();
        host.transcript_snapshot(selector).await.unwrap();
        host.diff(selector, &attempt).await.unwrap();
        host.jobs(selector).await.unwrap();
    }
    assert_eq!(
        (
            bench.storage.operations(),
            session.log_bytes(),
            session.status().await
        ),
        before
    );
    assert_eq!(session.recovery().await, snapshot);
    assert_eq!(bench.script.requests().len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_02_a_state_is_in_no_log_and_in_no_request() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    bench.script.runs("echo out");
    let frames = session.turn("go").await;
    session.turn("again").await;
    assert!(!states(&frames).is_empty(), "they were published");
    let epoch = session.status().await.runtime_state.unwrap().runtime_epoch;
    let log = session.log_bytes();
    let text = String::from_utf8_lossy(&log);
    let requests = format!("{:?}", bench.script.requests());
    for word in [
        epoch.as_str(),
        "runtime_state",
        "runtimeState",
        "turnStatus",
    ] {
        assert!(!text.contains(word), "{word} in the log");
        assert!(!requests.contains(word), "{word} in a request");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_38_an_hour_of_fake_time_changes_no_state() {
    let bench = Bench::new();
    let idle = bench.session("ask").await;
    let asked = bench.of(idle.host.clone(), &another(&idle).await);
    bench.script.runs("true");
    asked.submit("ask me").await;
    asked
        .when("a question", |status| status.pending_prompt)
        .await;
    let silent = bench.of(idle.host.clone(), &another(&idle).await);
    // A model that says nothing any more.
    let model = bench.script.live();
    silent.submit("go").await;
    model.send(text("t")).unwrap();
    state_when(&silent, "streaming", |s| s.activity == Activity::Streaming).await;

    let hub = idle.host.hub().clone();
    let before = hub.runtime_states();
    let operations = bench.storage.operations();
    for _ in 0..60 {
        bench.source.skip(std::time::Duration::from_secs(60));
        // Whoever asks meanwhile makes every session take a message, and a boundary with it.
        for session in [&idle, &asked, &silent] {
            session.status().await;
            session.recovery().await;
        }
    }
    assert_eq!(hub.runtime_states(), before);
    assert_eq!(bench.storage.operations(), operations);
    drop(model);
    silent.idle().await;
}

/// One more session of the same host.
async fn another(session: &Session) -> String {
    let request = CreateSession {
        mode: Some("ask".to_owned()),
        model: Some("scripted/model".to_owned()),
        ..CreateSession::default()
    };
    session
        .host
        .create_session(request)
        .await
        .unwrap()
        .session_id
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_04_a_session_with_a_past_is_never_shown_as_a_fresh_one() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    session.turn("go").await;
    session.host.close().await;
    let host = bench.host();
    let mut reopened = bench.of(host, &session.id);
    let status = reopened.status().await.runtime_state.unwrap();
    assert_eq!(status.revision, 1, "what was found is the first revision");
    assert_eq!(status.turn_status, TurnStatus::Completed);
    reopened.turn("again").await;
    let told: Vec<u64> = states(&reopened.turn("and again").await)
        .iter()
        .map(|state| state.revision)
        .collect();
    assert!(told.is_sorted_by(|a, b| a < b), "{told:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_04_all_fields_are_explicit_and_rs_05_tells_work() {
    let bench = Bench::new();
    let session = bench.session("full").await;
    let state = session.status().await.runtime_state.unwrap();
    assert!(state.is_valid() && !state.active_work());
    let value = serde_json::to_value(&state).unwrap();
    for (field, wanted) in [
        ("schemaVersion", serde_json::json!(1)),
        ("phase", serde_json::json!("idle")),
        ("running", serde_json::json!(false)),
        ("turnId", serde_json::json!("")),
        ("turnStatus", serde_json::json!("")),
        ("pendingPrompt", serde_json::json!(false)),
        ("cancelRequested", serde_json::json!(false)),
        ("cancellable", serde_json::json!(false)),
        ("backgroundJobs", serde_json::json!(0)),
        ("activity", serde_json::json!("")),
        ("unresolved", serde_json::json!(0)),
        ("outcome", serde_json::json!("")),
    ] {
        assert_eq!(value[field], wanted, "{field}");
    }
    assert!(value["turnEventSeq"].is_u64() && value["revision"].as_u64() >= Some(1));
    assert_eq!(value["runtimeEpoch"].as_str().unwrap().len(), 32);
    let model = bench.script.live();
    let turn_id = session.submit("go").await;
    let state = session.status().await.runtime_state.unwrap();
    assert!(state.active_work());
    assert_eq!(
        (state.turn_id, state.turn_status),
        (turn_id, TurnStatus::InProgress)
    );
    drop(model);
    session.idle().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_07_every_boundary_is_committed_before_it_is_told() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    bench.script.runs("true");
    session.submit("go").await;
    let frames = session.until_done().await;
    let told = states(&frames);
    assert!(told.iter().all(RuntimeState::is_valid));
    let status = session.status().await;
    let state = status.runtime_state.unwrap();
    // RS-27: the old fields are of the same snapshot.
    assert_eq!(
        (status.running, status.pending_prompt),
        (state.running, state.pending_prompt)
    );
    assert_eq!(
        (state.phase, state.turn_status),
        (Phase::Idle, TurnStatus::Completed)
    );
    assert_eq!(session.host.hub().state(&session.id), Some(state.clone()));
    let rows = session.host.runtime_states().await.unwrap();
    assert_eq!(rows.sessions[0].state, state);
    let row = session
        .host
        .list_sessions(&SessionsQuery::default())
        .await
        .unwrap()
        .items
        .remove(0);
    assert_eq!(
        (row.state.phase.as_str(), row.state.turn_status.as_str()),
        ("idle", "completed")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_09_finishing_is_shown_while_the_end_is_being_stored() {
    let bench = Bench::new();
    let session = bench.session("full").await;
    let model = bench.script.live();
    session.submit("go").await;
    eventually("the request", || {
        (bench.script.requests().len() == 1).then_some(())
    })
    .await;
    let gate = bench.gate.close();
    // The request ends without a reply, and the turn with it.
    drop(model);
    eventually("the write of the end", || {
        (bench.gate.waiting() == 1).then_some(())
    })
    .await;
    let hub = session.host.hub().clone();
    let finishing = hub.state(&session.id).unwrap();
    assert_eq!(
        (finishing.phase, finishing.running, finishing.cancellable),
        (Phase::Finishing, true, false)
    );
    assert_eq!(finishing.activity, Activity::None);
    // A close in the meantime brings no activity back.
    let mut reader = hub.reader(true, None, None);
    let host = session.host.clone();
    let closing = tokio::spawn(async move { host.close().await });
    drop(gate);
    closing.await.unwrap();
    assert_eq!(hub.state(&session.id), None);
    let frames: Vec<Frame> = reader
        .next()
        .await
        .iter()
        .map(|outgoing| serde_json::from_str(&outgoing.data).unwrap())
        .collect();
    let last = states(&frames).pop().unwrap();
    assert_eq!(
        (last.phase, last.running, last.activity),
        (Phase::Closed, false, Activity::None)
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_09_a_question_and_a_stop_show_step_by_step() {
    let bench = Bench::new();
    let mut session = bench.session("ask").await;
    // It does not end when it is asked to: the stop stays visible until it is made to.
    let began = bench.outside("began");
    let command = format!(
        "trap '' TERM; touch '{}'; while :; do sleep 0.05; done",
        began.display()
    );
    bench.script.runs(&command);
    session.submit("go").await;
    let prompt = session.prompt().await;
    let asked = state_when(&session, "a question", |state| state.pending_prompt).await;
    session.answer(&prompt, true).await.unwrap();
    eventually("the command", || began.exists().then_some(())).await;
    session.stop().await;
    let stopping = state_when(&session, "a stop", |state| state.cancel_requested).await;
    let frames = session.until_done().await;
    let over = session.status().await.runtime_state.unwrap();
    let shown = |state: &RuntimeState| {
        (
            state.phase,
            state.pending_prompt,
            state.cancel_requested,
            state.cancellable,
            state.activity,
        )
    };
    let executing = (Phase::Executing, false, false, true, Activity::Thinking);
    assert_eq!(
        shown(&asked),
        (Phase::Executing, true, false, true, Activity::Thinking)
    );
    assert_eq!(
        shown(&stopping),
        (Phase::Executing, false, true, true, Activity::Thinking)
    );
    assert_eq!(
        shown(&over),
        (Phase::Idle, false, false, false, Activity::None)
    );
    assert_eq!(over.turn_status, TurnStatus::Cancelled);
    // As a reader heard it, which may have missed some: never back, and one end.
    let order = [shown(&asked), executing, shown(&stopping), shown(&over)];
    let mut place = 0;
    for state in states(&frames) {
        if let Some(found) = order[place..].iter().position(|one| *one == shown(&state)) {
            place += found;
        }
        let back = order[..place].contains(&shown(&state)) && shown(&state) != executing;
        assert!(!back, "{state:?} came again");
    }
    assert_eq!(
        crate::bench::ends(&frames),
        [("cancelled".to_owned(), String::new())]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_10_no_state_is_a_mixed_one() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    for n in 0..scaled(10) {
        bench
            .script
            .calls(&[
                ("shell", &shell(&format!("echo {n}"))),
                ("read_file", r#"{"path":"x"}"#),
            ])
            .says("done");
        let frames = session.turn("go").await;
        for state in states(&frames) {
            let executing = state.phase == Phase::Executing;
            assert_eq!(
                state.running,
                executing || state.phase == Phase::Finishing,
                "{state:?}"
            );
            assert_eq!(executing, state.activity != Activity::None, "{state:?}");
            assert_eq!(state.unresolved, 0, "{state:?}");
            if executing {
                assert_eq!(state.turn_status, TurnStatus::InProgress, "{state:?}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_11_a_hundred_thousand_deltas_publish_nothing() {
    let count = scaled(100_000).max(20_000);
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let model = bench.script.live();
    session.submit("go").await;
    model.send(text("a")).unwrap();
    let streaming = state_when(&session, "streaming", |s| s.activity == Activity::Streaming).await;
    let operations = bench.storage.operations();
    for _ in 1..count {
        model.send(text("a")).unwrap();
    }
    let host = session.host.clone();
    let selector = session.selector.clone();
    // All of them have arrived, and the state is the same to the revision.
    let deadline = std::time::Instant::now() + holdfast_testkit::wait::SOON;
    loop {
        let live = host
            .transcript_snapshot(&selector)
            .await
            .unwrap()
            .live
            .unwrap();
        if live.text.len() == count {
            break;
        }
        assert!(
            std::time::Instant::now() < deadline,
            "{} of {count}",
            live.text.len()
        );
        tokio::task::yield_now().await;
    }
    assert_eq!(session.status().await.runtime_state.unwrap(), streaming);
    assert_eq!(bench.storage.operations(), operations);
    model
        .send(finished(&"a".repeat(count), Vec::new()))
        .unwrap();
    let frames = session.until_done().await;
    let last = states(&frames).pop();
    assert!(last.is_none_or(|state| state.revision <= streaming.revision + 3));
    let done = session.status().await.runtime_state.unwrap();
    assert!(
        done.revision <= streaming.revision + 3,
        "{done:?} after {streaming:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_12_a_reader_that_never_reads_delays_nothing_and_gets_the_final_state() {
    let bench = Bench::new();
    let session = bench.session("full").await;
    let mut stuck = session.host.hub().reader(true, None, None);
    let deltas = scaled(20_000).max(9_000);
    for _ in 0..2 {
        let mut items: Vec<_> = (0..deltas).map(|_| text("b")).collect();
        items.push(finished("done", Vec::new()));
        bench.script.step(crate::script::Step::Items(items));
        session.submit("go").await;
        session.idle().await;
    }
    let last = session.status().await.runtime_state.unwrap();
    let mut frames = Vec::new();
    while states(&frames).is_empty() {
        for outgoing in stuck.next().await {
            frames.push(serde_json::from_str::<Frame>(&outgoing.data).unwrap());
        }
    }
    // It fell behind, is told so first, and then finds the final state.
    assert!(matches!(frames[0].event, Event::Gap {}));
    assert_eq!(states(&frames).pop(), Some(last));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_13_activity_follows_the_turn() {
    let bench = Bench::new();
    let session = bench.session("full").await;
    let model = bench.script.live();
    session.submit("go").await;
    let thinking = |state: &RuntimeState| state.activity == Activity::Thinking;
    let streaming = |state: &RuntimeState| state.activity == Activity::Streaming;
    state_when(&session, "thinking at the start", thinking).await;
    model.send(text("t")).unwrap();
    state_when(&session, "streaming", streaming).await;
    model
        .send(Ok(ModelEvent::Reasoning("r".to_owned())))
        .unwrap();
    state_when(&session, "thinking while it reasons", thinking).await;
    model.send(text("t")).unwrap();
    state_when(&session, "streaming again", streaming).await;
    model
        .send(Ok(ModelEvent::ToolCall {
            index: 0,
            name: "shell".to_owned(),
            arguments_so_far_len: 3,
        }))
        .unwrap();
    state_when(&session, "thinking at a call", thinking).await;
    model.send(text("t")).unwrap();
    state_when(&session, "streaming once more", streaming).await;
    model
        .send(Ok(ModelEvent::Retrying {
            attempt: 1,
            wait_ms: 1,
            code: "provider_unavailable",
            message: "x".to_owned(),
        }))
        .unwrap();
    state_when(&session, "thinking during a retry", thinking).await;
    model.send(text("t")).unwrap();
    state_when(&session, "streaming at the end", streaming).await;
    model.send(finished("t", Vec::new())).unwrap();
    session.idle().await;
    let state = session.status().await.runtime_state.unwrap();
    assert_eq!((state.activity, state.phase), (Activity::None, Phase::Idle));
}
