//! A copy of a session under an id of its own.
//!
//! Guarantees: the original is only read, between two turns; the copy is there whole or not at all;
//! receipts keep the session and the key that they were made with, and open ones block in the copy
//! too (TR-06). Nothing of the original's commands is watched, fenced or removed by the copy.

use holdfast_api::ApiError;
use holdfast_api::host::Selector;
use holdfast_api::session::{CreatedSession, PatchSession, session_path};
use holdfast_journal::Lease;

use super::Host;
use super::open::blocking;
use crate::actor::message::Command;
use crate::store::api_error;

impl Host {
    pub(super) async fn copied(&self, selector: &Selector) -> Result<CreatedSession, ApiError> {
        let original = self.select(selector).await?;
        let title = original.ask(Command::Status).await?.title;
        let to_id = self.shared.source.id();
        let folder = self.shared.sessions_folder().join(&to_id);
        let (shared, target) = (std::sync::Arc::clone(&self.shared), folder.clone());
        let to = blocking(move || Lease::create(&target, &shared.holder))
            .await?
            .map_err(|error| api_error(&error))?;
        let id = to_id.clone();
        let lease = original
            .ask(|reply| Command::Copy {
                to,
                to_id: id,
                reply,
            })
            .await
            .inspect_err(|_| {
                // Nothing is in it; a list would show it as a session that can't be read.
                let _ = std::fs::remove_dir_all(&folder);
            })?;
        // It is opened like any other session, which takes a lease of its own.
        drop(lease);
        let copy = self.session(&to_id).await?;
        let patch = PatchSession {
            title: Some(format!("{title} (copy)")),
            ..PatchSession::default()
        };
        copy.ask(|reply| Command::Patch(patch, reply)).await?;
        self.shared.hub.make_current(&to_id);
        Ok(CreatedSession {
            session_path: session_path(&to_id),
            session_id: to_id,
        })
    }
}
