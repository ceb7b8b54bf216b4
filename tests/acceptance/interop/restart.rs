//! The host is killed, and started again.

use holdfast_api::SessionHost;
use holdfast_api::session::Approve;
use holdfast_domain::runtime::snapshot::Phase;
use holdfast_remote::Condition;
use holdfast_testkit::Step;
use holdfast_testkit::wait::SOON;
use holdfast_testkit::wait::until;
use serde_json::json;

use super::serve::{Serve, proven};
use super::{code, eventually_shown, message, queued, shown};

#[tokio::test]
async fn rs_36_a_killed_reasonix_serve_is_adopted_after_its_restart() {
    let (mut serve, selector) = Serve::new().await;
    // It ends with the folder, whoever lives then.
    let command = "echo begun; while [ -e alive ]; do sleep 0.1; done";
    std::fs::write(serve.work().join("alive"), "").unwrap();
    let call = json!({ "command": command }).to_string();
    serve.model.push(Step::call("c1", "bash", &call));
    serve
        .host
        .submit(&selector, message("go", "k1"))
        .await
        .unwrap();
    let question = serve.question(&selector).await;
    let yes = Approve {
        id: question.approval.id,
        generation: question.approval.generation,
        allow: true,
        scope: None,
        reason: None,
    };
    serve.host.approve(&selector, yes.clone()).await.unwrap();
    eventually_shown(&serve, &selector, "bash in_flight").await;
    serve
        .host
        .enqueue(&selector, queued("later", "q1"))
        .await
        .unwrap();
    let before = serve
        .until(&selector, "the command", |state, synced| {
            synced && state.running && !state.pending_prompt
        })
        .await;
    serve.kill9().await;
    assert_eq!(serve.facts(&selector), (Some(before.clone()), false));
    assert_eq!(
        code(serve.host.submit(&selector, message("x", "k9")).await),
        "host_disconnected"
    );
    proven("after kill -9 the last facts stay, unconfirmed, and commands are refused");

    serve.restart();
    until("the connection", SOON, || {
        let condition = serve.host.connection().view().condition;
        (condition == Condition::Connected).then_some(())
    })
    .await;
    assert!(!serve.host.connection().verify().await);
    assert!(!serve.facts(&selector).1);
    assert_eq!(
        code(serve.host.submit(&selector, message("x", "k9")).await),
        "session_mismatch"
    );
    proven("it restarts with another session; the one that the tab shows stays unconfirmed");

    serve
        .host
        .resume(selector.session.as_deref().unwrap())
        .await
        .unwrap();
    let after = serve
        .until(&selector, "it to be adopted", |_, synced| synced)
        .await;
    assert_ne!(after.runtime_epoch, before.runtime_epoch);
    assert_eq!((after.phase, after.pending_prompt), (Phase::Idle, false));
    let snapshot = serve.host.transcript_snapshot(&selector).await.unwrap();
    assert_eq!(shown(&snapshot), ["user: go", "bash unknown"]);
    assert_eq!(
        code(serve.host.approve(&selector, yes).await),
        "prompt_not_pending"
    );
    proven("resumed, it is adopted with its new epoch; the command without a result is unknown");

    assert!(serve.host.inbox(&selector).await.unwrap().items.is_empty());
    assert_eq!(
        code(serve.host.inbox_receipt(&selector, "q1").await),
        "receipt_unknown"
    );
    proven("its queue did not survive: what it had accepted is gone, and the receipt says so");

    let again = serve
        .host
        .submit(&selector, message("go", "k1"))
        .await
        .unwrap();
    assert!(again.duplicate);
    serve
        .host
        .submit(&selector, message("on", "k2"))
        .await
        .unwrap();
    eventually_shown(&serve, &selector, "user: on").await;
    serve.idle(&selector).await;
    proven("a key of before the kill is still known; a new message runs");
}
