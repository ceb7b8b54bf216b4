//! TR-02: one suite, a local host and a remote one.

use std::sync::Arc;

use holdfast_api::session::{Approve, CreateSession, PatchSession, SessionsQuery, Submit};
use holdfast_api::transcript::PageQuery;
use holdfast_api::{Selector, SessionHost};
use holdfast_controller::config::Config;
use holdfast_controller::models::{ConfiguredModels, RequestLimits};
use holdfast_controller::source::SystemSource;
use holdfast_controller::{Host, HostOptions};
use holdfast_testkit::wait::SOON;
use holdfast_testkit::{ModelServer, Step};
use serde_json::json;

use super::stage::Far;
use crate::agent::scene::{Ground, Plan, eventually};

/// A whole small life of a session; answers what a person would have seen of it.
async fn life(
    host: &dyn SessionHost,
    model: &ModelServer,
    workspace: &std::path::Path,
) -> Vec<String> {
    let mut seen = Vec::new();
    let created = host
        .create_session(CreateSession {
            workspace: Some(workspace.to_string_lossy().into_owned()),
            title: Some("A life".to_owned()),
            model: None,
            mode: Some("ask".to_owned()),
        })
        .await
        .unwrap();
    let selector = Selector::of(&created.session_id);
    let write = json!({ "path": "made.txt", "content": "made\n" }).to_string();
    model.push(Step::call("c1", "write_file", &write));
    model.push(Step::text("done"));
    let submit = |input: &str, key: &str| Submit {
        input: input.to_owned(),
        submission_id: Some(key.to_owned()),
    };
    let turn = host
        .submit(&selector, submit("make it", "k1"))
        .await
        .unwrap();
    let again = host
        .submit(&selector, submit("make it", "k1"))
        .await
        .unwrap();
    assert_eq!(
        (again.turn_id, again.duplicate),
        (turn.turn_id.clone(), true)
    );
    let other = host.submit(&selector, submit("make another", "k1")).await;
    seen.push(other.unwrap_err().code);
    let question = eventually("a question", SOON, async || {
        host.pending_prompts(&selector).await.unwrap().pop()
    })
    .await;
    seen.push(question.approval.tool.clone());
    seen.push(question.approval.diff.clone().unwrap());
    let answer = Approve {
        id: question.approval.id.clone(),
        generation: question.approval.generation,
        allow: true,
        scope: None,
        reason: None,
    };
    host.approve(&selector, answer.clone()).await.unwrap();
    let late = host.approve(&selector, answer).await.unwrap_err();
    seen.push(format!("{} {}", late.status, late.code));
    eventually("the end", SOON, async || {
        let status = host.status(&selector).await.unwrap();
        let state = status.runtime_state.unwrap();
        (!state.running && state.turn_id == turn.turn_id).then_some(())
    })
    .await;
    assert_eq!(
        std::fs::read_to_string(workspace.join("made.txt")).unwrap(),
        "made\n"
    );
    let snapshot = host.transcript_snapshot(&selector).await.unwrap();
    let page = host
        .transcript_page(
            &selector,
            &PageQuery {
                session: None,
                before: None,
                limit: Some(500),
            },
        )
        .await
        .unwrap();
    assert_eq!(snapshot.items, page.items);
    for item in &page.items {
        let tool = item
            .tool
            .as_ref()
            .map(|tool| format!("{} {}", tool.name, tool.state));
        seen.push(format!("{} {:?} {tool:?}", item.kind, item.text));
    }
    let call = page
        .items
        .iter()
        .find_map(|item| item.tool.clone())
        .unwrap();
    let attempt = call.attempt_id.clone();
    seen.push(host.diff(&selector, &attempt).await.unwrap().diff);
    seen.push(host.output(&selector, &attempt, 0).await.unwrap().text);
    let recovery = host.tool_recovery_snapshot(&selector).await.unwrap();
    assert_eq!(recovery.session_path, created.session_path);
    assert_eq!(recovery.calls, []);
    assert_eq!(host.jobs(&selector).await.unwrap(), []);
    let queue = host.inbox(&selector).await.unwrap();
    assert_eq!((queue.items.len(), queue.paused), (0, false));
    let receipt = host.inbox_receipt(&selector, "k1").await.unwrap();
    assert_eq!(receipt.turn_id.as_deref(), Some(turn.turn_id.as_str()));
    seen.push(
        host.inbox_receipt(&selector, "none")
            .await
            .unwrap_err()
            .code,
    );
    let renamed = PatchSession {
        title: Some("Renamed".to_owned()),
        ..PatchSession::default()
    };
    host.patch_session(&created.session_id, renamed)
        .await
        .unwrap();
    let copy = host.fork(&selector).await.unwrap();
    host.delete_session(&copy.session_id).await.unwrap();
    let list = host.list_sessions(&SessionsQuery::default()).await.unwrap();
    let row = list
        .items
        .iter()
        .find(|row| row.session_id == created.session_id)
        .unwrap();
    seen.push(row.title.clone());
    let gone = host
        .status(&Selector::of(&copy.session_id))
        .await
        .unwrap_err();
    seen.push(format!("{} {}", gone.status, gone.code));
    let states = host.runtime_states().await.unwrap();
    assert!(
        states
            .sessions
            .iter()
            .any(|row| row.session_path == created.session_path)
    );
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_02_local_and_remote_sessions_live_the_same_life() {
    let far = Far::new("full").await;
    let remote = life(&far.host, &far.scene.model, &far.scene.workspace).await;

    let ground = Ground::new(&Plan::default());
    let config = Config::read(&ground.data.join("config.toml")).unwrap();
    let models = ConfiguredModels::new(config.clone(), RequestLimits::default());
    let options = HostOptions::new(
        ground.data.clone(),
        config,
        Arc::new(SystemSource),
        Arc::new(models),
    );
    let host = Host::new(options).unwrap();
    let local = life(&host, &ground.model, &ground.workspace).await;
    host.close().await;
    assert_eq!(local, remote);
}
