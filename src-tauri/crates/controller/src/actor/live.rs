//! Output of running calls while it comes: told as it comes, bounded, and its end kept for those who
//! look later.
//!
//! Guarantee: what is kept is the end of what was told, so a snapshot and the frames behind it fit
//! together. It is provisional: the whole output is in `GET /output`.

use std::sync::atomic::{AtomicUsize, Ordering};

use holdfast_api::event::Event;
use holdfast_api::transcript::LiveOutput;
use holdfast_tools::Progress;
use tokio::sync::mpsc;

use super::Actor;
use super::message::Message;

/// Output of one call that is told as it comes, in bytes.
const PROGRESS_LIMIT: usize = 256 * 1024;
/// Bytes of it that are kept for those who look later. A reattached command is told from this far
/// before its present end on.
pub(super) const TAIL: usize = 64 * 1024;

impl Actor {
    pub(super) fn progress(&mut self, attempt_id: &str, text: String) {
        // What comes behind the result is in it, or a job's.
        let open = self
            .store
            .session
            .attempt(attempt_id)
            .is_some_and(|attempt| attempt.result.is_none());
        if !open || !self.in_flight().contains(attempt_id) {
            return;
        }
        let tail = self.outputs.entry(attempt_id.to_owned()).or_default();
        tail.push_str(&text);
        if tail.len() > TAIL {
            let from = tail.ceil_char_boundary(tail.len() - TAIL);
            tail.drain(..from);
        }
        let Some(attempt) = self.store.session.attempt(attempt_id) else {
            return;
        };
        self.emit(
            &attempt.identity.turn_id,
            None,
            Event::ToolProgress {
                id: attempt.identity.call_id.clone(),
                attempt_id: attempt_id.to_owned(),
                text,
            },
        );
    }

    /// What the running calls have printed so far.
    pub(super) fn live_outputs(&self) -> Vec<LiveOutput> {
        let in_flight = self.in_flight();
        self.outputs
            .iter()
            .filter(|(attempt_id, _)| in_flight.contains(*attempt_id))
            .filter_map(|(attempt_id, text)| {
                let attempt = self.store.session.attempt(attempt_id)?;
                Some(LiveOutput {
                    id: attempt.identity.call_id.clone(),
                    attempt_id: attempt_id.clone(),
                    text: text.clone(),
                })
            })
            .collect()
    }

    /// Forgets the output of what is not in flight any more.
    pub(super) fn forget_outputs(&mut self) {
        if !self.outputs.is_empty() {
            let in_flight = self.in_flight();
            self.outputs.retain(|id, _| in_flight.contains(id));
        }
    }
}

/// Tells the actor of a call's output, up to the limit.
pub(super) fn progress_to(outbox: mpsc::UnboundedSender<Message>, attempt_id: &str) -> Progress {
    let attempt_id = attempt_id.to_owned();
    let told = AtomicUsize::new(0);
    Progress::to(move |text: &str| {
        let before = told.fetch_add(text.len(), Ordering::Relaxed);
        if before < PROGRESS_LIMIT && !text.is_empty() {
            let _ = outbox.send(Message::Progress {
                attempt_id: attempt_id.clone(),
                text: text.to_owned(),
            });
        }
    })
}
