//! App operations over HTTP, and the app's events as a stream of server-sent events.
//!
//! Guarantees: every route comes from the table of app operations; each reader of the events has a
//! stream of its own and delays nobody; a comment goes out every 15 s.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::DefaultBodyLimit;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use holdfast_api::app::{APP, App, dispatch};
use holdfast_api::desktop::AppEvent;
use holdfast_api::operations::{MESSAGE_BODY, RECOVERY_BODY, SMALL_BODY};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::error::{Failure, reply};
use crate::handlers::Body;

/// Between comments.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Gives each reader its own stream of the app's events.
pub type EventSource = Arc<dyn Fn() -> BoxStream<'static, AppEvent> + Send + Sync>;

/// `POST /app/<operation>` for every operation of the table, and `GET /app/events`. Streams end
/// when `stopped` does. Who may call them is the server's affair.
pub fn app_routes(app: Arc<dyn App>, events: EventSource, stopped: CancellationToken) -> Router {
    let streams = get(move || {
        let stopped = stopped.clone();
        let stream = events().take_until(async move { stopped.cancelled().await });
        async move {
            let frames = stream.filter_map(|event| async move { sent(&event) });
            Sse::new(frames).keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("alive"))
        }
    });
    let router = APP.iter().fold(Router::new(), |router, name| {
        let app = Arc::clone(&app);
        let operation = post(move |Body(request): Body<Value>| call(app, name, request));
        let limit = DefaultBodyLimit::max(body_limit(name));
        router.route(&path_of(name), operation.layer(limit))
    });
    router
        .route("/app/events", streams)
        .route("/app/{*operation}", any(unknown_operation))
}

/// Path of an operation.
pub fn path_of(name: &str) -> String {
    format!("/app/{name}")
}

/// Largest body, in bytes; as that of the host's operation that it becomes.
fn body_limit(name: &str) -> usize {
    match name {
        "submit" | "enqueue" | "edit_item" | "save_draft" => MESSAGE_BODY,
        "resolve_tool_recovery_for_tab" => RECOVERY_BODY,
        _ => SMALL_BODY,
    }
}

async fn call(app: Arc<dyn App>, name: &'static str, request: Value) -> Response {
    match dispatch(&*app, name, request).await {
        Some(Ok(reply)) => Json(reply).into_response(),
        Some(Err(error)) => Failure(error).into_response(),
        None => unknown_operation().await,
    }
}

async fn unknown_operation() -> Response {
    reply(
        404,
        "operation_unknown",
        "the app has no such operation; nothing was done",
    )
}

fn sent(event: &AppEvent) -> Option<Result<Event, Infallible>> {
    match serde_json::to_string(event) {
        Ok(data) => Some(Ok(Event::default().data(data))),
        Err(error) => {
            tracing::error!("an event could not be written as JSON and was left out: {error}");
            None
        }
    }
}
