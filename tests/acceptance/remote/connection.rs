//! What is known of a session while its host is there, lies, is silent, or gone.

use std::sync::atomic::Ordering;
use std::time::Duration;

use holdfast_api::SessionHost;
use holdfast_api::session::Submit;
use holdfast_domain::runtime::snapshot::Phase;
use holdfast_remote::Condition;
use holdfast_testkit::wait::{SOON, until};
use holdfast_testkit::{Lie, LyingHost, Step};
use serde_json::json;

use super::stage::{Far, Kept, connect};

const STATES: &str = "GET /runtime-states";
const EVENTS: &str = "GET /events";

fn message(input: &str) -> Submit {
    Submit {
        input: input.to_owned(),
        submission_id: Some(format!("key of {input}")),
    }
}

#[tokio::test]
async fn rs_30_a_turn_is_followed_by_the_stream_and_confirmed_by_reads() {
    let far = Far::new("full").await;
    let reads = far.network.count(STATES);
    far.scene.model.push(Step::text("done").held("end"));
    far.host
        .submit(&far.selector(), message("go"))
        .await
        .unwrap();
    far.until("the turn", |state, synced| {
        synced && state.is_some_and(|state| state.phase == Phase::Executing)
    })
    .await;
    far.scene.model.release("end");
    let idle = far
        .until("its end", |state, synced| {
            synced && state.is_some_and(|state| state.phase == Phase::Idle && !state.running)
        })
        .await;
    assert_eq!(far.network.count(STATES), reads, "the stream was enough");
    assert!(far.host.connection().verify().await);
    assert_eq!(far.facts(), (idle, true));
    let kinds: Vec<String> = far.kept.frames.lock().unwrap().iter().map(kind).collect();
    assert!(kinds.contains(&"turn_done".to_owned()), "{kinds:?}");
    assert!(!kinds.contains(&"runtime_state".to_owned()));
}

fn kind(frame: &holdfast_api::event::Frame) -> String {
    let value = serde_json::to_value(frame).unwrap();
    value["kind"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn rs_33_one_read_for_any_number_of_tabs_and_callers() {
    let far = Far::new("full").await;
    for _ in 0..50 {
        let created = far.scene.client.post_ok("/sessions", &json!({})).await;
        let path = created["sessionPath"].as_str().unwrap().to_owned();
        far.host.connection().bind(&path);
    }
    until("all to be confirmed", SOON, || {
        let sessions = far.host.connection().sessions();
        (sessions.len() == 51 && sessions.iter().all(|(_, known)| known.synced)).then_some(())
    })
    .await;
    far.network.lie(STATES, Lie::Stall);
    let before = far.network.count(STATES);
    let calls: Vec<_> = (0..20)
        .map(|_| {
            let connection = far.host.connection().clone();
            tokio::spawn(async move { connection.verify().await })
        })
        .collect();
    until("the read", SOON, || {
        (far.network.count(STATES) > before).then_some(())
    })
    .await;
    far.network.tell_the_truth(STATES);
    for call in calls {
        assert!(
            !call.await.unwrap(),
            "the read that all of them share failed"
        );
    }
    assert_eq!(far.network.count(STATES), before + 1);
    assert!(far.host.connection().verify().await);
    assert_eq!(far.network.count(STATES), before + 2);
}

#[tokio::test]
async fn rs_35_a_list_that_cannot_be_read_is_unconfirmed_and_read_again_at_once() {
    let far = Far::new("full").await;
    let facts = far.facts().0;
    for garbage in [
        json!({}),
        json!({ "sessions": [{ "state": 1 }] }),
        json!("text"),
    ] {
        far.network.lie(STATES, Lie::json(200, &garbage));
        let before = far.network.count(STATES);
        assert!(!far.host.connection().verify().await);
        until("another read", SOON, || {
            (far.network.count(STATES) > before + 1).then_some(())
        })
        .await;
        assert_eq!(far.facts(), (facts.clone(), false), "nothing is pruned");
        far.network.tell_the_truth(STATES);
        far.synced().await;
    }
    // One row of it.
    let mut states = far.scene.client.get_ok("/runtime-states").await;
    states["sessions"][0]["state"]["phase"] = json!("asleep");
    far.network.lie(STATES, Lie::json(200, &states));
    assert!(!far.host.connection().verify().await);
    assert_eq!(far.facts(), (facts.clone(), false));
    // The session is missing from a good list: unknown, and not idle.
    let empty = json!({ "schemaVersion": 1, "epoch": "e", "revision": 1, "sessions": [] });
    far.network.lie(STATES, Lie::json(200, &empty));
    assert!(!far.host.connection().verify().await);
    assert_eq!(far.facts(), (facts, false));
    far.network.tell_the_truth(STATES);
    assert!(far.host.connection().verify().await);
}

#[tokio::test]
async fn rs_31_a_host_that_contradicts_itself_is_unconfirmed_and_not_asked_for_ever() {
    let far = Far::new("full").await;
    let facts = far.facts().0;
    let mut states = far.scene.client.get_ok("/runtime-states").await;
    states["sessions"][0]["state"]["backgroundJobs"] = json!(7);
    far.network.lie(STATES, Lie::json(200, &states));
    assert!(!far.host.connection().verify().await);
    until("the one resync", SOON, || {
        (far.host.connection().view().counters.1 >= 2).then_some(())
    })
    .await;
    assert_eq!(far.facts(), (facts.clone(), false));
    let reads = far.network.count(STATES);
    assert!(!far.host.connection().verify().await);
    assert_eq!(
        far.network.count(STATES),
        reads + 1,
        "the same contradiction asks for nothing"
    );
    // An older revision says nothing either.
    states["sessions"][0]["state"]["backgroundJobs"] = json!(0);
    let revision = facts.as_ref().unwrap().revision;
    assert!(revision >= 1);
    far.network.tell_the_truth(STATES);
    assert!(far.host.connection().verify().await);
    assert_eq!(far.facts(), (facts, true));
}

#[tokio::test]
async fn rs_36_c27_a_dropped_connection_keeps_the_facts_and_a_restarted_host_is_adopted_by_a_read()
{
    let mut far = Far::new("full").await;
    far.scene.model.push(Step::text("never").held("end"));
    far.host
        .submit(&far.selector(), message("go"))
        .await
        .unwrap();
    let running = far
        .until("the turn", |state, synced| {
            synced && state.is_some_and(|state| state.phase == Phase::Executing)
        })
        .await;
    far.network.lead_to(None);
    far.network.cut();
    far.until("the doubt", |_, synced| !synced).await;
    assert_eq!(far.facts(), (running.clone(), false), "the last facts stay");
    far.stands("the pause", |condition| {
        matches!(condition, Condition::Waiting { .. })
    })
    .await;
    let refused = far.host.submit(&far.selector(), message("more")).await;
    assert_eq!(refused.unwrap_err().code, "host_disconnected");
    far.scene.host.kill9();
    far.scene.restart_after_death().await;
    far.network.lead_to(Some(far.scene.host.url()));
    far.host.connection().retry_now();
    let adopted = far.synced().await;
    assert_ne!(adopted.runtime_epoch, running.unwrap().runtime_epoch);
    assert_eq!(adopted.phase, Phase::Idle);
    assert!(
        far.kept.gaps.load(Ordering::SeqCst) >= 2,
        "transcripts are read anew"
    );
}

#[tokio::test]
async fn c13_a_stream_that_runs_dry_is_unconfirmed_and_recovers_by_itself() {
    let far = Far::with_silence("full", Duration::from_secs(1)).await;
    far.scene.model.push(Step::text("done").held("end"));
    far.host
        .submit(&far.selector(), message("go"))
        .await
        .unwrap();
    let running = far
        .until("the turn", |state, _| {
            state.is_some_and(|state| state.phase == Phase::Executing)
        })
        .await;
    far.network.run_dry(true);
    far.stands("the connection to count as gone", |condition| {
        !matches!(condition, Condition::Connected)
    })
    .await;
    assert_eq!(far.facts(), (running, false));
    let refused = far.host.submit(&far.selector(), message("more")).await;
    assert_eq!(refused.unwrap_err().code, "host_disconnected");
    far.scene.model.release("end");
    far.network.run_dry(false);
    far.host.connection().retry_now();
    far.until("its end", |state, synced| {
        synced && state.is_some_and(|state| state.phase == Phase::Idle)
    })
    .await;
}

#[tokio::test]
async fn rs_36_a_refused_token_is_not_tried_again_until_a_person_says_so() {
    let far = Far::new("full").await;
    let kept = std::sync::Arc::<Kept>::default();
    let network = LyingHost::start(Some(far.scene.host.url()));
    let host = connect(&network, "not the token", Duration::from_secs(45), &kept);
    until("the refusal", SOON, || {
        matches!(
            host.connection().view().condition,
            Condition::Refused { .. }
        )
        .then_some(())
    })
    .await;
    assert_eq!(network.count(EVENTS), 1);
    host.connection().retry_now();
    until("the second try", SOON, || {
        (network.count(EVENTS) == 2).then_some(())
    })
    .await;
}

#[tokio::test]
async fn tr_42_the_token_goes_to_its_own_origin_alone() {
    let far = Far::new("full").await;
    let other = LyingHost::start(Some(far.scene.host.url()));
    let redirect = Lie::Answer {
        status: 307,
        content_type: format!("text/plain\r\nlocation: {}/status", other.url()),
        body: String::new(),
    };
    far.network.lie("GET /status", redirect);
    let refused = far.host.status(&far.selector()).await;
    assert_eq!(refused.unwrap_err().code, "host_refused");
    assert_eq!(other.count("GET /status"), 0);
}
