//! The list of sessions: open ones from their committed state, others from their index or log.

use std::path::{Path, PathBuf};

use holdfast_api::ApiError;
use holdfast_api::session::{SessionRow, SessionState, SessionsPage, SessionsQuery, session_path};
use holdfast_domain::recovery::barrier::InFlight;
use holdfast_domain::runtime::snapshot::RuntimeState;

use crate::shared::Shared;
use crate::store::fold;
use crate::summary::Summary;

/// Ids of all sessions in the data folder.
pub(super) fn session_ids(sessions: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(sessions) else {
        return Vec::new();
    };
    entries
        .filter_map(Result::ok)
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| is_session_id(name))
        .collect()
}

/// 32 lower-case hex digits.
pub(super) fn is_session_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// A session's summary: from its index when that matches the log, else from the whole log.
pub(super) fn summary(folder: &Path, id: &str) -> Result<Summary, String> {
    if let Some(index) = holdfast_journal::read_index(folder, id)
        && let Ok(summary) = serde_json::from_str(index.summary.get())
    {
        return Ok(summary);
    }
    let read = holdfast_journal::read_only(folder, id).map_err(|error| error.to_string())?;
    Ok(Summary::of(&fold(&read.entries), &InFlight::new()))
}

/// Something is open: effect folders are left, or an attempt has no settled end. A host that starts
/// must look at it.
pub(super) fn needs_look(folder: &Path, id: &str) -> bool {
    let has_effects =
        std::fs::read_dir(folder.join("effects")).is_ok_and(|mut entries| entries.next().is_some());
    has_effects || summary(folder, id).is_ok_and(|summary| summary.open > 0)
}

impl Shared {
    pub(super) fn sessions_folder(&self) -> PathBuf {
        self.data.join("sessions")
    }

    /// Blocking. Latest first; a session that can't be read is in the list, with the reason.
    pub(super) fn list(
        &self,
        query: &SessionsQuery,
        open: impl Fn(&str) -> bool,
    ) -> Result<SessionsPage, ApiError> {
        let limit = query.limit.unwrap_or(50);
        if !(1..=200).contains(&limit) {
            return Err(ApiError::bad_request(
                "limit_invalid",
                "limit must be 1 to 200; nothing was read",
            ));
        }
        let cursor = match &query.cursor {
            None => None,
            Some(text) => Some(parse_cursor(text).ok_or_else(|| {
                ApiError::bad_request(
                    "cursor_invalid",
                    "the cursor is not one of this list; start from its beginning",
                )
            })?),
        };
        let sessions = self.sessions_folder();
        let mut ids: Vec<(u64, String)> = session_ids(&sessions)
            .into_iter()
            .map(|id| (modified(&sessions.join(&id)), id))
            .collect();
        ids.sort_by(|a, b| b.cmp(a));
        let wanted = query.query.as_deref().unwrap_or_default().to_lowercase();
        let mut items = Vec::new();
        let mut next = None;
        for (at, id) in ids {
            if cursor
                .as_ref()
                .is_some_and(|cursor| (at, &id) >= (cursor.0, &cursor.1))
            {
                continue;
            }
            if items.len() == limit {
                next = items
                    .last()
                    .map(|(at, row): &(u64, SessionRow)| format!("{at}-{}", row.session_id));
                break;
            }
            let Some(row) = self.row(&sessions.join(&id), &id, open(&id)) else {
                continue;
            };
            let text = format!("{} {}", row.title, row.workspace).to_lowercase();
            if text.contains(&wanted) {
                items.push((at, row));
            }
        }
        Ok(SessionsPage {
            items: items.into_iter().map(|(_, row)| row).collect(),
            next,
        })
    }

    fn row(&self, folder: &Path, id: &str, open: bool) -> Option<SessionRow> {
        let row = |title, workspace, updated_at, state| SessionRow {
            session_id: id.to_owned(),
            session_path: session_path(id),
            title,
            workspace,
            updated_at,
            state,
        };
        match summary(folder, id) {
            Ok(summary) if summary.archived => None,
            Ok(summary) => {
                let live = open.then(|| self.hub.state(id)).flatten();
                let state = live.map_or_else(|| closed_state(&summary), |state| open_state(&state));
                Some(row(
                    summary.title,
                    summary.workspace,
                    summary.updated_at,
                    state,
                ))
            }
            Err(problem) => Some(row(
                String::new(),
                String::new(),
                modified(folder),
                SessionState {
                    open,
                    phase: "idle".to_owned(),
                    turn_status: String::new(),
                    pending_prompt: false,
                    background_jobs: 0,
                    unresolved: 0,
                    problem: Some(problem),
                },
            )),
        }
    }
}

fn parse_cursor(text: &str) -> Option<(u64, String)> {
    let (at, id) = text.split_once('-')?;
    is_session_id(id).then_some(())?;
    Some((at.parse().ok()?, id.to_owned()))
}

/// Unix milliseconds of the log's last change: sorts without reading.
fn modified(folder: &Path) -> u64 {
    std::fs::metadata(folder.join("log.jsonl"))
        .and_then(|meta| meta.modified())
        .ok()
        .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok())
        .map_or(0, |passed| u64::try_from(passed.as_millis()).unwrap_or(0))
}

fn open_state(state: &RuntimeState) -> SessionState {
    let word = |value: serde_json::Result<serde_json::Value>| {
        value
            .ok()
            .and_then(|value| value.as_str().map(str::to_owned))
            .unwrap_or_default()
    };
    SessionState {
        open: true,
        phase: word(serde_json::to_value(state.phase)),
        turn_status: word(serde_json::to_value(state.turn_status)),
        pending_prompt: state.pending_prompt,
        background_jobs: state.background_jobs,
        unresolved: state.unresolved,
        problem: None,
    }
}

fn closed_state(summary: &Summary) -> SessionState {
    SessionState {
        open: false,
        phase: "idle".to_owned(),
        turn_status: summary.turn_status.clone(),
        pending_prompt: summary.pending_prompt,
        background_jobs: 0,
        unresolved: summary.unresolved,
        problem: None,
    }
}
