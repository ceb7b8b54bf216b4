//! The events: frames in order with their places, one projection, and resyncs after a gap.

use futures_util::StreamExt;
use holdfast_api::App;
use holdfast_api::app::{Nothing, TabSubmit};
use holdfast_api::desktop::{AppEvent, NumberedFrame, RuntimeStateProjection, TopicStatus};
use holdfast_api::event::{Event, Frame};
use holdfast_domain::runtime::snapshot::TurnStatus;
use holdfast_testkit::Step;
use holdfast_testkit::wait::{SOON, scaled};

use crate::stage::{Stage, tab_of, topic, wait_for, wait_for_projection};

fn submit(tab_id: &str, input: &str) -> TabSubmit {
    TabSubmit {
        tab_id: tab_id.to_owned(),
        input: input.to_owned(),
        submission_id: input.to_owned(),
    }
}

#[tokio::test]
async fn frames_come_in_order_with_their_places_and_without_states() {
    let stage = Stage::new();
    let words: Vec<String> = (0..scaled(200)).map(|n| format!("{n} ")).collect();
    let chunks: Vec<&str> = words.iter().map(String::as_str).collect();
    stage.left.push(Step::chunks(&chunks));
    let stand = stage.start();
    let tab = stand.tab(&stage.path("left"), "left/one", "ask").await;
    let mut events = stand.app.events();
    let before = stand.app.transcript_snapshot(tab_of(&tab)).await.unwrap();
    stand
        .app
        .submit(submit(&tab.tab_id, "count"))
        .await
        .unwrap();
    let mut frames: Vec<NumberedFrame> = Vec::new();
    wait_for(&mut events, "the end of the turn", |event| {
        if let AppEvent::SessionFrames(batch) = event {
            assert!(!batch.frames.is_empty());
            frames.extend(batch.frames);
        }
        frames
            .iter()
            .any(|frame| matches!(frame.frame.event, Event::TurnDone { .. }))
            .then_some(())
    })
    .await;
    let place = |id: &str| -> u64 { id.rsplit_once('.').unwrap().1.parse().unwrap() };
    let places: Vec<u64> = frames.iter().map(|frame| place(&frame.id)).collect();
    let first = place(&before.up_to) + 1;
    let expected: Vec<u64> = (first..first + places.len() as u64).collect();
    assert_eq!(places, expected, "none is missing, none comes twice");
    let text: String = frames
        .iter()
        .filter_map(|frame| match &frame.frame.event {
            Event::Text { text } => Some(text.as_str()),
            Event::RuntimeState { .. } => panic!("states come with the projection alone"),
            _ => None,
        })
        .collect();
    assert_eq!(text, words.concat());
    stand.quit().await;
}

#[tokio::test]
async fn rs_11_streaming_text_publishes_no_projection() {
    let stage = Stage::new();
    let stand = stage.start();
    let tab = stand.tab(&stage.path("left"), "left/one", "ask").await;
    let mut events = stand.app.events();
    stand
        .reach(&mut events, "the list", |projection| {
            topic(projection, &tab).is_some_and(|topic| !topic.workspace_root.is_empty())
        })
        .await;
    let before = stand.projection().await;
    for n in 0..scaled(5_000) {
        stand.host.hub().publish(&Frame {
            session_id: tab.session_id.clone(),
            turn_id: "t".to_owned(),
            seq: None,
            event: Event::Text {
                text: n.to_string(),
            },
        });
    }
    let mut projections = 0;
    let mut heard = 0;
    wait_for(&mut events, "all text", |event| {
        match event {
            AppEvent::SessionFrames(batch) => {
                heard += batch
                    .frames
                    .iter()
                    .filter(|frame| matches!(frame.frame.event, Event::Text { .. }))
                    .count();
            }
            // What was published before the text may still be on its way.
            AppEvent::RuntimeStateChanged(projection) => {
                projections += usize::from(projection.revision > before.revision);
            }
            AppEvent::Resync(_) | AppEvent::RemoteTabUpdated(_) => {}
        }
        (heard == scaled(5_000)).then_some(())
    })
    .await;
    assert_eq!(projections, 0);
    assert_eq!(stand.projection().await, before);
    stand.quit().await;
}

#[tokio::test]
async fn rs_02_every_wrapper_of_the_stream_forwards_the_final_state() {
    let stage = Stage::new();
    let words = vec!["word "; scaled(2_000)];
    stage.left.push(Step::chunks(&words));
    let stand = stage.start();
    let tab = stand.tab(&stage.path("left"), "left/one", "ask").await;
    let hub = stand.host.hub();
    // Bare, of one session, coalescing, and coalescing as a stream.
    let mut bare = [
        hub.reader(true, None, None),
        hub.reader(false, Some(tab.session_id.clone()), None),
    ];
    let mut coalescing = stand.app.events();
    let mut stream = stand.app.events().into_stream();
    stand.app.submit(submit(&tab.tab_id, "talk")).await.unwrap();
    let is_over = |projection: &RuntimeStateProjection| {
        projection.sessions.iter().any(|session| {
            session.topic_id == tab.session_id
                && session.state.snapshot().is_some_and(|state| {
                    state.turn_status == TurnStatus::Completed && !state.running
                })
        })
    };
    let last = wait_for_projection(&mut coalescing, "the end", is_over).await;
    let streamed = tokio::time::timeout(SOON, async {
        while let Some(event) = stream.next().await {
            match event {
                AppEvent::RuntimeStateChanged(projection) if is_over(&projection) => return true,
                _ => {}
            }
        }
        false
    });
    assert!(streamed.await.unwrap());
    let wanted = &last.sessions.iter().find(|s| s.topic_id == tab.session_id);
    let wanted = wanted.unwrap().state.snapshot().unwrap();
    for reader in &mut bare {
        let told = tokio::time::timeout(SOON, async {
            loop {
                for outgoing in reader.next().await {
                    let frame: Frame = serde_json::from_str(&outgoing.data).unwrap();
                    if let Event::RuntimeState { runtime_state, .. } = frame.event
                        && runtime_state == *wanted
                    {
                        return;
                    }
                }
            }
        });
        told.await.unwrap();
    }
    stand.quit().await;
}

#[tokio::test]
async fn rs_25_a_reader_that_fell_behind_is_told_to_read_again() {
    let stage = Stage::new();
    let stand = stage.start();
    let tab = stand.tab(&stage.path("left"), "left/one", "ask").await;
    let mut slow = stand.app.events();
    let mut also_slow = stand.app.events();
    // More than the ring holds: this can't be scaled down.
    for _ in 0..9_000 {
        stand.host.hub().publish(&Frame {
            session_id: tab.session_id.clone(),
            turn_id: "t".to_owned(),
            seq: None,
            event: Event::Text {
                text: "x".to_owned(),
            },
        });
    }
    let resync = |event| match event {
        AppEvent::Resync(resync) => Some(resync.recovery_version),
        _ => None,
    };
    let first = wait_for(&mut slow, "the resync", resync).await;
    let second = wait_for(&mut also_slow, "the other's resync", resync).await;
    assert!(second > first, "it grows with every resync");
    // From here on it hears everything again.
    stage.left.push(Step::text("back"));
    stand
        .app
        .submit(submit(&tab.tab_id, "hello"))
        .await
        .unwrap();
    wait_for(&mut slow, "the end of the turn", |event| match event {
        AppEvent::SessionFrames(batch) => batch
            .frames
            .iter()
            .any(|frame| matches!(frame.frame.event, Event::TurnDone { .. }))
            .then_some(()),
        _ => None,
    })
    .await;
    stand.quit().await;
}

#[tokio::test]
async fn rs_20_both_reads_answer_with_the_projection_that_the_event_carried() {
    let stage = Stage::new();
    stage.left.push(Step::text("never").held("never"));
    let stand = stage.start();
    let tab = stand.tab(&stage.path("left"), "left/one", "ask").await;
    let mut events = stand.app.events();
    stand.app.submit(submit(&tab.tab_id, "run")).await.unwrap();
    let titled = wait_for_projection(&mut events, "the running turn", |projection| {
        topic(projection, &tab)
            .is_some_and(|topic| topic.status == TopicStatus::Thinking && topic.title == "run")
    })
    .await;
    stage.left.wait_for_requests(1).await;
    let read = stand.projection().await;
    let synced = stand.app.sync_runtime_state(Nothing {}).await.unwrap();
    assert_eq!(synced, read);
    if read != titled {
        wait_for_projection(&mut events, "the same", |projection| *projection == read).await;
    }
    assert_eq!(titled.epoch.len(), 32);
    stand.quit().await;
}
