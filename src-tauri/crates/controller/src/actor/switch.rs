//! The stop switch of a session: reached without waiting for the actor, so that Stop takes effect
//! between a durable start and the execution (TR-05 (11)), and so that a late Stop for an earlier
//! turn does nothing (C37).

use std::sync::{Mutex, PoisonError};

use holdfast_api::session::Cancelled;
use tokio_util::sync::CancellationToken;

/// What Stop would stop now.
#[derive(Debug, Default)]
pub(crate) struct StopSwitch(Mutex<Option<(String, CancellationToken)>>);

impl StopSwitch {
    /// From now on Stop means this turn.
    pub(crate) fn arm(&self, turn_id: &str, token: CancellationToken) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((turn_id.to_owned(), token));
    }

    /// Nothing is there to be stopped.
    pub(crate) fn disarm(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Stop of a turn, or of the present one.
    pub(crate) fn stop(&self, turn_id: Option<&str>) -> Cancelled {
        let armed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match armed.as_ref() {
            Some((armed_turn, token)) if turn_id.is_none_or(|wanted| wanted == armed_turn) => {
                token.cancel();
                Cancelled::Requested
            }
            Some(_) | None => Cancelled::AlreadyEnded,
        }
    }
}
