//! Hosts that know less: RS-34, RS-14.

use holdfast_domain::runtime::observed::Observed;
use holdfast_testkit::Lie;
use holdfast_testkit::wait::{SOON, until};
use serde_json::{Value, json};

use super::stage::Far;

const STATES: &str = "GET /runtime-states";
const STATUS: &str = "GET /status";

fn page() -> Lie {
    Lie::Answer {
        status: 200,
        content_type: "text/html".to_owned(),
        body: "<html></html>".to_owned(),
    }
}

fn text(status: u16) -> Lie {
    Lie::Answer {
        status,
        content_type: "text/plain".to_owned(),
        body: "no such thing".to_owned(),
    }
}

#[tokio::test]
async fn rs_34_a_host_without_the_list_is_asked_for_each_session_until_it_is_another_connection() {
    for missing in [text(404), text(501), page()] {
        let far = Far::new("full").await;
        far.network.lie(STATES, missing);
        assert!(far.host.connection().verify().await, "its status will do");
        let lists = far.network.count(STATES);
        assert_eq!(far.network.count(STATUS), 1);
        assert!(far.host.connection().verify().await);
        assert_eq!(far.network.count(STATES), lists, "remembered");
        assert_eq!(far.network.count(STATUS), 2);
        // Another connection may be another version.
        far.network.tell_the_truth(STATES);
        far.network.cut();
        until("another look", SOON, || {
            (far.network.count(STATES) > lists).then_some(())
        })
        .await;
        far.synced().await;
    }
}

#[tokio::test]
async fn rs_14_a_status_without_a_snapshot_is_shown_for_what_it_says() {
    let far = Far::new("full").await;
    far.network.lie(STATES, text(404));
    let old = |running: bool| {
        Lie::json(
            200,
            &json!({ "sessionPath": far.path, "running": running, "cwd": "/x" }),
        )
    };
    for running in [true, false] {
        far.network.lie(STATUS, old(running));
        assert!(far.host.connection().verify().await);
        let Some(Observed::Legacy(state)) = far.known().unwrap().state else {
            panic!("it has no snapshot");
        };
        assert_eq!((state.running, state.background_jobs), (running, None));
    }
    // About another session, or no status at all.
    for wrong in [
        json!({ "sessionPath": "session-id:0", "running": true }),
        json!({}),
        Value::Null,
    ] {
        far.network.lie(STATUS, Lie::json(200, &wrong));
        assert!(!far.host.connection().verify().await, "{wrong}");
    }
}
