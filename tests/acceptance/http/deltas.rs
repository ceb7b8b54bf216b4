//! A great many pieces of text: what they publish, and whom a reader that does not read holds up.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;

use holdfast_testkit::Frame;
use holdfast_testkit::model_server::Step;
use holdfast_testkit::wait::{SOON, scaled};
use serde_json::Value;

use crate::agent::scene::Scene;

const PIECE: &str = "0123456789 0123456789 0123456789 0123456789 ";

fn is_end(frame: &Frame) -> bool {
    frame.kind() == "turn_done"
}

fn revision(state: &Value) -> u64 {
    state["revision"].as_u64().unwrap()
}

/// A turn whose reply has so many pieces; the state at its end.
async fn talk(scene: &Scene, pieces: usize) -> Value {
    scene.model.push(Step {
        text: vec![PIECE.to_owned(); pieces],
        ..Step::default()
    });
    let turn = scene.submit("talk").await;
    // Nobody looks at frames meanwhile: that would take longer than the turn.
    let status = scene.ended_within(&turn, SOON * 9).await;
    assert_eq!(status["runtimeState"]["turnStatus"], "completed");
    status["runtimeState"].clone()
}

#[tokio::test]
async fn rs_11_a_hundred_thousand_deltas_publish_no_more_than_one() {
    let count = scaled(100_000).max(20_000);
    let scene = Scene::new("full").await;
    let events = scene.client.events(&scene.path("/events"), None).await;
    let first = events
        .wait_for_frame("the state", SOON, |frame| frame.kind() == "runtime_state")
        .await;
    let before = revision(&first.data["runtimeState"]);
    let one = talk(&scene, 1).await;
    let many = talk(&scene, count).await;
    let (of_one, of_many) = (revision(&one) - before, revision(&many) - revision(&one));
    assert_eq!(of_many, of_one, "{count} deltas moved the revision");

    let turn = many["turnId"].clone();
    let ended = |frame: &Frame| is_end(frame) && frame.data["turnId"] == turn;
    events.wait_for_frame("the end", SOON * 3, ended).await;
    let frames = events.frames();
    let states: Vec<&Value> = frames
        .iter()
        .filter(|frame| frame.kind() == "runtime_state" && frame.data["turnId"] == turn)
        .map(|frame| &frame.data["runtimeState"])
        .collect();
    assert!(
        (1..=of_one as usize).contains(&states.len()),
        "{} states for {count} deltas, {of_one} revisions",
        states.len()
    );
    let told: BTreeSet<u64> = states.iter().map(|state| revision(state)).collect();
    assert_eq!(told.len(), states.len(), "one frame for a revision");
    // The text itself is all there.
    let items = scene.items().await;
    let text = items.last().unwrap()["text"].as_str().unwrap().len();
    assert_eq!(text, PIECE.len() * count);
}

/// A stream that is asked for and then left alone, with little room for what comes.
fn unread(scene: &Scene) -> TcpStream {
    let address = scene.host.url().trim_start_matches("http://").to_owned();
    let mut silent = TcpStream::connect(&address).unwrap();
    #[cfg(unix)]
    rustix::net::sockopt::set_socket_recv_buffer_size(&silent, 64 * 1024).unwrap();
    let request = format!(
        "GET /events?all=1 HTTP/1.0\r\nhost: {address}\r\nauthorization: Bearer {}\r\naccept: \
         text/event-stream\r\n\r\n",
        scene.host.token()
    );
    silent.write_all(request.as_bytes()).unwrap();
    silent
}

#[tokio::test]
async fn rs_12_a_client_that_never_reads_delays_nobody_and_ends_with_the_final_state() {
    let scene = Scene::new("full").await;
    let silent = unread(&scene);
    let events = scene.client.events(&scene.path("/events"), None).await;
    // More than the system buffers for one connection: the host can't have written it all.
    let done = talk(&scene, 60_000).await;
    let turn = done["turnId"].clone();
    let ended = |frame: &Frame| is_end(frame) && frame.data["turnId"] == turn;
    events.wait_for_frame("the end", SOON * 3, ended).await;
    let again = talk(&scene, 1).await;

    // Now it reads, and only now: old frames, then that it missed some, then how things stand.
    silent.set_read_timeout(Some(SOON)).unwrap();
    let (mut gap, mut last, mut newest) = (false, Value::Null, 0);
    for line in BufReader::new(silent).lines() {
        let line = line.unwrap();
        let Some(data) = line.strip_prefix("data: ") else {
            continue;
        };
        let frame: Value = serde_json::from_str(data).unwrap();
        gap |= frame["kind"] == "gap";
        if frame["kind"] == "runtime_state" {
            last = frame["runtimeState"].clone();
            assert!(revision(&last) > newest, "an older state after a newer one");
            newest = revision(&last);
            if last == again {
                break;
            }
        }
    }
    assert!(gap, "it was held up, and nobody with it");
    assert_eq!(last, again);
}

#[tokio::test]
async fn rs_29_past_the_ring_is_a_gap_and_the_present_state() {
    let scene = Scene::new("full").await;
    let events = scene.client.events(&scene.path("/events"), None).await;
    // More frames than the ring keeps.
    let state = talk(&scene, 9_000).await;
    events.wait_for_frame("the end", SOON, is_end).await;
    let first = events
        .frames()
        .iter()
        .find(|frame| !frame.id.is_empty())
        .map(|frame| frame.id.clone())
        .unwrap();
    let late = scene
        .client
        .events(&scene.path("/events"), Some(&first))
        .await;
    let frames = late
        .wait_for("two frames", SOON, |frames| {
            (frames.len() >= 2).then(|| frames.to_vec())
        })
        .await;
    assert_eq!(frames[0].kind(), "gap");
    assert_eq!(frames[1].kind(), "runtime_state");
    assert_eq!(frames[1].data["runtimeState"], state);
}
