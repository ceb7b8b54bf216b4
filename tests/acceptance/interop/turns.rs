//! A turn, from the message to its end, and the Stop.

use holdfast_api::SessionHost;
use holdfast_api::session::Cancel;
use holdfast_api::session::Cancelled;
use holdfast_api::session::Submitted;
use holdfast_domain::runtime::snapshot::Phase;
use holdfast_domain::runtime::snapshot::RuntimeState;
use holdfast_domain::runtime::snapshot::TurnStatus;
use holdfast_testkit::Lie;
use holdfast_testkit::Step;
use holdfast_testkit::wait::SOON;
use holdfast_testkit::wait::until;
use holdfast_testkit::wait::until_asked;
use std::sync::atomic::Ordering;

use super::serve::{Serve, proven};
use super::{code, eventually_shown, message, shown};

#[tokio::test]
async fn rs_30_a_turn_of_a_reasonix_serve_is_followed_by_its_stream() {
    let (serve, selector) = Serve::new().await;
    let step = Step::chunks(&["the ", "answer"]).with_reasoning("thinking it over");
    serve.model.push(step.held_after("rest", 2));
    let sent = serve
        .host
        .submit(&selector, message("go", "k1"))
        .await
        .unwrap();
    assert!(!sent.duplicate);
    let running = |state: &RuntimeState, _| {
        state.phase == Phase::Executing && state.turn_status == TurnStatus::InProgress
    };
    let state = serve.until(&selector, "the turn", running).await;
    let live = until_asked("the text so far", SOON, async || {
        let snapshot = serve.host.transcript_snapshot(&selector).await.unwrap();
        snapshot.live.filter(|live| !live.text.is_empty())
    })
    .await;
    assert_eq!(
        (live.turn_id, live.text.as_str()),
        (state.turn_id.clone(), "the ")
    );
    assert!(sent.turn_id.is_empty() || sent.turn_id == state.turn_id);
    proven("a submit begins a turn; its state and its text so far are shown while it runs");

    assert_eq!(
        code(serve.host.submit(&selector, message("more", "k2")).await),
        "session_busy"
    );
    let gaps = serve.kept.gaps.load(Ordering::SeqCst);
    serve.model.release("rest");
    let idle = serve.idle(&selector).await;
    assert_eq!(idle.turn_status, TurnStatus::Completed);
    let snapshot = eventually_shown(&serve, &selector, "assistant: the answer").await;
    assert_eq!(shown(&snapshot), ["user: go", "assistant: the answer"]);
    until("the transcript to be read anew", SOON, || {
        (serve.kept.gaps.load(Ordering::SeqCst) > gaps).then_some(())
    })
    .await;
    proven("a second submit is session_busy; the end is told, and the transcript read anew");

    let again = serve
        .host
        .submit(&selector, message("go", "k1"))
        .await
        .unwrap();
    assert_eq!(
        again,
        Submitted {
            turn_id: idle.turn_id,
            duplicate: true
        }
    );
    assert_eq!(
        code(serve.host.submit(&selector, message("else", "k1")).await),
        "idempotency_conflict"
    );
    assert_eq!(serve.model.request_count(), 1);
    proven("the same key again is the same message; with another text it is refused");

    serve.network.lie("POST /submit", Lie::DropReply);
    let lost = serve
        .host
        .submit(&selector, message("lost", "k3"))
        .await
        .unwrap();
    assert!(lost.duplicate);
    serve.network.lie("POST /submit", Lie::DropRequest);
    let never = serve.host.submit(&selector, message("never", "k4")).await;
    assert_eq!(code(never), "message_not_arrived");
    serve.idle(&selector).await;
    assert_eq!(serve.network.count("POST /submit"), 6);
    proven("a submit whose answer is lost is found by its key, and never sent again");

    let (_, conflicts, failures) = serve.host.connection().view().counters;
    assert_eq!((conflicts, failures), (0, 0));
    assert!(serve.host.connection().verify().await);
    proven("no frame contradicted a read");
}

#[tokio::test]
async fn c37_a_late_stop_does_not_reach_the_next_turn_of_a_reasonix_serve() {
    let (serve, selector) = Serve::new().await;
    serve
        .host
        .submit(&selector, message("first", "k1"))
        .await
        .unwrap();
    let first = serve.idle(&selector).await;
    let stop = |turn: &str| Cancel {
        turn_id: Some(turn.to_owned()),
    };
    serve
        .model
        .push(Step::chunks(&["half", "rest"]).held_after("rest", 1));
    serve
        .host
        .submit(&selector, message("second", "k2"))
        .await
        .unwrap();
    let second = serve
        .until(&selector, "the second turn", |state, _| {
            state.running && state.turn_id != first.turn_id && !state.turn_id.is_empty()
        })
        .await;
    let late = serve
        .host
        .cancel(&selector, stop(&first.turn_id))
        .await
        .unwrap();
    assert_eq!(late, Cancelled::AlreadyEnded);
    assert_eq!(serve.network.count("POST /cancel"), 0);
    assert!(serve.facts(&selector).0.unwrap().running);
    proven("a Stop of an earlier turn is answered from its state, and never sent");

    let now = serve
        .host
        .cancel(&selector, stop(&second.turn_id))
        .await
        .unwrap();
    assert_eq!(now, Cancelled::Requested);
    let ended = serve.idle(&selector).await;
    assert_eq!(
        (ended.turn_id, ended.turn_status),
        (second.turn_id.clone(), TurnStatus::Interrupted)
    );
    assert_eq!(
        serve
            .host
            .cancel(&selector, stop(&second.turn_id))
            .await
            .unwrap(),
        Cancelled::AlreadyEnded
    );
    proven("a Stop of the present turn ends it, and a second one has nothing to do");
}
