//! `GET /events`: the event stream of a host (RS-28, RS-29).
//!
//! Guarantee: each reader pulls from the host's ring at its own pace; nothing is queued for it. A
//! comment goes out every 15 s.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use axum::response::sse::{Event, KeepAlive, Sse};
use futures_util::stream::{self, Stream, StreamExt};
use holdfast_controller::hub::{Outgoing, Reader};
use serde::Deserialize;

use crate::error::Failure;
use crate::handlers::{Hosted, bad_query};

/// RS-29: between comments.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EventsQuery {
    /// `1`: frames of all sessions.
    all: Option<String>,
    /// Frames of that session alone.
    session: Option<String>,
}

pub(crate) async fn events(
    State(hosted): State<Hosted>,
    query: Result<Query<EventsQuery>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Failure> {
    let Query(query) = query.map_err(|error| bad_query(&error))?;
    let all = matches!(query.all.as_deref(), Some("1" | "true"));
    let last = headers
        .get("last-event-id")
        .and_then(|value| value.to_str().ok());
    let session = query.session.map(|id| {
        id.strip_prefix("session-id:")
            .map(str::to_owned)
            .unwrap_or(id)
    });
    let reader = hosted.hub.reader(all, session, last);
    let stopped = hosted.stopped.clone();
    let frames = frames(reader).take_until(async move { stopped.cancelled().await });
    Ok(Sse::new(frames).keep_alive(KeepAlive::new().interval(KEEP_ALIVE).text("alive")))
}

fn frames(reader: Reader) -> impl Stream<Item = Result<Event, Infallible>> {
    stream::unfold(reader, |mut reader| async move {
        let batch = reader.next().await;
        Some((stream::iter(batch), reader))
    })
    .flatten()
    .map(|Outgoing { id, data }| {
        let event = Event::default().data(&*data);
        Ok(match id {
            Some(id) => event.id(id),
            None => event,
        })
    })
}
