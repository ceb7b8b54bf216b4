//! Reading a session without its lock: for people and scripts beside the host that holds it.

use holdfast_api::ApiError;
use holdfast_api::transcript::TranscriptItem;
use holdfast_domain::recovery::barrier::InFlight;

use super::{Host, list};
use crate::actor::views;
use crate::store::{api_error, fold};

impl Host {
    /// The whole transcript of a session as its log tells it now, oldest first. Nothing is locked,
    /// changed or repaired; what another process runs is not known here and shown as unknown.
    ///
    /// # Errors
    /// `session_not_found`, or why the log can't be read.
    pub fn read_transcript(&self, session_id: &str) -> Result<Vec<TranscriptItem>, ApiError> {
        if !list::is_session_id(session_id) {
            return Err(super::open::unknown_session());
        }
        let folder = self.shared.sessions_folder().join(session_id);
        let read =
            holdfast_journal::read_only(&folder, session_id).map_err(|error| api_error(&error))?;
        let session = fold(&read.entries);
        let nothing = InFlight::new();
        Ok(views::items(
            &session,
            &nothing,
            0..session.items.len(),
            |call| {
                let read_only = !self.shared.is_mutating(&call.proposed);
                views::tool_view(&session, call, &nothing, read_only)
            },
        ))
    }
}
