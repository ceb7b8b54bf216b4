//! A host that is killed, started again and found again while a turn runs, over and over, and a
//! connection that goes silent (RS-36); loops times `HOLDFAST_TEST_SCALE` (10: 50 returns).

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use holdfast_api::App;
use holdfast_api::app::Nothing;
use holdfast_api::desktop::{AppEvent, Freshness, TabView};
use holdfast_api::hosts::{ConnectionState, HostRef};
use holdfast_api::inbox::{Intent, TabEnqueue, TabItem};
use holdfast_domain::runtime::snapshot::Phase;
use holdfast_testkit::Step;
use holdfast_testkit::wait::scaled;

use super::near::{Near, Stand, far, tab_of};
use crate::agent::scene::eventually;
use holdfast_testkit::wait::SOON;

/// What the tab's row showed, in order.
type Shown = Arc<Mutex<Vec<(Freshness, Phase, bool)>>>;

/// Keeps all that is published of a tab until it is dropped.
fn watched(stand: &Stand, tab: &TabView) -> (Shown, tokio::task::JoinHandle<()>) {
    let shown = Shown::default();
    let mut events = stand.app.events();
    let (kept, tab_id) = (Arc::clone(&shown), tab.tab_id.clone());
    let task = tokio::spawn(async move {
        loop {
            if let AppEvent::RuntimeStateChanged(projection) = events.next().await {
                let mut rows = projection.sessions.iter();
                let row = rows.find(|row| row.tab_id == tab_id);
                let state = row.and_then(|row| Some((row.freshness, row.state.snapshot()?)));
                if let Some((freshness, state)) = state {
                    let next = (freshness, state.phase, state.running);
                    kept.lock().unwrap().push(next);
                }
            }
        }
    });
    (shown, task)
}

async fn user_texts(stand: &Stand, tab: &TabView) -> Vec<String> {
    let snapshot = stand.app.transcript_snapshot(tab_of(tab)).await.unwrap();
    let mut texts = Vec::new();
    let mut before = snapshot.before;
    let said = |items: Vec<holdfast_api::transcript::TranscriptItem>| {
        let users = items.into_iter().filter(|item| item.kind == "user");
        users.filter_map(|item| item.text).collect::<Vec<_>>()
    };
    texts.extend(said(snapshot.items));
    while before.is_some() {
        let page = holdfast_api::app::TabPage {
            tab_id: tab.tab_id.clone(),
            before,
            limit: 500,
        };
        let page = stand.app.transcript_page(page).await.unwrap();
        before = page.before;
        texts.extend(said(page.items));
    }
    texts.sort();
    texts
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_36_a_host_that_returns_over_and_over_loses_and_doubles_nothing() {
    let (mut scene, network) = far("full").await;
    let near = Near::new();
    let stand = near.start();
    let host_id = stand.add("buildbox", &network, scene.host.token()).await;
    let tab = stand.open(&host_id, &scene.session).await;
    let mut sent = Vec::new();
    for round in 0..scaled(5) {
        let hold = format!("end {round}");
        scene.model.push(Step::text("half").held(&hold));
        let message = format!("message {round:03}");
        stand.submit(&tab, &message).await;
        sent.push(message);
        stand
            .until(&tab, "the turn", |state, fresh| {
                state.phase == Phase::Executing && fresh == Freshness::Synced
            })
            .await;
        let later = format!("later {round:03}");
        let enqueue = TabEnqueue {
            tab_id: tab.tab_id.clone(),
            input: later.clone(),
            intent: Intent::Followup,
            idempotency_key: format!("key of {later}"),
        };
        stand.app.enqueue(enqueue).await.unwrap();

        let (shown, watching) = watched(&stand, &tab);
        scene.host.kill9();
        network.cut();
        stand.stands(&host_id, ConnectionState::Waiting).await;
        stand
            .until(&tab, "the doubt", |state, fresh| {
                fresh == Freshness::Unknown && state.phase == Phase::Executing
            })
            .await;
        let seen = shown.lock().unwrap().clone();
        assert!(
            seen.iter().all(|(_, phase, _)| *phase == Phase::Executing),
            "nobody said that it is idle: {seen:?}"
        );
        scene.restart_after_death().await;
        network.lead_to(Some(scene.host.url()));
        let retry = HostRef {
            host_id: host_id.clone(),
        };
        stand.app.retry_host(retry).await.unwrap();
        stand
            .until(&tab, "the host's own word", |state, fresh| {
                fresh == Freshness::Synced && state.phase == Phase::Idle && !state.running
            })
            .await;
        watching.abort();
        scene.model.release(&hold);

        // What waited is there once, and does not run by itself.
        let inbox = stand.app.inbox(tab_of(&tab)).await.unwrap();
        assert!(inbox.paused && inbox.recovered, "{inbox:?}");
        let waits: Vec<&str> = inbox.items.iter().map(|item| item.input.as_str()).collect();
        assert_eq!(waits, [later.as_str()]);
        if round % 2 == 0 {
            scene.model.push(Step::text("done"));
            stand.app.resume_inbox(tab_of(&tab)).await.unwrap();
            sent.push(later);
            eventually("what waited to run", SOON, async || {
                let inbox = stand.app.inbox(tab_of(&tab)).await.ok()?;
                let row = stand.row(&tab).await?;
                let state = row.state.snapshot()?;
                let ended = state.phase == Phase::Idle && !state.running;
                (inbox.items.is_empty() && ended).then_some(())
            })
            .await;
        } else {
            let item = TabItem {
                tab_id: tab.tab_id.clone(),
                item_id: inbox.items[0].item_id.clone(),
            };
            stand.app.delete_item(item).await.unwrap();
        }
    }
    sent.sort();
    assert_eq!(user_texts(&stand, &tab).await, sent);
    stand.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_29_a_silent_connection_is_doubted_in_time_and_recovers_by_itself() {
    let (scene, network) = far("full").await;
    let mut near = Near::new();
    // The product's is 45 s; the host's sign of life comes every 15 s.
    near.silence = Duration::from_secs(2);
    let stand = near.start();
    let host_id = stand.add("buildbox", &network, scene.host.token()).await;
    let tab = stand.open(&host_id, &scene.session).await;
    // No byte of the stream, no answer to a read, and no end of the connection either.
    network.run_dry(true);
    let since = Instant::now();
    stand
        .until(&tab, "the doubt", |_, fresh| fresh == Freshness::Unknown)
        .await;
    println!("doubted after {:?}", since.elapsed());
    network.run_dry(false);
    stand
        .until(&tab, "the confirmation", |_, fresh| {
            fresh == Freshness::Synced
        })
        .await;
    let layout = stand.app.get_layout(Nothing {}).await.unwrap();
    assert_eq!(layout.tabs.len(), 1);
    stand.quit().await;
}
