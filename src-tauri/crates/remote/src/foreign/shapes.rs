//! What such a host tells, read into our shapes: pure functions, each on one reply.
//!
//! Guarantee: a member that is missing or of another type makes the reply invalid when something
//! rests on it, and is shown as not known when nothing does.

use holdfast_api::ApiError;
use holdfast_api::recovery::ToolRecoverySnapshot;
use holdfast_api::session::{
    RuntimeStateRow, RuntimeStates, SessionRow, SessionState, SessionsPage, SessionsQuery, Status,
    session_path,
};
use holdfast_domain::runtime::observed::snapshot_of;
use serde_json::{Value, json};

use crate::client::decoded;
use crate::error::RemoteError;

pub(super) fn garbled(what: &str) -> RemoteError {
    RemoteError::Garbled(what.to_owned())
}

pub(super) fn of_another_session() -> RemoteError {
    garbled("it is about another session")
}

pub(super) fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or_default().to_owned()
}

pub(super) fn rows(value: &Value) -> Result<&[Value], RemoteError> {
    match value {
        // An empty list may be told as none.
        Value::Null => Ok(&[]),
        value => value
            .as_array()
            .map(Vec::as_slice)
            .ok_or(garbled("it is no list")),
    }
}

/// Its errors are sentences. Those that a client acts on get the code that a host of ours gives.
pub(super) fn recoded(error: RemoteError) -> RemoteError {
    const KNOWN: &[(u16, &str, u16, &str, &str)] = &[
        (
            409,
            "session is busy",
            409,
            "session_busy",
            "a turn runs; nothing was stored; queue the message instead",
        ),
        (
            409,
            "cannot switch session while",
            409,
            "session_busy",
            "the host works on another session, and can have one current only; nothing was done; try \
          again when it is done",
        ),
        (
            409,
            "active session changed",
            409,
            "session_mismatch",
            "the host works on another session now; nothing was done; make this one the current one \
          and try again",
        ),
        (
            409,
            "transcript session is not bound",
            409,
            "session_mismatch",
            "the host works on another session now, and tells nothing of this one; make this one the \
          current one and try again",
        ),
        (
            409,
            "idempotency key was already used",
            409,
            "idempotency_conflict",
            "this key has another message already; nothing was stored; send this one with a key of \
          its own",
        ),
        (
            409,
            "submission identity conflicts",
            409,
            "idempotency_conflict",
            "this key has another message already; nothing was stored; send this one with a key of \
          its own",
        ),
        (
            503,
            "prompt belongs to a stale runtime",
            409,
            "prompt_stale",
            "the question was asked anew meanwhile; nothing was answered; look at it again",
        ),
        (
            400,
            "unknown session",
            404,
            "session_unknown",
            "the host knows no such session; nothing was done",
        ),
    ];
    let RemoteError::Refused(refused) = &error else {
        return error;
    };
    let known = KNOWN.iter().find(|(status, words, ..)| {
        refused.code == "host_refused"
            && refused.status == *status
            && refused.message.contains(words)
    });
    match known {
        Some((_, _, status, code, message)) => {
            RemoteError::Refused(Box::new(ApiError::new(*status, code, *message)))
        }
        None => error,
    }
}

/// The folder in which it works, which its permissions name. Its status names another one.
pub(super) fn workspace(permission: &Value) -> String {
    text(permission, "workspaceRoot")
}

/// `title` and `workspace` are told elsewhere.
pub(super) fn status(
    told: &Value,
    title: String,
    workspace: String,
) -> Result<Status, RemoteError> {
    let flag = |member: &str| told[member].as_bool();
    let running = flag("running").ok_or(garbled("its running is missing"))?;
    let session_id = text(told, "sessionId");
    let runtime_state = match &told["runtimeState"] {
        Value::Null => None,
        state => Some(snapshot_of(state).map_err(|error| garbled(&error.to_string()))?),
    };
    let stored = told["runtimeState"]["persistenceStatus"].as_str();
    Ok(Status {
        session_path: session_path(&session_id),
        session_id,
        title,
        workspace,
        model: text(told, "label"),
        mode: text(told, "toolApprovalMode"),
        running,
        pending_prompt: flag("pendingPrompt").unwrap_or_default(),
        background_jobs: told["backgroundJobs"].as_u64().unwrap_or_default(),
        cancel_requested: flag("cancelRequested").unwrap_or_default(),
        cancellable: flag("cancellable").unwrap_or_default(),
        storage_failed: !matches!(stored, None | Some("" | "ready" | "pending")),
        runtime_state,
        last_error: None,
    })
}

/// All or nothing: the reducer reads row by row, a caller of this gets sound ones only.
pub(super) fn states(told: &Value) -> Result<RuntimeStates, RemoteError> {
    let sessions = rows(&told["sessions"])?.iter().map(|row| {
        Ok(RuntimeStateRow {
            session_path: text(row, "sessionPath"),
            current: row["current"] == true,
            state: snapshot_of(&row["state"]).map_err(|error| garbled(&error.to_string()))?,
        })
    });
    let mut sessions = sessions.collect::<Result<Vec<_>, RemoteError>>()?;
    sessions.sort_by(|a, b| a.session_path.cmp(&b.session_path));
    Ok(RuntimeStates {
        schema_version: 1,
        epoch: text(told, "epoch"),
        revision: told["revision"]
            .as_u64()
            .ok_or(garbled("it has no revision"))?,
        sessions,
    })
}

/// The title of that session in the list.
pub(super) fn title(list: &Value, session_id: &str) -> String {
    let row = list
        .as_array()
        .and_then(|rows| rows.iter().find(|row| row["sessionId"] == session_id));
    row.map(title_of).unwrap_or_default()
}

fn title_of(row: &Value) -> String {
    let title = text(row, "title");
    if title.is_empty() {
        text(row, "preview")
    } else {
        title
    }
}

/// Its list has no pages; they are made here. The cursor is the number of rows before.
pub(super) fn sessions(
    told: &Value,
    open: &RuntimeStates,
    workspace: &str,
    query: &SessionsQuery,
) -> Result<SessionsPage, RemoteError> {
    let list = told
        .as_array()
        .ok_or(garbled("it is no list of sessions"))?;
    let mut items: Vec<SessionRow> = list
        .iter()
        .filter(|row| row["sessionId"].as_str().is_some_and(|id| !id.is_empty()))
        .map(|row| session(row, open, workspace))
        .filter(|row| is_wanted(row, query.query.as_deref().unwrap_or_default()))
        .collect();
    items.sort_by_key(|row| std::cmp::Reverse(row.updated_at));
    let from = query.cursor.as_ref().map_or(Ok(0), |cursor| cursor.parse());
    let from: usize = from.map_err(|_| {
        RemoteError::Refused(Box::new(ApiError::bad_request(
            "cursor_invalid",
            "this cursor is not one of a page of this list; begin with the first page",
        )))
    })?;
    let to = from
        .saturating_add(query.limit.unwrap_or(50))
        .min(items.len());
    let next = (to < items.len()).then(|| to.to_string());
    let items = items.into_iter().take(to).skip(from).collect();
    Ok(SessionsPage { items, next })
}

fn is_wanted(row: &SessionRow, words: &str) -> bool {
    let place = format!("{} {}", row.title, row.workspace).to_lowercase();
    words
        .split_whitespace()
        .all(|word| place.contains(&word.to_lowercase()))
}

fn session(row: &Value, open: &RuntimeStates, workspace: &str) -> SessionRow {
    let session_id = text(row, "sessionId");
    let path = session_path(&session_id);
    let found = open.sessions.iter().find(|open| open.session_path == path);
    let state = found.map(|open| &open.state);
    let word = |value: Option<Value>| {
        let word = value.as_ref().and_then(Value::as_str);
        word.map(str::to_owned)
    };
    SessionRow {
        session_id,
        session_path: path,
        title: title_of(row),
        workspace: workspace.to_owned(),
        updated_at: row["mtimeMilli"].as_u64().unwrap_or_default(),
        state: SessionState {
            open: state.is_some(),
            // A session that it has not loaded does nothing there.
            phase: word(state.map(|state| json!(state.phase))).unwrap_or("idle".to_owned()),
            turn_status: word(state.map(|state| json!(state.turn_status))).unwrap_or_default(),
            pending_prompt: state.is_some_and(|state| state.pending_prompt),
            background_jobs: state.map_or(0, |state| state.background_jobs),
            unresolved: state.map_or(0, |state| state.unresolved),
            problem: None,
        },
    }
}

/// The recovery snapshot of a host that asserted the session; it may leave its path out, and counts
/// no dismissals since it has none.
pub(super) fn recovery(
    mut told: Value,
    session_id: &str,
) -> Result<ToolRecoverySnapshot, RemoteError> {
    let path = session_path(session_id);
    match told["sessionPath"].as_str() {
        Some("") => told["sessionPath"] = json!(path),
        Some(told) if told == path => {}
        _ => return Err(of_another_session()),
    }
    if let Some(counts) = told["statistics"].as_object_mut() {
        counts.entry("dismissed").or_insert(json!(0));
    }
    decoded(told)
}
