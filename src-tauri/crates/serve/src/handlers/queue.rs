//! The queue's handlers (RS-16).

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use holdfast_api::inbox::{EditItem, Enqueue, InboxReceipt, InboxView, MoveItem};

use super::input::{Body, KeyQuery, Selected, SessionQuery};
use super::{Hosted, Reply};
use crate::error::Failure;

pub(super) async fn inbox(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
) -> Reply<InboxView> {
    Ok(Json(hosted.host.inbox(&selected.selector).await?))
}

pub(super) async fn inbox_receipt(
    State(hosted): State<Hosted>,
    selected: Selected<KeyQuery>,
) -> Reply<InboxReceipt> {
    let receipt = hosted
        .host
        .inbox_receipt(&selected.selector, &selected.query.key);
    Ok(Json(receipt.await?))
}

pub(super) async fn enqueue(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
    Body(request): Body<Enqueue>,
) -> Result<Response, Failure> {
    let enqueued = hosted.host.enqueue(&selected.selector, request).await?;
    Ok((StatusCode::ACCEPTED, Json(enqueued)).into_response())
}

pub(super) async fn edit_item(
    State(hosted): State<Hosted>,
    Path(id): Path<String>,
    selected: Selected<SessionQuery>,
    Body(edit): Body<EditItem>,
) -> Result<StatusCode, Failure> {
    hosted.host.edit_item(&selected.selector, &id, edit).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn delete_item(
    State(hosted): State<Hosted>,
    Path(id): Path<String>,
    selected: Selected<SessionQuery>,
) -> Result<StatusCode, Failure> {
    hosted.host.delete_item(&selected.selector, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn move_item(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
    Body(request): Body<MoveItem>,
) -> Result<StatusCode, Failure> {
    hosted.host.move_item(&selected.selector, request).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn pause_inbox(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
) -> Result<StatusCode, Failure> {
    hosted.host.pause_inbox(&selected.selector).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn resume_inbox(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
) -> Result<StatusCode, Failure> {
    hosted.host.resume_inbox(&selected.selector).await?;
    Ok(StatusCode::NO_CONTENT)
}
