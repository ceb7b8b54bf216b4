//! The event stream by itself: ring, resumption, barrier, bounds (RS-12, RS-28, RS-29).

use std::sync::Arc;

use holdfast_api::event::{Event, Frame};
use holdfast_api::session::session_path;
use holdfast_controller::hub::{Hub, Outgoing, Reader};
use holdfast_domain::runtime::snapshot::{Phase, RuntimeState, Sample, derive};
use holdfast_testkit::wait::SOON;

fn hub() -> Arc<Hub> {
    Arc::new(Hub::new("e".repeat(32)))
}

fn id(n: u8) -> String {
    format!("{n:02x}").repeat(16)
}

fn text(session: &str, text: &str) -> Frame {
    Frame {
        session_id: session.to_owned(),
        turn_id: String::new(),
        seq: None,
        event: Event::Text {
            text: text.to_owned(),
        },
    }
}

fn state(revision: u64) -> RuntimeState {
    RuntimeState {
        runtime_epoch: "f".repeat(32),
        revision,
        ..derive(&Sample::default())
    }
}

/// Everything that is there now.
async fn drain(reader: &mut Reader, hub: &Hub) -> Vec<Frame> {
    drain_with_ids(reader, hub)
        .await
        .into_iter()
        .map(|outgoing| serde_json::from_str(&outgoing.data).unwrap())
        .collect()
}

/// Reads up to a marker that is published for the purpose, which is left out.
async fn drain_with_ids(reader: &mut Reader, hub: &Hub) -> Vec<Outgoing> {
    let mark = text("", "mark");
    let marked = serde_json::to_string(&mark).unwrap();
    hub.publish(&mark);
    let mut all = Vec::new();
    loop {
        let batch = tokio::time::timeout(SOON, reader.next()).await.unwrap();
        let is_last = batch.iter().any(|outgoing| *outgoing.data == *marked);
        all.extend(
            batch
                .into_iter()
                .filter(|outgoing| *outgoing.data != *marked),
        );
        if is_last {
            return all;
        }
    }
}

fn texts(frames: &[Frame]) -> Vec<String> {
    frames
        .iter()
        .filter_map(|frame| match &frame.event {
            Event::Text { text } => Some(text.clone()),
            _ => None,
        })
        .collect()
}

#[tokio::test]
async fn rs_29_a_reader_resumes_behind_what_it_has() {
    let hub = hub();
    let mut reader = hub.reader(true, None, None);
    for n in 0..5 {
        hub.publish(&text(&id(1), &n.to_string()));
    }
    let outgoing = drain_with_ids(&mut reader, &hub).await;
    let third = outgoing[2].id.clone().unwrap();
    assert_eq!(third, format!("{}.3", hub.epoch()));
    let mut again = hub.reader(true, None, Some(&third));
    let frames = drain(&mut again, &hub).await;
    let told: Vec<String> = texts(&frames)
        .into_iter()
        .filter(|text| text != "mark")
        .collect();
    assert_eq!(told, ["3", "4"]);
    assert!(
        !frames
            .iter()
            .any(|frame| matches!(frame.event, Event::Gap {}))
    );
}

#[tokio::test]
async fn rs_29_past_the_ring_or_of_another_epoch_is_a_gap_and_then_the_states() {
    let hub = hub();
    hub.publish_state(&id(1), state(7));
    for n in 0..9000 {
        hub.publish(&text(&id(1), &n.to_string()));
    }
    let first = format!("{}.1", hub.epoch());
    let ahead = format!("{}.99999", hub.epoch());
    let other = format!("{}.9000", "0".repeat(32));
    for lost in [first.as_str(), &ahead, &other, "rubbish", ""] {
        let mut reader = hub.reader(true, None, Some(lost));
        let batch = reader.next().await;
        let frames: Vec<Frame> = batch
            .iter()
            .map(|outgoing| serde_json::from_str(&outgoing.data).unwrap())
            .collect();
        assert!(matches!(frames[0].event, Event::Gap {}), "{lost}");
        assert!(
            matches!(&frames[1].event, Event::RuntimeState { runtime_state, .. }
                if *runtime_state == state(7)),
            "{lost}"
        );
        assert_eq!(batch[1].id, None, "a state is not resumable");
    }
}

#[tokio::test]
async fn rs_29_the_ring_is_bounded_in_bytes() {
    let hub = hub();
    let mut reader = hub.reader(true, None, None);
    let large = "x".repeat(1024 * 1024);
    for _ in 0..20 {
        hub.publish(&text(&id(1), &large));
    }
    let batch = reader.next().await;
    let first: Frame = serde_json::from_str(&batch[0].data).unwrap();
    assert!(matches!(first.event, Event::Gap {}));
    // Even one frame that is larger than the whole ring is a gap, and no reader waits for ever.
    let mut reader = hub.reader(true, None, None);
    hub.publish(&text(&id(1), &"y".repeat(9 * 1024 * 1024)));
    let batch = tokio::time::timeout(SOON, reader.next()).await.unwrap();
    let first: Frame = serde_json::from_str(&batch[0].data).unwrap();
    assert!(matches!(first.event, Event::Gap {}));
}

#[tokio::test]
async fn rs_28_no_state_crosses_the_change_of_sessions() {
    let hub = hub();
    hub.publish_state(&id(1), state(1));
    hub.publish_state(&id(2), state(1));
    hub.make_current(&id(1));
    let mut reader = hub.reader(false, None, None);
    drain(&mut reader, &hub).await;
    // Behind the back of a reader that is slow.
    hub.publish(&text(&id(2), "background"));
    hub.publish(&text(&id(1), "foreground"));
    hub.publish_state(&id(2), state(2));
    hub.make_current(&id(2));
    hub.publish(&text(&id(2), "now current"));
    hub.publish(&text(&id(1), "now background"));
    hub.publish_state(&id(2), state(3));
    let frames = drain(&mut reader, &hub).await;
    let seen: Vec<String> = frames
        .iter()
        .map(|frame| match &frame.event {
            Event::Text { text } => text.clone(),
            Event::SessionChanged { session_path } => session_path.clone(),
            Event::RuntimeState {
                session_path,
                session_current,
                runtime_state,
            } => {
                format!(
                    "{session_path} {session_current} {}",
                    runtime_state.revision
                )
            }
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        seen,
        [
            "foreground".to_owned(),
            session_path(&id(2)),
            "now current".to_owned(),
            format!("{} true 3", session_path(&id(2))),
        ]
    );
}

#[tokio::test]
async fn rs_28_a_reader_of_one_session_or_of_all_gets_just_that() {
    let hub = hub();
    hub.make_current(&id(1));
    let mut one = hub.reader(false, Some(id(2)), None);
    let mut all = hub.reader(true, None, None);
    for n in 1..=3 {
        hub.publish(&text(&id(n), &n.to_string()));
        hub.publish_state(&id(n), state(1));
    }
    let frames = drain(&mut one, &hub).await;
    assert_eq!(texts(&frames), ["2"]);
    assert_eq!(frames.len(), 2);
    let frames = drain(&mut all, &hub).await;
    let mut told = texts(&frames);
    told.retain(|text| text != "mark");
    assert_eq!(told, ["1", "2", "3"]);
}

#[tokio::test]
async fn rs_12_of_many_states_a_late_reader_gets_the_latest_only() {
    let hub = hub();
    let mut reader = hub.reader(true, None, None);
    for revision in 1..=1000 {
        hub.publish_state(&id(1), state(revision));
    }
    let frames = drain(&mut reader, &hub).await;
    assert_eq!(frames.len(), 1);
    assert!(
        matches!(&frames[0].event, Event::RuntimeState { runtime_state, .. }
        if runtime_state.revision == 1000)
    );
}

#[tokio::test]
async fn rs_12_a_reader_ends_with_the_closed_state_of_a_session_that_went() {
    let hub = hub();
    hub.make_current(&id(1));
    let running = RuntimeState {
        runtime_epoch: "f".repeat(32),
        revision: 5,
        ..derive(&Sample {
            running: true,
            turn_id: "t".to_owned(),
            ..Sample::default()
        })
    };
    hub.publish_state(&id(1), running);
    let mut readers = [hub.reader(false, None, None), hub.reader(true, None, None)];
    hub.remove_state(&id(1), &"f".repeat(32));
    for reader in &mut readers {
        let frames = drain(reader, &hub).await;
        let Some(Event::RuntimeState { runtime_state, .. }) = frames.last().map(|f| &f.event)
        else {
            panic!("no state: {frames:#?}");
        };
        assert_eq!(
            (runtime_state.phase, runtime_state.revision),
            (Phase::Closed, 6)
        );
        assert!(!runtime_state.running && !runtime_state.cancellable);
    }
    assert_eq!(hub.state(&id(1)), None);
    assert!(hub.runtime_states().sessions.is_empty());
    // Who comes later hears nothing of it.
    let mut later = hub.reader(true, None, None);
    assert!(drain(&mut later, &hub).await.is_empty());
}

#[test]
fn rs_26_the_revision_changes_with_the_content() {
    let hub = hub();
    let empty = hub.runtime_states();
    assert_eq!(hub.runtime_states(), empty);
    assert_eq!(empty.revision, 1);
    hub.publish_state(&id(2), state(1));
    assert_eq!(hub.runtime_states().revision, 2);
    hub.publish_state(&id(1), state(1));
    let two = hub.runtime_states();
    assert_eq!(two.revision, 3);
    assert_eq!(hub.runtime_states(), two);
    let paths: Vec<&str> = two
        .sessions
        .iter()
        .map(|row| row.session_path.as_str())
        .collect();
    assert_eq!(paths, [session_path(&id(1)), session_path(&id(2))]);
    hub.make_current(&id(2));
    let current = hub.runtime_states();
    assert!(current.revision > two.revision);
    assert_eq!(
        current
            .sessions
            .iter()
            .map(|row| row.current)
            .collect::<Vec<_>>(),
        [false, true]
    );
}
