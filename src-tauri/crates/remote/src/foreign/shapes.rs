//! What such a host tells, read into our shapes: pure functions, each on one reply.
//!
//! Guarantee: a member that is missing or of another type makes the reply invalid when something
//! rests on it, and is shown as not known when nothing does.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_api::ApiError;
use holdfast_api::inbox::{Disposition, Enqueued, InboxItem, InboxView, Intent};
use holdfast_api::recovery::ToolRecoverySnapshot;
use holdfast_api::session::{
    Approval, PendingPrompt, RuntimeStateRow, RuntimeStates, SessionRow, SessionState,
    SessionsPage, SessionsQuery, Status, session_path,
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

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or_default().to_owned()
}

fn rows(value: &Value) -> Result<&[Value], RemoteError> {
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

/// Its questions count from 1 in each process and each time that a session is made current: only
/// with their turn do they have a name that means one question for ever.
pub(crate) fn prompt_id(turn_id: &str, id: &str) -> String {
    format!("{turn_id}/{id}")
}

/// One question, and what it is called there.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Asked {
    pub(super) prompt: PendingPrompt,
    /// Its id there.
    pub(super) id: String,
    /// It can be answered with yes or no.
    pub(super) answerable: bool,
}

/// The turns that wait for a person in a session of that status.
pub(super) fn turns(status: &Value) -> BTreeSet<String> {
    let state = &status["runtimeState"];
    let waiting = state["pendingInteractions"]
        .as_array()
        .into_iter()
        .flatten();
    let mut turns: BTreeSet<String> = waiting.map(|one| text(one, "turnId")).collect();
    if state["pendingPrompt"] == true {
        turns.insert(text(state, "turnId"));
    }
    turns.remove("");
    turns
}

/// The questions of these turns.
pub(super) fn asked(told: &Value, turns: &BTreeSet<String>) -> Result<Vec<Asked>, RemoteError> {
    let questions = rows(told)?.iter();
    let own = questions.filter(|question| turns.contains(&text(question, "turnId")));
    own.map(|question| {
        let (id, turn_id) = (text(question, "promptId"), text(question, "turnId"));
        let approval = &question["approval"];
        let answerable = approval.is_object();
        if id.is_empty() {
            return Err(garbled("a question has no id"));
        }
        let name = prompt_id(&turn_id, &id);
        let offered: &[&str] = if answerable {
            &["once", "session"]
        } else {
            &[]
        };
        Ok(Asked {
            prompt: PendingPrompt {
                prompt_id: name.clone(),
                kind: "approval".to_owned(),
                turn_id,
                approval: Approval {
                    id: name,
                    tool: if answerable {
                        text(approval, "tool")
                    } else {
                        text(question, "promptKind")
                    },
                    subject: text(approval, "subject"),
                    diff: None,
                    generation: approval["generation"].as_u64().unwrap_or_default(),
                    scopes: offered.iter().map(|scope| (*scope).to_owned()).collect(),
                    call_id: String::new(),
                    reason: if answerable {
                        text(approval, "reason")
                    } else {
                        "This question can be answered at the host itself only.".to_owned()
                    },
                    earlier: None,
                },
            },
            id,
            answerable,
        })
    })
    .collect()
}

/// The queue; `whole` has the whole texts, by item, since the list has their beginnings only.
pub(super) fn inbox(
    told: &Value,
    whole: &BTreeMap<String, String>,
) -> Result<InboxView, RemoteError> {
    let items = rows(&told["items"])?.iter().filter_map(|item| {
        let item_id = text(item, "id");
        Some((item, whole.get(&item_id)?.clone(), item_id))
    });
    let items: Vec<InboxItem> = items
        .zip(1..)
        .map(|((item, input, item_id), position)| InboxItem {
            item_id,
            input,
            intent: if item["intent"] == "steer" {
                Intent::Steer
            } else {
                Intent::Followup
            },
            position,
            queued_at: text(item, "createdAt")
                .parse::<Moment>()
                .map_or(0, |moment| moment.0),
            idempotency_key: text(item, "idempotencyKey"),
            recovered: false,
        })
        .collect();
    let paused = told["paused"]
        .as_bool()
        .ok_or(garbled("its paused is missing"))?;
    let recovered = told["recovered"] == true;
    Ok(InboxView {
        revision: told["revision"]
            .as_u64()
            .ok_or(garbled("it has no revision"))?,
        paused,
        recovered,
        reason: if paused && recovered {
            "host_restarted".to_owned()
        } else {
            String::new()
        },
        items,
        capacity: told["capacity"]["maxItems"].as_u64().unwrap_or_default(),
    })
}

/// Ids of the items that wait.
pub(super) fn waiting(told: &Value) -> Result<Vec<String>, RemoteError> {
    let items = rows(&told["items"])?.iter();
    Ok(items.map(|item| text(item, "id")).collect())
}

/// What became of a message for its queue.
pub(super) fn enqueued(told: &Value) -> Result<Enqueued, RemoteError> {
    let item_id = text(told, "itemId");
    if item_id.is_empty() {
        return Err(garbled("it names no item"));
    }
    Ok(Enqueued {
        item_id,
        disposition: match told["disposition"].as_str() {
            Some("queued_followup") => Disposition::QueuedFollowup,
            Some("idempotent_hit") => Disposition::IdempotentHit,
            // Into the turn that runs, or a turn of its own.
            Some("steer_accepted" | "started") => Disposition::Started,
            _ => return Err(garbled("it does not say what became of the message")),
        },
        position: told["position"].as_u64().unwrap_or_default(),
    })
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

/// Milliseconds since the Unix epoch, read from RFC 3339.
#[derive(Debug, PartialEq)]
struct Moment(u64);

impl std::str::FromStr for Moment {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let part = |range: std::ops::Range<usize>| {
            text.get(range)
                .and_then(|part| part.parse::<i64>().ok())
                .ok_or(())
        };
        let (year, month, day) = (part(0..4)?, part(5..7)?, part(8..10)?);
        let (hour, minute, second) = (part(11..13)?, part(14..16)?, part(17..19)?);
        let rest = text.get(19..).ok_or(())?;
        let zone = rest.find(['Z', 'z', '+', '-']).ok_or(())?;
        let fraction = rest.get(..zone).ok_or(())?.trim_start_matches('.');
        let thousandths = format!("{fraction:0<3}")
            .get(..3)
            .and_then(|digits| digits.parse::<i64>().ok());
        let sign = if rest.get(zone..=zone) == Some("-") {
            -1
        } else {
            1
        };
        let ahead = match rest.get(zone + 1..).unwrap_or_default().split_once(':') {
            Some((hours, minutes)) => {
                let number = |text: &str| text.parse::<i64>().map_err(|_| ());
                sign * (number(hours)? * 60 + number(minutes)?)
            }
            None => 0,
        };
        // Days since 1970-01-01 in the Gregorian calendar, with years that begin in March.
        let (years, months) = if month > 2 {
            (year, month - 3)
        } else {
            (year - 1, month + 9)
        };
        let days =
            years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day
                - 719_469;
        let minutes = (days * 24 + hour) * 60 + minute - ahead;
        let moment = (minutes * 60 + second) * 1000 + thousandths.ok_or(())?;
        u64::try_from(moment).map(Self).map_err(|_| ())
    }
}
