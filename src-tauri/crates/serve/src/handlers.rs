//! One handler for each operation of the table; each only reads its request and calls the host.

mod input;
mod queue;

use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, delete, get, patch, post};
use holdfast_api::SessionHost;
use holdfast_api::operations::{HOST, Method, Operation};
use holdfast_api::session::Cancelled;
use holdfast_api::transcript::PageQuery;
use holdfast_controller::hub::Hub;
use tokio_util::sync::CancellationToken;

pub(crate) use self::input::{Body, bad_query};
use self::input::{Selected, SessionQuery, Typed};
use crate::error::Failure;
use crate::events::events;

/// What handlers share.
#[derive(Clone)]
pub(crate) struct Hosted {
    pub(crate) host: Arc<dyn SessionHost>,
    pub(crate) hub: Arc<Hub>,
    /// What a person's decision is recorded as coming from.
    pub(crate) surface: &'static str,
    /// The server ends; open streams end with it.
    pub(crate) stopped: CancellationToken,
}

type Reply<T> = Result<Json<T>, Failure>;

/// Binds every operation of the table. An operation without a handler is a defect that a test
/// finds through [`registry`].
pub(crate) fn routes() -> Router<Hosted> {
    HOST.iter().fold(Router::new(), |router, operation| {
        match handler(operation) {
            Some(handler) => {
                let limit = DefaultBodyLimit::max(operation.body_limit.max(1024));
                router.route(operation.path, handler.layer(limit))
            }
            None => router,
        }
    })
}

/// Names of the operations that have a handler, for the comparison with the table.
pub fn registry() -> Vec<&'static str> {
    HOST.iter()
        .filter(|operation| handler(operation).is_some())
        .map(|operation| operation.name)
        .collect()
}

fn handler(operation: &Operation) -> Option<MethodRouter<Hosted>> {
    let bound = match operation.name {
        "status" => get(status),
        "runtime_states" => get(runtime_states),
        "tool_recovery" => get(tool_recovery),
        "resolve_recovery" => post(resolve_recovery),
        "events" => get(events),
        "list_sessions" => get(list_sessions),
        "create_session" => post(create_session),
        "patch_session" => patch(patch_session),
        "delete_session" => delete(delete_session),
        "resume" => post(resume),
        "submit" => post(submit),
        "inbox" => get(queue::inbox),
        "inbox_receipt" => get(queue::inbox_receipt),
        "enqueue" => post(queue::enqueue),
        "edit_item" => patch(queue::edit_item),
        "delete_item" => delete(queue::delete_item),
        "move_item" => post(queue::move_item),
        "pause_inbox" => post(queue::pause_inbox),
        "resume_inbox" => post(queue::resume_inbox),
        "cancel" => post(cancel),
        "compact" => post(compact),
        "rewind" => post(rewind),
        "fork" => post(fork),
        "pending_prompts" => get(pending_prompts),
        "approve" => post(approve),
        "transcript_page" => get(transcript_page),
        "transcript_snapshot" => get(transcript_snapshot),
        "diff" => get(diff),
        "output" => get(output),
        "jobs" => get(jobs),
        "background_job" => post(background_job),
        "cancel_job" => post(cancel_job),
        _ => return None,
    };
    debug_assert!(matches!(
        operation.method,
        Method::Get | Method::Post | Method::Patch | Method::Delete
    ));
    Some(bound)
}

async fn status(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
) -> Reply<holdfast_api::session::Status> {
    Ok(Json(hosted.host.status(&selected.selector).await?))
}

async fn runtime_states(
    State(hosted): State<Hosted>,
) -> Reply<holdfast_api::session::RuntimeStates> {
    Ok(Json(hosted.host.runtime_states().await?))
}

async fn tool_recovery(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
) -> Reply<holdfast_api::recovery::ToolRecoverySnapshot> {
    let snapshot = hosted.host.tool_recovery_snapshot(&selected.selector);
    Ok(Json(snapshot.await?))
}

async fn resolve_recovery(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
    Body(request): Body<holdfast_domain::recovery::admission::ActionRequest>,
) -> Reply<holdfast_api::recovery::ToolRecoverySnapshot> {
    let resolved = hosted
        .host
        .resolve_tool_recovery(&selected.selector, request, hosted.surface);
    Ok(Json(resolved.await?))
}

async fn list_sessions(
    State(hosted): State<Hosted>,
    Typed(query): Typed<holdfast_api::session::SessionsQuery>,
) -> Reply<holdfast_api::session::SessionsPage> {
    Ok(Json(hosted.host.list_sessions(&query).await?))
}

async fn create_session(
    State(hosted): State<Hosted>,
    Body(request): Body<holdfast_api::session::CreateSession>,
) -> Result<Response, Failure> {
    let created = hosted.host.create_session(request).await?;
    Ok((StatusCode::CREATED, Json(created)).into_response())
}

async fn patch_session(
    State(hosted): State<Hosted>,
    Path(id): Path<String>,
    Body(request): Body<holdfast_api::session::PatchSession>,
) -> Result<StatusCode, Failure> {
    hosted.host.patch_session(&id, request).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn delete_session(
    State(hosted): State<Hosted>,
    Path(id): Path<String>,
) -> Result<StatusCode, Failure> {
    hosted.host.delete_session(&id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn resume(
    State(hosted): State<Hosted>,
    Body(request): Body<holdfast_api::session::Resume>,
) -> Result<StatusCode, Failure> {
    hosted.host.resume(&request.session_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn submit(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
    Body(request): Body<holdfast_api::session::Submit>,
) -> Result<Response, Failure> {
    let submitted = hosted.host.submit(&selected.selector, request).await?;
    Ok((StatusCode::ACCEPTED, Json(submitted)).into_response())
}

async fn cancel(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
    Body(request): Body<holdfast_api::session::Cancel>,
) -> Result<Response, Failure> {
    Ok(
        match hosted.host.cancel(&selected.selector, request).await? {
            Cancelled::Requested => {
                (StatusCode::ACCEPTED, Json(serde_json::json!({}))).into_response()
            }
            Cancelled::AlreadyEnded => {
                Json(serde_json::json!({ "alreadyEnded": true })).into_response()
            }
        },
    )
}

async fn compact(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
) -> Result<Response, Failure> {
    let started = hosted.host.compact(&selected.selector).await?;
    Ok((StatusCode::ACCEPTED, Json(started)).into_response())
}

async fn rewind(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
    Body(request): Body<holdfast_api::history::Rewind>,
) -> Result<Response, Failure> {
    let rewound = hosted.host.rewind(&selected.selector, request).await?;
    Ok((StatusCode::ACCEPTED, Json(rewound)).into_response())
}

async fn fork(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
) -> Result<Response, Failure> {
    let created = hosted.host.fork(&selected.selector).await?;
    Ok((StatusCode::CREATED, Json(created)).into_response())
}

async fn pending_prompts(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
) -> Reply<Vec<holdfast_api::session::PendingPrompt>> {
    Ok(Json(hosted.host.pending_prompts(&selected.selector).await?))
}

async fn approve(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
    Body(request): Body<holdfast_api::session::Approve>,
) -> Result<StatusCode, Failure> {
    hosted.host.approve(&selected.selector, request).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn transcript_page(
    State(hosted): State<Hosted>,
    selected: Selected<PageQuery>,
) -> Reply<holdfast_api::transcript::TranscriptPage> {
    let page = hosted
        .host
        .transcript_page(&selected.selector, &selected.query);
    Ok(Json(page.await?))
}

async fn transcript_snapshot(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
) -> Reply<holdfast_api::transcript::TranscriptSnapshot> {
    let snapshot = hosted.host.transcript_snapshot(&selected.selector);
    Ok(Json(snapshot.await?))
}

async fn diff(
    State(hosted): State<Hosted>,
    selected: Selected<input::AttemptQuery>,
) -> Reply<holdfast_api::transcript::DiffReply> {
    let diff = hosted
        .host
        .diff(&selected.selector, &selected.query.attempt);
    Ok(Json(diff.await?))
}

async fn output(
    State(hosted): State<Hosted>,
    selected: Selected<input::OutputQuery>,
) -> Reply<holdfast_api::transcript::OutputPage> {
    let output = hosted.host.output(
        &selected.selector,
        &selected.query.attempt,
        selected.query.offset,
    );
    Ok(Json(output.await?))
}

async fn jobs(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
) -> Reply<Vec<holdfast_api::session::Job>> {
    Ok(Json(hosted.host.jobs(&selected.selector).await?))
}

async fn background_job(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
    Body(request): Body<holdfast_api::session::BackgroundJob>,
) -> Reply<holdfast_api::session::Job> {
    let job = hosted.host.background_job(&selected.selector, request);
    Ok(Json(job.await?))
}

async fn cancel_job(
    State(hosted): State<Hosted>,
    selected: Selected<SessionQuery>,
    Body(request): Body<holdfast_api::session::CancelJob>,
) -> Result<Response, Failure> {
    hosted.host.cancel_job(&selected.selector, request).await?;
    Ok((StatusCode::ACCEPTED, Json(serde_json::json!({}))).into_response())
}
