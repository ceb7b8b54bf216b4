//! Defects of others, and of the host itself: nothing hangs, and nothing is said twice.

use holdfast_api::event::{Event, Frame};
use holdfast_api::host::SessionHost;
use holdfast_api::session::{CreateSession, SessionsQuery, Submit};
use holdfast_domain::runtime::snapshot::{Activity, Phase};
use holdfast_files::fault::{Fault, Plan};
use holdfast_provider::ModelEvent;
use holdfast_testkit::wait::scaled;

use crate::bench::{Bench, ends, eventually};
use crate::script::{Step, finished};

fn text(text: &str) -> crate::script::Item {
    Ok(ModelEvent::Text(text.to_owned()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_09_a_model_client_that_panics_ends_the_turn_once_in_idle() {
    for (step, code, kept) in [
        (Step::PanicAtOnce, "model_defect", None),
        (
            Step::PanicAfter(vec![text("some")]),
            "model_defect",
            Some("some"),
        ),
        (
            Step::Items(vec![text("broken off")]),
            "provider_incomplete",
            Some("broken off"),
        ),
        (Step::Items(Vec::new()), "provider_incomplete", None),
    ] {
        let bench = Bench::new();
        let mut session = bench.session("full").await;
        bench.script.step(step);
        let frames = session.turn("go").await;
        assert_eq!(ends(&frames), [("failed".to_owned(), code.to_owned())]);
        let state = session.status().await.runtime_state.unwrap();
        assert_eq!(
            (state.phase, state.running, state.activity),
            (Phase::Idle, false, Activity::None)
        );
        let item = session.items().await.pop().unwrap();
        match kept {
            Some(kept) => assert_eq!((item.text.as_deref(), item.partial), (Some(kept), true)),
            None => assert_eq!(item.kind, "user"),
        }
        // The next turn is an ordinary one, and the earlier end is not told again.
        let frames = session.turn("again").await;
        assert_eq!(ends(&frames), [("completed".to_owned(), String::new())]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_ends_by_a_defect_is_opened_again() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    bench.script.says("one");
    session.turn("go").await;
    let model = bench.script.live();
    session.submit("another").await;
    eventually("the request", || {
        (bench.script.requests().len() == 2).then_some(())
    })
    .await;
    bench.source.break_once();
    model.send(finished("never stored", Vec::new())).unwrap();
    // Whoever watches is told that it is over.
    let frames = session
        .until("a closed state", |event| {
            matches!(event, Event::RuntimeState { runtime_state, .. }
                if runtime_state.phase == Phase::Closed && !runtime_state.running)
        })
        .await;
    assert!(ends(&frames).is_empty());
    // Its lease is given back a moment later.
    let deadline = std::time::Instant::now() + holdfast_testkit::wait::SOON;
    let status = loop {
        match session.host.status(&session.selector).await {
            Ok(status) => break status,
            Err(error) => {
                assert!(
                    ["session_closed", "session_held"].contains(&error.code.as_str()),
                    "{error:?}"
                );
                assert!(std::time::Instant::now() < deadline);
                tokio::task::yield_now().await;
            }
        }
    };
    assert!(!status.running);
    let state = status.runtime_state.unwrap();
    assert_eq!(
        serde_json::to_value(state.turn_status).unwrap(),
        "interrupted"
    );
    let frames = session.turn("go on").await;
    assert_eq!(ends(&frames), [("completed".to_owned(), String::new())]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_submits_at_once_one_is_refused_as_busy() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let model = bench.script.live();
    let submit = |text: &str| {
        let (host, selector) = (session.host.clone(), session.selector.clone());
        let request = Submit {
            input: text.to_owned(),
            submission_id: None,
        };
        tokio::spawn(async move { host.submit(&selector, request).await })
    };
    let (one, two) = (submit("one"), submit("two"));
    let answers = [one.await.unwrap(), two.await.unwrap()];
    let refused: Vec<_> = answers
        .iter()
        .filter_map(|answer| answer.as_ref().err())
        .collect();
    assert_eq!(refused.len(), 1);
    assert_eq!(
        (refused[0].status, refused[0].code.as_str()),
        (409, "session_busy")
    );
    model.send(finished("done", Vec::new())).unwrap();
    let frames = session.until_done().await;
    assert_eq!(ends(&frames).len(), 1);
    assert_eq!(
        session
            .items()
            .await
            .iter()
            .filter(|item| item.kind == "user")
            .count(),
        1
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_submission_id_is_the_same_message() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let request = |input: &str| Submit {
        input: input.to_owned(),
        submission_id: Some("key".to_owned()),
    };
    let first = session
        .host
        .submit(&session.selector, request("one"))
        .await
        .unwrap();
    session.until_done().await;
    let again = session
        .host
        .submit(&session.selector, request("one"))
        .await
        .unwrap();
    assert_eq!((again.turn_id, again.duplicate), (first.turn_id, true));
    let other = session
        .host
        .submit(&session.selector, request("two"))
        .await
        .unwrap_err();
    assert_eq!(other.code, "idempotency_conflict");
    assert_eq!(bench.script.requests().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_12_a_submit_right_after_a_turns_end_never_sees_the_earlier_idle() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    for _ in 0..scaled(20) {
        let turn_id = session.submit("go").await;
        // The answer comes behind the state: executing, or already done again.
        let state = session.host.hub().state(&session.id).unwrap();
        assert_eq!(state.turn_id, turn_id);
        let frames: Vec<Frame> = session.until_done().await;
        assert_eq!(frames.last().unwrap().turn_id, turn_id);
        let state = session.host.hub().state(&session.id).unwrap();
        assert_eq!((state.phase, state.turn_id), (Phase::Idle, turn_id));
    }
    // Revisions only grow, and each one has one content.
    let mut seen = std::collections::BTreeMap::new();
    let model = bench.script.live();
    session.submit("last").await;
    model.send(finished("done", Vec::new())).unwrap();
    for frame in session.until_done().await {
        if let Event::RuntimeState { runtime_state, .. } = frame.event {
            let revision = runtime_state.revision;
            assert_eq!(
                seen.entry(revision).or_insert(runtime_state.clone()),
                &runtime_state
            );
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_can_not_be_created_leaves_no_trace() {
    let bench = Bench::new();
    let host = bench.host();
    bench.storage.inject(Plan {
        fault: Fault::Fail(std::io::ErrorKind::StorageFull),
        first: 1,
        last: u64::MAX,
        only: None,
    });
    let refused = host
        .create_session(CreateSession::default())
        .await
        .unwrap_err();
    assert_eq!(
        (refused.status, refused.code.as_str()),
        (507, "storage_error")
    );
    bench.storage.heal();
    let list = host.list_sessions(&SessionsQuery::default()).await.unwrap();
    assert!(list.items.is_empty(), "{list:#?}");
    let created = host.create_session(CreateSession::default()).await.unwrap();
    let list = host.list_sessions(&SessionsQuery::default()).await.unwrap();
    assert_eq!(list.items[0].session_id, created.session_id);
}
