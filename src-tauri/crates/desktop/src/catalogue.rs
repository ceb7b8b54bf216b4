//! What is known of all sessions of a host: the rows of the project tree.
//!
//! Guarantee: filled from the host's list alone; it holds titles and folders, while states of open
//! sessions come from the projection (RS-21).

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_api::desktop::ProjectView;
use holdfast_api::session::{SessionRow, SessionsQuery};
use holdfast_api::{ApiError, SessionHost};

use crate::remembered::Remembered;

/// Rows of one page.
const PAGE: usize = 200;

/// By the session's id.
type Rows = BTreeMap<String, SessionRow>;

/// The rows.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    rows: Mutex<Rows>,
}

async fn page(
    host: &dyn SessionHost,
    cursor: Option<String>,
) -> Result<(Rows, Option<String>), ApiError> {
    let page = host
        .list_sessions(&SessionsQuery {
            query: None,
            cursor,
            limit: Some(PAGE),
        })
        .await?;
    let rows = page
        .items
        .into_iter()
        .map(|row| (row.session_id.clone(), row))
        .collect();
    Ok((rows, page.next))
}

impl Catalogue {
    /// Reads the whole list: sessions that are gone are dropped.
    pub(crate) async fn read_all(&self, host: &dyn SessionHost) -> Result<(), ApiError> {
        let (mut rows, mut cursor) = page(host, None).await?;
        while cursor.is_some() {
            let (more, next) = page(host, cursor).await?;
            rows.extend(more);
            cursor = next;
        }
        *self.lock() = rows;
        Ok(())
    }

    /// Reads the latest sessions: whatever has just changed is among them.
    pub(crate) async fn read_latest(&self, host: &dyn SessionHost) -> Result<(), ApiError> {
        let (rows, next) = page(host, None).await?;
        let mut held = self.lock();
        if next.is_none() {
            *held = rows;
        } else {
            held.extend(rows);
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Folder of a session.
    pub(crate) fn workspace(&self, session_id: &str) -> Option<String> {
        self.lock().get(session_id).map(|row| row.workspace.clone())
    }

    /// All rows, latest first.
    pub(crate) fn rows(&self) -> Vec<SessionRow> {
        let mut rows: Vec<SessionRow> = self.lock().values().cloned().collect();
        rows.sort_by(|a, b| (b.updated_at, &b.session_id).cmp(&(a.updated_at, &a.session_id)));
        rows
    }

    /// Projects: those that a person added, in that order, then folders that have sessions.
    pub(crate) fn projects(&self, remembered: &Remembered) -> Vec<ProjectView> {
        let is_there = |folder: &str| std::path::Path::new(folder).is_dir();
        self.grouped(&remembered.projects, &remembered.hidden, "", is_there)
    }

    /// Another machine's projects: its folders that have sessions.
    pub(crate) fn remote_projects(&self, host_id: &str) -> Vec<ProjectView> {
        self.grouped(&[], &[], host_id, |_| true)
    }

    fn grouped(
        &self,
        added: &[String],
        hidden: &[String],
        host_id: &str,
        is_there: impl Fn(&str) -> bool,
    ) -> Vec<ProjectView> {
        let rows = self.rows();
        let mut folders = added.to_vec();
        for row in &rows {
            let known = folders.contains(&row.workspace)
                || hidden.contains(&row.workspace)
                || row.workspace.is_empty();
            if !known {
                folders.push(row.workspace.clone());
            }
        }
        folders
            .into_iter()
            .map(|folder| ProjectView {
                host_id: host_id.to_owned(),
                name: name_of(&folder),
                missing: !is_there(&folder),
                sessions: rows
                    .iter()
                    .filter(|row| row.workspace == folder)
                    .cloned()
                    .collect(),
                workspace_root: folder,
            })
            .collect()
    }
}

/// The last part of a path, whichever system it is of.
fn name_of(folder: &str) -> String {
    let last = folder
        .rsplit(['/', '\\'])
        .find(|part| !part.is_empty())
        .unwrap_or(folder);
    last.to_owned()
}
