//! Opening, creating and closing sessions.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_api::ApiError;
use holdfast_api::host::Selector;
use holdfast_api::session::{CreateSession, CreatedSession, session_path};
use holdfast_domain::transcript::record::{Record, SessionCreated};
use holdfast_journal::JournalError;
use tokio::sync::OnceCell;

use super::{Host, list};
use crate::actor::message::Command;
use crate::actor::{Actor, SessionHandle};
use crate::config::Mode;
use crate::store::{Store, api_error};

/// Tells a session to end, and waits until it has. With `keep_jobs` what runs without a turn goes
/// on under its supervisor.
pub(super) async fn close_session(handle: &SessionHandle, keep_jobs: bool) {
    // A session that is closed already is what was wanted.
    let _ = handle
        .ask(|reply| Command::Close { keep_jobs, reply })
        .await;
}

impl Host {
    /// The session that a request means, opened when it is not.
    pub(super) async fn select(&self, selector: &Selector) -> Result<SessionHandle, ApiError> {
        let id = self.selected_id(selector)?;
        self.session(&id).await
    }

    /// TR-41: which session a request means; what it asserts must be true.
    pub(super) fn selected_id(&self, selector: &Selector) -> Result<String, ApiError> {
        let current = self.shared.hub.current();
        let id = match &selector.session {
            Some(id) => id
                .strip_prefix("session-id:")
                .unwrap_or(id.as_str())
                .to_owned(),
            None => current,
        };
        let mismatch = match (&selector.expected_id, &selector.expected_path) {
            (Some(expected), _) => *expected != id,
            (None, Some(expected)) => *expected != session_path(&id),
            (None, None) => false,
        };
        if mismatch {
            return Err(ApiError::conflict(
                "session_mismatch",
                "another session would have answered than the one that you expect; nothing was \
                 done; refresh and choose the session",
            ));
        }
        if id.is_empty() {
            return Err(ApiError::conflict(
                "no_session",
                "no session is current; nothing was done; create one or resume one",
            ));
        }
        if !list::is_session_id(&id) {
            return Err(unknown_session());
        }
        Ok(id)
    }

    /// The open session of that id, opened when it is not. While one is opened, the others answer.
    pub(super) async fn session(&self, id: &str) -> Result<SessionHandle, ApiError> {
        if !list::is_session_id(id) {
            return Err(unknown_session());
        }
        let place = {
            let mut sessions = self.sessions.lock().await;
            if self.ended.load(std::sync::atomic::Ordering::SeqCst) {
                // Opened now, it would never be given back.
                return Err(ApiError::conflict(
                    "session_closed",
                    "the program is ending and gives its sessions back; nothing was changed; start \
                     it again",
                ));
            }
            // A session that ended by itself is opened again.
            if sessions
                .get(id)
                .is_some_and(|place| place.get().is_some_and(SessionHandle::is_gone))
            {
                sessions.remove(id);
            }
            Arc::clone(sessions.entry(id.to_owned()).or_default())
        };
        let opened = place.get_or_try_init(|| self.open(id)).await.cloned();
        if opened.is_err() {
            let mut sessions = self.sessions.lock().await;
            // Others may wait at the same place, and one of them may succeed.
            if sessions
                .get(id)
                .is_some_and(|found| Arc::ptr_eq(found, &place) && !found.initialized())
            {
                sessions.remove(id);
            }
        }
        opened
    }

    async fn open(&self, id: &str) -> Result<SessionHandle, ApiError> {
        let shared = Arc::clone(&self.shared);
        let folder = self.shared.sessions_folder().join(id);
        let session_id = id.to_owned();
        let opened = blocking(move || {
            if !folder.join("log.jsonl").is_file() {
                return Err(JournalError::NotFound);
            }
            // The task runs inside the runtime, which the log's writer needs.
            Store::open(
                Arc::clone(&shared.storage),
                &folder,
                &session_id,
                &shared.holder,
            )
        })
        .await?;
        let (store, condition) = opened.map_err(|error| match error {
            JournalError::NotFound => unknown_session(),
            other => api_error(&other),
        })?;
        Ok(Actor::spawn(
            Arc::clone(&self.shared),
            id.to_owned(),
            store,
            condition,
        ))
    }

    pub(super) async fn create(&self, request: CreateSession) -> Result<CreatedSession, ApiError> {
        let default = self.shared.workspace.as_ref();
        let given = request
            .workspace
            .or_else(|| default.map(|path| path.to_string_lossy().into_owned()))
            .ok_or_else(|| {
                ApiError::bad_request(
                    "workspace_missing",
                    "no workspace was named and this host has no default; no session was created; \
                     send the absolute path of a folder",
                )
            })?;
        let workspace = checked_workspace(&given, &self.shared.data)?;
        let mode = match request.mode.as_deref() {
            None => self.shared.config.agent.mode,
            Some(word) => Mode::parse(word).ok_or_else(|| {
                ApiError::bad_request(
                    "mode_unknown",
                    format!(
                        "the mode {word:?} is not known; no session was created; use ask, edits, \
                         full or read-only"
                    ),
                )
            })?,
        };
        let model = request
            .model
            .unwrap_or_else(|| self.shared.config.default_model().to_owned());
        if !model.contains('/') {
            return Err(ApiError::bad_request(
                "model_unknown",
                format!(
                    "the model {model:?} is not of the form provider/model; no session was created"
                ),
            ));
        }
        let id = self.shared.source.id();
        let header = SessionCreated {
            session_id: id.clone(),
            workspace: workspace.to_string_lossy().into_owned(),
            title: request
                .title
                .unwrap_or_default()
                .chars()
                .take(200)
                .collect(),
            model,
            mode: mode.as_str().to_owned(),
            writes: Record::KINDS
                .iter()
                .map(|kind| (*kind).to_owned())
                .collect(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let shared = Arc::clone(&self.shared);
        let folder = self.shared.sessions_folder().join(&id);
        let session_id = id.clone();
        let created = blocking(move || {
            Store::create(
                Arc::clone(&shared.storage),
                &folder,
                &session_id,
                &shared.holder,
                shared.source.now(),
                header.into(),
            )
        })
        .await?;
        let store = created.map_err(|error| {
            // Nothing is in it; a list would show it as a session that can't be read.
            let _ = std::fs::remove_dir_all(self.shared.sessions_folder().join(&id));
            api_error(&error)
        })?;
        let condition = crate::store::Condition::default();
        let handle = Actor::spawn(Arc::clone(&self.shared), id.clone(), store, condition);
        self.sessions.lock().await.insert(
            id.clone(),
            Arc::new(OnceCell::new_with(Some(handle.clone()))),
        );
        // The actor's first answer comes after its first state, so that the list has it.
        handle.ask(Command::Status).await?;
        self.shared.hub.make_current(&id);
        Ok(CreatedSession {
            session_path: session_path(&id),
            session_id: id,
        })
    }

    /// To the trash: the folder is moved, nothing is erased.
    pub(super) async fn trash(&self, id: &str) -> Result<(), ApiError> {
        let handle = self.session(id).await?;
        let status = handle.ask(Command::Status).await?;
        if status.running || status.background_jobs > 0 {
            return Err(ApiError::conflict(
                "session_busy",
                "something of this session still runs; it was not moved; stop it first",
            ));
        }
        self.sessions.lock().await.remove(id);
        close_session(&handle, false).await;
        let trash = self.shared.data.join("trash");
        let target = trash.join(format!("{id}-{}", self.shared.source.now()));
        let moved = holdfast_files::create_private_folder(&trash)
            .and_then(|()| std::fs::rename(self.shared.sessions_folder().join(id), &target))
            .and_then(|()| holdfast_files::sync_folder(&trash));
        moved.map_err(|error| {
            ApiError::storage(
                "trash_failed",
                format!("the session could not be moved to the trash ({error}); it is intact"),
            )
        })
    }
}

pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| {
        ApiError::internal(
            "internal",
            "the session could not be opened because of a defect; what was recorded is intact",
        )
    })
}

pub(super) fn unknown_session() -> ApiError {
    ApiError::not_found(
        "session_not_found",
        "there is no such session; nothing was done; look at the list of sessions",
    )
}

/// A workspace is a folder that exists, given by its absolute path, and not the program's own data.
fn checked_workspace(path: &str, data: &Path) -> Result<PathBuf, ApiError> {
    let refuse = |why: &str| {
        ApiError::bad_request(
            "workspace_invalid",
            format!("the workspace {path:?} {why}; no session was created; choose another folder"),
        )
    };
    let given = Path::new(path);
    if !given.is_absolute() {
        return Err(refuse("is not an absolute path"));
    }
    let workspace = given
        .canonicalize()
        .map_err(|_| refuse("does not exist or can't be read"))?;
    if !workspace.is_dir() {
        return Err(refuse("is not a folder"));
    }
    if workspace.starts_with(data) {
        return Err(refuse("is inside Holdfast's own data"));
    }
    Ok(workspace)
}
