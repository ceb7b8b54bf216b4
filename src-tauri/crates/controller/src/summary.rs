//! What lists show of a session that is not open: a summary of its fold, kept in the derived index.

use holdfast_domain::recovery::barrier::InFlight;
use holdfast_domain::transcript::session::Session;
use serde::{Deserialize, Serialize};

use crate::actor::views;

/// The summary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(crate) title: String,
    pub(crate) workspace: String,
    pub(crate) updated_at: u64,
    pub(crate) turn_status: String,
    pub(crate) pending_prompt: bool,
    pub(crate) unresolved: u64,
    pub(crate) archived: bool,
    /// Attempts without a settled end, or with processes that live on: a host that starts looks
    /// at them.
    pub(crate) open: u64,
}

impl Summary {
    /// The summary of a fold. Without a host, nothing is in flight.
    pub(crate) fn of(session: &Session, in_flight: &InFlight) -> Self {
        let turn = session.turn.as_ref();
        Self {
            title: views::title(session),
            workspace: session.header.workspace.clone(),
            updated_at: session.updated_at,
            turn_status: match turn {
                None => String::new(),
                Some(turn) => turn
                    .ended
                    .as_ref()
                    .map_or_else(|| "interrupted".to_owned(), |ended| ended.status.clone()),
            },
            pending_prompt: session.prompt.is_some(),
            unresolved: session.unresolved(in_flight),
            archived: session.archived,
            open: session
                .attempts()
                .filter(|attempt| !attempt.state.is_final() || attempt.job)
                .count() as u64,
        }
    }
}
