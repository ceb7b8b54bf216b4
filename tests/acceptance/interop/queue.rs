//! The queue.

use holdfast_api::SessionHost;
use holdfast_api::inbox::Disposition;
use holdfast_api::inbox::EditItem;
use holdfast_api::inbox::MoveItem;
use holdfast_testkit::Lie;
use holdfast_testkit::Step;
use holdfast_testkit::wait::SOON;
use holdfast_testkit::wait::until_asked;

use super::serve::{Serve, proven};
use super::{code, eventually_shown, message, queued};

#[tokio::test]
async fn rs_16_the_queue_of_a_reasonix_serve() {
    let (serve, selector) = Serve::new().await;
    let host = &serve.host;
    serve.model.push(Step::text("first").held("first"));
    host.submit(&selector, message("go", "k1")).await.unwrap();
    let one = host.enqueue(&selector, queued("one", "q1")).await.unwrap();
    assert_eq!(
        (one.disposition, one.position),
        (Disposition::QueuedFollowup, 1)
    );
    let again = host.enqueue(&selector, queued("one", "q1")).await.unwrap();
    assert_eq!(
        (again.item_id, again.disposition),
        (one.item_id.clone(), Disposition::IdempotentHit)
    );
    assert_eq!(
        code(host.enqueue(&selector, queued("x", "q1")).await),
        "idempotency_conflict"
    );
    let long = format!("{}end", "two ".repeat(2000));
    let two = host.enqueue(&selector, queued(&long, "q2")).await.unwrap();
    let three = host
        .enqueue(&selector, queued("three", "q3"))
        .await
        .unwrap();
    assert_eq!(
        host.inbox_receipt(&selector, "q2").await.unwrap().item_id,
        two.item_id
    );
    assert_eq!(
        code(host.inbox_receipt(&selector, "q9").await),
        "receipt_unknown"
    );
    proven("messages are queued by key, and found by it");

    host.pause_inbox(&selector).await.unwrap();
    let edit = EditItem {
        input: Some("one, edited".to_owned()),
        intent: None,
    };
    host.edit_item(&selector, &one.item_id, edit).await.unwrap();
    let to_end = MoveItem {
        item_id: one.item_id.clone(),
        position: 3,
    };
    host.move_item(&selector, to_end).await.unwrap();
    host.delete_item(&selector, &three.item_id).await.unwrap();
    let view = host.inbox(&selector).await.unwrap();
    let texts: Vec<&str> = view.items.iter().map(|item| item.input.as_str()).collect();
    assert_eq!(texts, [long.as_str(), "one, edited"]);
    assert!(view.paused && view.items.iter().all(|item| item.queued_at > 0));
    proven("they are edited, moved, given up, and read whole; the queue is paused");

    serve.network.lie("POST /inbox/items", Lie::DropReply);
    let lost = host.enqueue(&selector, queued("four", "q4")).await.unwrap();
    assert_eq!(
        (lost.disposition, lost.position),
        (Disposition::QueuedFollowup, 3)
    );
    serve.network.lie("POST /inbox/items", Lie::DropRequest);
    let never = host.enqueue(&selector, queued("five", "q5")).await;
    assert_eq!(code(never), "message_not_arrived");
    proven("one whose answer is lost is found by its key, and never sent again");

    serve.model.release("first");
    host.resume_inbox(&selector).await.unwrap();
    until_asked("the queue to be empty", SOON, async || {
        host.inbox(&selector)
            .await
            .unwrap()
            .items
            .is_empty()
            .then_some(())
    })
    .await;
    eventually_shown(&serve, &selector, "user: four").await;
    serve.idle(&selector).await;
    assert_eq!(serve.model.request_count(), 4);
    assert_eq!(
        code(host.inbox_receipt(&selector, "q4").await),
        "host_unsupported"
    );
    proven("resumed, they run in their order; what became of a key after that it does not tell");
}
