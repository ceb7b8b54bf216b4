//! The table of app operations and the routes that come from it.

use std::sync::Arc;

use async_trait::async_trait;
use futures_util::StreamExt;
use holdfast_api::app::*;
use holdfast_api::desktop::*;
use holdfast_api::history::{CompactionStarted, RewindReply};
use holdfast_api::hosts::{HostChange, HostCheck, HostList, HostRef};
use holdfast_api::inbox::{
    Enqueued, InboxReceipt, InboxView, TabEditItem, TabEnqueue, TabItem, TabKey, TabMoveItem,
};
use holdfast_api::operations::{MESSAGE_BODY, RECOVERY_BODY, SMALL_BODY};
use holdfast_api::recovery::ToolRecoverySnapshot;
use holdfast_api::session::{Job, PendingPrompt, SessionsPage, SessionsQuery, Submitted};
use holdfast_api::transcript::{DiffReply, OutputPage, TranscriptPage, TranscriptSnapshot};
use holdfast_api::{ApiError, for_each_app_operation};
use holdfast_serve::{EventSource, app_routes, path_of};
use holdfast_testkit::TestClient;
use holdfast_testkit::wait::{SOON, until};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// An app whose every operation answers with its own name, as an error.
struct Named;

macro_rules! named {
    ($($name:ident($request:ty) -> $reply:ty;)*) => {
        #[async_trait]
        impl App for Named {
            $(async fn $name(&self, _: $request) -> Result<$reply, ApiError> {
                Err(ApiError::new(418, stringify!($name), "called"))
            })*
        }
    };
}

for_each_app_operation!(named);

struct Served {
    client: TestClient,
    stopped: CancellationToken,
}

async fn serve(events: EventSource) -> Served {
    let stopped = CancellationToken::new();
    let routes = app_routes(Arc::new(Named), events, stopped.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    Served {
        client: TestClient::new(&base, None),
        stopped,
    }
}

fn silent() -> EventSource {
    Arc::new(|| futures_util::stream::pending().boxed())
}

#[tokio::test]
async fn every_operation_of_the_table_has_its_route() {
    let served = serve(silent()).await;
    for name in APP {
        // No operation takes a list: each is found, and its own fields are looked at.
        let (status, body) = served.client.post(&path_of(name), &json!([1])).await;
        assert_eq!(
            (status, body["code"].as_str()),
            (400, Some("body_invalid")),
            "{name}"
        );
        let (status, body) = served.client.get(&path_of(name)).await;
        assert_eq!(status, 405, "{name} changes something, perhaps: {body}");
    }
    let (status, body) = served.client.post("/app/get_layout", &json!({})).await;
    assert_eq!((status, body["code"].as_str()), (418, Some("get_layout")));
    for path in ["/app/no_such_operation", "/app/get_layout/more"] {
        let (status, body) = served.client.post(path, &json!({})).await;
        assert_eq!(
            (status, body["code"].as_str()),
            (404, Some("operation_unknown"))
        );
    }
}

#[tokio::test]
async fn bodies_are_limited_as_those_of_the_host() {
    let served = serve(silent()).await;
    for (name, limit) in [
        ("save_settings", SMALL_BODY),
        ("resolve_tool_recovery_for_tab", RECOVERY_BODY),
        ("submit", MESSAGE_BODY),
        ("save_draft", MESSAGE_BODY),
    ] {
        let (status, body) = served
            .client
            .post(&path_of(name), &json!("x".repeat(limit)))
            .await;
        assert_eq!(
            (status, body["code"].as_str()),
            (413, Some("body_too_large")),
            "{name}"
        );
        let (status, _) = served
            .client
            .post(&path_of(name), &json!("x".repeat(limit - 2)))
            .await;
        assert_eq!(status, 400, "{name}");
    }
}

#[tokio::test]
async fn each_reader_gets_a_stream_of_its_own_that_ends_with_the_server() {
    let events: EventSource = Arc::new(|| {
        let first = AppEvent::Resync(Resync {
            recovery_version: 7,
        });
        futures_util::stream::iter([first])
            .chain(futures_util::stream::pending())
            .boxed()
    });
    let served = serve(events).await;
    let expected: Value = json!({"event": "desktop:resync", "payload": {"recoveryVersion": 7}});
    let one = served.client.events("/app/events", None).await;
    let two = served.client.events("/app/events", None).await;
    for reader in [&one, &two] {
        let frame = reader.wait_for_frame("the event", SOON, |_| true).await;
        assert_eq!(frame.data, expected);
    }
    served.stopped.cancel();
    until("the end of both streams", SOON, || {
        (one.ended() && two.ended()).then_some(())
    })
    .await;
}
