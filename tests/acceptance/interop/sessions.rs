//! Meeting the host, and its one session at a time.

use holdfast_api::Selector;
use holdfast_api::SessionHost;
use holdfast_api::session::CreateSession;
use holdfast_api::session::SessionsQuery;
use holdfast_domain::runtime::snapshot::Phase;
use holdfast_remote::Condition;
use holdfast_remote::Dialect;
use holdfast_testkit::Step;
use holdfast_testkit::wait::SOON;
use holdfast_testkit::wait::until;

use super::serve::{Serve, proven};
use super::{code, eventually_shown, message};

#[tokio::test]
async fn rs_34_a_reasonix_serve_is_recognised_and_read() {
    let (serve, selector) = Serve::new().await;
    assert_eq!(serve.host.connection().dialect(), Dialect::Reasonix);
    assert!(serve.host.connection().verify().await);
    let status = serve.host.status(&selector).await.unwrap();
    assert_eq!(Some(&status.session_id), selector.session.as_ref());
    assert_eq!(status.runtime_state.unwrap().phase, Phase::Idle);
    let work = std::fs::canonicalize(serve.work()).unwrap();
    assert_eq!(status.workspace, work.to_string_lossy());
    let list = serve
        .host
        .list_sessions(&SessionsQuery::default())
        .await
        .unwrap();
    assert_eq!(list.items.len(), 1);
    assert!(list.items[0].state.open);
    proven("recognised by itself; states, status and the list of sessions are read");

    let none = "host_unsupported";
    assert_eq!(code(serve.host.jobs(&selector).await), none);
    assert_eq!(code(serve.host.diff(&selector, "a").await), none);
    assert_eq!(code(serve.host.output(&selector, "a", 0).await), none);
    assert_eq!(code(serve.host.fork(&selector).await), none);
    assert_eq!(code(serve.host.compact(&selector).await), none);
    assert_eq!(code(serve.host.delete_session("a").await), none);
    proven("what it can't do is refused with host_unsupported, without a request");

    let other = Serve::with_token("not-the-token");
    until("the refusal", SOON, || {
        let condition = other.host.connection().view().condition;
        matches!(condition, Condition::Refused { ref code, .. } if code == "host_unauthorized")
            .then_some(())
    })
    .await;
    proven("a wrong token is refused, and not tried again by itself");
}

#[tokio::test]
async fn rs_35_a_reasonix_serve_has_one_session_at_a_time() {
    let (serve, first) = Serve::new().await;
    serve
        .host
        .submit(&first, message("go", "k1"))
        .await
        .unwrap();
    serve.idle(&first).await;
    let created = serve
        .host
        .create_session(CreateSession::default())
        .await
        .unwrap();
    let second = Selector::of(&created.session_id);
    serve.show(&second);
    serve
        .until(&second, "the new session", |_, synced| synced)
        .await;
    until("the first to be unconfirmed", SOON, || {
        (!serve.facts(&first).1).then_some(())
    })
    .await;
    assert_eq!(
        code(serve.host.submit(&first, message("more", "k2")).await),
        "session_mismatch"
    );
    assert_eq!(
        code(serve.host.transcript_snapshot(&first).await),
        "session_mismatch"
    );
    assert!(serve.host.pending_prompts(&first).await.unwrap().is_empty());
    assert_eq!(serve.model.request_count(), 1);
    proven("the session that is not current is unconfirmed, and no message reaches the other one");

    serve
        .host
        .resume(first.session.as_deref().unwrap())
        .await
        .unwrap();
    let back = serve
        .until(&first, "it to be confirmed again", |_, synced| synced)
        .await;
    assert!(!back.running);
    serve
        .host
        .submit(&first, message("more", "k2"))
        .await
        .unwrap();
    eventually_shown(&serve, &first, "user: more").await;
    serve.idle(&first).await;
    proven("made current again it is confirmed, though its revisions begin anew in the same epoch");

    serve.model.push(Step::text("held").held("end"));
    serve
        .host
        .submit(&first, message("wait", "k3"))
        .await
        .unwrap();
    let busy = serve.host.resume(&created.session_id).await;
    assert_eq!(code(busy), "session_busy");
    serve.model.release("end");
    let elsewhere = CreateSession {
        workspace: Some("/".to_owned()),
        ..CreateSession::default()
    };
    assert_eq!(
        code(serve.host.create_session(elsewhere).await),
        "host_unsupported"
    );
    proven("while it works no other session can be current; another folder is host_unsupported");
}
