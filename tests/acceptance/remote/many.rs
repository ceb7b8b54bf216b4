//! Twenty hosts with many tabs each, and one read for each of them at a verification (RS-33); tabs times
//! `HOLDFAST_TEST_SCALE` (25: 50 for each host).

use std::time::Instant;

use holdfast_api::App;
use holdfast_api::app::Nothing;
use holdfast_api::desktop::{Freshness, OpenSession};
use holdfast_testkit::LyingHost;
use holdfast_testkit::wait::{SOON, scaled};
use serde_json::json;

use super::near::Near;
use crate::agent::scene::{Scene, eventually};

const HOSTS: usize = 20;
const STATES: &str = "GET /runtime-states";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_33_twenty_hosts_with_all_their_tabs_are_verified_by_twenty_reads() {
    // One program, which this machine knows as twenty hosts: to it they are what real ones are.
    let scene = Scene::new("full").await;
    let mut sessions = Vec::new();
    for _ in 0..scaled(2) {
        let created = scene.client.post_ok("/sessions", &json!({})).await;
        sessions.push(created["sessionId"].as_str().unwrap().to_owned());
    }
    let near = Near::new();
    let stand = near.start();
    let mut networks = Vec::new();
    for n in 0..HOSTS {
        let network = LyingHost::start(Some(scene.host.url()));
        let host_id = stand
            .add(&format!("box {n}"), &network, scene.host.token())
            .await;
        for session in &sessions {
            let open = OpenSession {
                session_id: session.clone(),
                host_id: host_id.clone(),
            };
            stand.app.open_session(open).await.unwrap();
        }
        networks.push(network);
    }
    let counts = || -> Vec<usize> { networks.iter().map(|way| way.count(STATES)).collect() };
    // Reads that the new tabs asked for may still come; then each verification is one for each host.
    let (projection, took) = eventually("one read for each host", SOON, async || {
        let before = counts();
        let since = Instant::now();
        let projection = stand.app.sync_runtime_state(Nothing {}).await.unwrap();
        let took = since.elapsed();
        let wanted: Vec<usize> = before.iter().map(|count| count + 1).collect();
        (counts() == wanted).then_some((projection, took))
    })
    .await;
    println!(
        "{HOSTS} hosts × {} tabs: verified in {took:?}",
        sessions.len()
    );
    let open: Vec<_> = projection.sessions.iter().filter(|row| row.open).collect();
    assert_eq!(open.len(), HOSTS * sessions.len());
    assert!(open.iter().all(|row| row.freshness == Freshness::Synced));
    stand.quit().await;
}
