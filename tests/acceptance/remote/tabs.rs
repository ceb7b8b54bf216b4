//! Tabs of other machines in the app: their commands, states and connections.

use holdfast_api::App;
use holdfast_api::app::{Nothing, TabApprove, TabCancel};
use holdfast_api::desktop::{AppEvent, Freshness, NewSession, SessionChange, TopicStatus};
use holdfast_api::hosts::{ConnectionState, HostChange, HostRef, HostWay};
use holdfast_api::inbox::{Intent, TabEnqueue};
use holdfast_domain::runtime::snapshot::Phase;
use holdfast_testkit::wait::SOON;
use holdfast_testkit::{Lie, Step};
use serde_json::json;

use super::near::{Near, far, tab_of, wait_for};
use crate::agent::scene::{eventually, shell};

const STATES: &str = "GET /runtime-states";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c16_a_remote_tab_is_used_like_a_local_one() {
    let (scene, network) = far("ask").await;
    let near = Near::new();
    let stand = near.start();
    let host_id = stand.add("buildbox", &network, scene.host.token()).await;
    let tab = stand.open(&host_id, &scene.session).await;
    assert!(tab.remote && tab.host_id == host_id, "{tab:?}");
    let mut events = stand.app.events();

    // A message, a question answered from here, and its end, with the frames of it all.
    scene.model.push(shell("c1", "echo hello"));
    scene.model.push(Step::text("done"));
    stand.submit(&tab, "go").await;
    stand
        .until(&tab, "the question", |state, fresh| {
            state.pending_prompt && fresh == Freshness::Synced
        })
        .await;
    let prompts = stand.app.pending_prompts(tab_of(&tab)).await.unwrap();
    let approve = TabApprove {
        tab_id: tab.tab_id.clone(),
        id: prompts[0].approval.id.clone(),
        generation: prompts[0].approval.generation,
        allow: true,
        scope: "once".to_owned(),
        reason: String::new(),
    };
    stand.app.approve(approve).await.unwrap();
    let mut kinds = Vec::new();
    wait_for(&mut events, "the turn's end", |event| {
        if let AppEvent::SessionFrames(batch) = event {
            for frame in batch.frames {
                assert_eq!(frame.frame.session_id, scene.session);
                let value = serde_json::to_value(&frame.frame).unwrap();
                kinds.push(value["kind"].as_str().unwrap().to_owned());
            }
        }
        kinds.iter().any(|kind| kind == "turn_done").then_some(())
    })
    .await;
    let snapshot = stand.app.transcript_snapshot(tab_of(&tab)).await.unwrap();
    let tool = snapshot.items.iter().find_map(|item| item.tool.as_ref());
    assert!(tool.unwrap().output.contains("hello"), "{snapshot:?}");

    // A queue behind a turn, and Stop.
    scene.model.push(shell("c2", "sleep 600"));
    let turn = stand.submit(&tab, "wait").await;
    let prompts = eventually("the second question", SOON, async || {
        let prompts = stand.app.pending_prompts(tab_of(&tab)).await.ok()?;
        (!prompts.is_empty()).then_some(prompts)
    })
    .await;
    assert_eq!(prompts[0].approval.tool, "shell");
    let enqueue = TabEnqueue {
        tab_id: tab.tab_id.clone(),
        input: "later".to_owned(),
        intent: Intent::Followup,
        idempotency_key: "key of later".to_owned(),
    };
    stand.app.enqueue(enqueue).await.unwrap();
    let inbox = stand.app.inbox(tab_of(&tab)).await.unwrap();
    assert_eq!(inbox.items.len(), 1, "{inbox:?}");
    let cancel = TabCancel {
        tab_id: tab.tab_id.clone(),
        turn_id: turn,
    };
    stand.app.cancel(cancel).await.unwrap();
    stand
        .until(&tab, "the stop", |state, _| {
            state.phase == Phase::Idle && !state.running
        })
        .await;

    // A new session over there, its title, and its place among the projects.
    let created = stand
        .app
        .new_session(NewSession {
            workspace_root: scene.workspace.to_string_lossy().into_owned(),
            host_id: host_id.clone(),
            ..NewSession::default()
        })
        .await
        .unwrap();
    assert_eq!(created.host_id, host_id);
    let change = SessionChange {
        session_id: created.session_id.clone(),
        host_id: host_id.clone(),
        title: Some("deploy".to_owned()),
        ..SessionChange::default()
    };
    stand.app.change_session(change).await.unwrap();
    eventually("its row", SOON, async || {
        let list = stand.app.list_projects(Nothing {}).await.unwrap();
        let mut far = list.projects.iter().filter(|p| p.host_id == host_id);
        let rows = &far.next()?.sessions;
        rows.iter().any(|row| row.title == "deploy").then_some(())
    })
    .await;
    stand.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_36_what_was_last_known_stays_and_commands_are_refused_while_a_host_is_away() {
    let (mut scene, network) = far("full").await;
    let near = Near::new();
    let stand = near.start();
    let host_id = stand.add("buildbox", &network, scene.host.token()).await;
    let tab = stand.open(&host_id, &scene.session).await;
    scene.model.push(Step::text("half").held("end"));
    stand.submit(&tab, "go").await;
    let known = stand
        .until(&tab, "the turn", |state, fresh| {
            state.phase == Phase::Executing && fresh == Freshness::Synced
        })
        .await;
    let mut events = stand.app.events();
    network.lead_to(None);
    network.cut();
    let told = wait_for(&mut events, "the news of it", |event| match event {
        AppEvent::RemoteTabUpdated(tab) => Some(tab),
        _ => None,
    })
    .await;
    assert_eq!(
        (told.host_id, told.tab_ids),
        (host_id.clone(), vec![tab.tab_id.clone()])
    );
    let view = stand.stands(&host_id, ConnectionState::Waiting).await;
    assert!(!view.message.is_empty() && view.retry_in_ms.is_some());
    let row = stand
        .until(&tab, "the doubt", |_, fresh| fresh == Freshness::Unknown)
        .await;
    assert_eq!(row.state, known.state, "the facts stay");
    let topics = stand.projection().await.topics;
    let topic = topics.iter().find(|topic| topic.scope == host_id).unwrap();
    assert_eq!(topic.freshness, Freshness::Unknown);
    assert_eq!(topic.status, TopicStatus::Thinking, "as it was");
    let refused = stand
        .app
        .submit(holdfast_api::app::TabSubmit {
            tab_id: tab.tab_id.clone(),
            input: "more".to_owned(),
            submission_id: "k".to_owned(),
        })
        .await
        .unwrap_err();
    assert_eq!(refused.code, "host_disconnected");

    // The host dies and comes back: its own word is taken, and its queue is as it was.
    scene.restart_after_death().await;
    network.lead_to(Some(scene.host.url()));
    stand
        .app
        .retry_host(HostRef {
            host_id: host_id.clone(),
        })
        .await
        .unwrap();
    stand
        .until(&tab, "the host's word", |state, fresh| {
            fresh == Freshness::Synced && state.phase == Phase::Idle && !state.running
        })
        .await;
    let snapshot = stand.app.transcript_snapshot(tab_of(&tab)).await.unwrap();
    let said = snapshot.items.iter().filter(|item| item.kind == "user");
    assert_eq!(said.count(), 1, "{snapshot:?}");
    stand.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_33_one_verification_sends_one_read_for_each_host() {
    let (scene, network) = far("full").await;
    let (other, second) = far("full").await;
    let near = Near::new();
    let stand = near.start();
    let one = stand.add("one", &network, scene.host.token()).await;
    let two = stand.add("two", &second, other.host.token()).await;
    for _ in 0..5 {
        for (client, host_id) in [(&scene.client, &one), (&other.client, &two)] {
            let created = client.post_ok("/sessions", &json!({})).await;
            stand
                .open(host_id, created["sessionId"].as_str().unwrap())
                .await;
        }
    }
    // Reads that the new tabs asked for may still come; then each verification is one for each host.
    let projection = eventually("one read for each host", SOON, async || {
        let before = (network.count(STATES), second.count(STATES));
        let projection = stand.app.sync_runtime_state(Nothing {}).await.unwrap();
        let after = (network.count(STATES), second.count(STATES));
        (after == (before.0 + 1, before.1 + 1)).then_some(projection)
    })
    .await;
    let synced = projection.sessions.iter().filter(|row| row.open);
    assert_eq!(synced.clone().count(), 10);
    assert!(
        synced
            .clone()
            .all(|row| row.freshness == Freshness::Synced && row.remote)
    );

    // One host that does not answer leaves the other's facts confirmed.
    network.lie(STATES, Lie::DropRequest);
    let projection = stand.app.sync_runtime_state(Nothing {}).await.unwrap();
    for row in projection.sessions.iter().filter(|row| row.open) {
        let wanted = if row.scope == one {
            Freshness::Unknown
        } else {
            Freshness::Synced
        };
        assert_eq!(row.freshness, wanted, "{row:?}");
    }
    stand.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_30_tabs_and_hosts_are_there_again_after_a_restart_of_the_app() {
    let (scene, network) = far("full").await;
    let near = Near::new();
    let stand = near.start();
    let host_id = stand.add("buildbox", &network, scene.host.token()).await;
    let tab = stand.open(&host_id, &scene.session).await;
    stand.quit().await;
    let stored = std::fs::read_to_string(near.data().join("desktop.json")).unwrap();
    assert!(!stored.contains(scene.host.token()), "the token is a key");

    // While the host is away the tab stays, with nothing made up.
    network.lead_to(None);
    let stand = near.start();
    stand.stands(&host_id, ConnectionState::Waiting).await;
    let layout = stand.app.get_layout(Nothing {}).await.unwrap();
    assert_eq!(layout.tabs.len(), 1);
    assert_eq!(
        (&layout.tabs[0].tab_id, layout.tabs[0].problem.as_str()),
        (&tab.tab_id, "")
    );
    assert!(stand.row(&layout.tabs[0]).await.is_none());
    network.lead_to(Some(scene.host.url()));
    let retry = HostRef {
        host_id: host_id.clone(),
    };
    stand.app.retry_host(retry).await.unwrap();
    stand
        .until(&tab, "the confirmation", |_, fresh| {
            fresh == Freshness::Synced
        })
        .await;

    // Taken off the list: its tabs and its token go, the session stays where it is.
    let gone = HostRef { host_id };
    let list = stand.app.remove_host(gone).await.unwrap();
    assert!(list.hosts.is_empty());
    let layout = stand.app.get_layout(Nothing {}).await.unwrap();
    assert!(layout.tabs.is_empty());
    let keys = std::fs::read_to_string(near.data().join("keys.json")).unwrap();
    assert!(!keys.contains(scene.host.token()));
    assert_eq!(scene.get("/status").await["sessionId"], scene.session);
    stand.quit().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_36_a_trial_of_a_host_says_what_is_wrong() {
    let (scene, network) = far("full").await;
    let near = Near::new();
    let stand = near.start();
    let change = |url: &str, token: &str| HostChange {
        host_id: String::new(),
        name: "box".to_owned(),
        way: HostWay::Direct {
            url: url.to_owned(),
        },
        token: token.to_owned(),
    };
    let url = network.url();
    let good = change(&url, scene.host.token());
    assert!(stand.app.test_host(good.clone()).await.unwrap().ok);
    for (tried, code) in [
        (change(&url, "wrong"), "host_unauthorized"),
        (change(&url, ""), "host_token_missing"),
        (change("http://127.0.0.1:1", "t"), "host_unreachable"),
    ] {
        let check = stand.app.test_host(tried).await.unwrap();
        assert_eq!((check.ok, check.code.as_str()), (false, code));
        assert!(!check.message.is_empty());
    }
    for (tried, code) in [
        (change("http://box.example", "t"), "host_address_invalid"),
        (
            HostChange {
                name: " ".to_owned(),
                ..good.clone()
            },
            "host_name_invalid",
        ),
        (
            HostChange {
                host_id: "nobody".to_owned(),
                ..good.clone()
            },
            "host_unknown",
        ),
        (
            HostChange {
                way: HostWay::Ssh {
                    destination: "-oProxyCommand=x".to_owned(),
                    program: String::new(),
                },
                ..good.clone()
            },
            "ssh_destination_invalid",
        ),
    ] {
        let error = stand.app.save_host(tried).await.unwrap_err();
        assert_eq!(error.code, code);
    }
    assert!(
        stand
            .app
            .list_hosts(Nothing {})
            .await
            .unwrap()
            .hosts
            .is_empty()
    );
    // A token that the host does not know is not tried again by itself.
    let wrong = stand.app.save_host(change(&url, "wrong")).await.unwrap();
    let host_id = wrong.hosts[0].host_id.clone();
    let view = stand.stands(&host_id, ConnectionState::Refused).await;
    assert_eq!(view.code, "host_unauthorized");
    let mended = HostChange {
        host_id: host_id.clone(),
        ..good
    };
    stand.app.save_host(mended).await.unwrap();
    stand.stands(&host_id, ConnectionState::Connected).await;
    stand.quit().await;
}
