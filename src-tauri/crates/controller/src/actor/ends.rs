//! Results: bound to their attempt, durable before they are announced (TR-08…TR-11).

use std::path::PathBuf;

use holdfast_api::event::Event;
use holdfast_domain::canonical::sha256_hex;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::ProcessEvidence;
use holdfast_domain::transcript::record::{
    AttemptChanged, LateEvidence, NotStarted, Record, ResultSource, SpillRef, ToolResult,
};
use holdfast_tools::{FullOutput, ToolOutcome};

use super::Actor;
use crate::stops::{StopPoint, pass};

impl Actor {
    pub(super) fn effects_root(&self) -> PathBuf {
        self.store.folder().join("effects")
    }

    pub(super) fn progress(&self, attempt_id: &str, text: String) {
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

    /// A tool of this host ended.
    pub(super) async fn tool_ended(
        &mut self,
        call_id: &str,
        attempt_id: &str,
        outcome: Option<ToolOutcome>,
    ) {
        pass(StopPoint::ToolEnded);
        if let Some(turn) = &mut self.running {
            turn.streaming = false;
        }
        let stored = match outcome {
            Some(outcome) => {
                self.store_outcome(attempt_id, outcome, ResultSource::Live)
                    .await
            }
            None => self.tool_panicked(attempt_id).await,
        };
        if self.still_runs(attempt_id) {
            // TR-10: its real result still goes to this attempt.
            self.reattach(attempt_id);
        }
        // Only now is it no longer in flight: an attempt is never uncertain while its result is on
        // the way into the log.
        if let Some(turn) = &mut self.running {
            turn.calls.remove(call_id);
        }
        match stored {
            Ok(seq) => {
                pass(StopPoint::ResultDurable);
                self.emit_result(call_id, seq);
            }
            Err((code, message)) => self.end_turn("failed", &code, &message).await,
        }
    }

    /// A defect of a tool says nothing about its effect.
    async fn tool_panicked(&mut self, attempt_id: &str) -> Result<Option<u64>, (String, String)> {
        let read_only = self
            .store
            .session
            .attempt(attempt_id)
            .is_some_and(|attempt| attempt.read_only);
        let change = AttemptChanged {
            attempt_id: attempt_id.to_owned(),
            state: if read_only {
                AttemptState::Cancelled
            } else {
                AttemptState::Unknown
            },
            reason: "the tool failed by a defect of its own while it ran".to_owned(),
            stragglers: Vec::new(),
        };
        self.store_one(change.into()).await
    }

    /// No result, and a supervisor that is known to live.
    fn still_runs(&self, attempt_id: &str) -> bool {
        let Some(attempt) = self.store.session.attempt(attempt_id) else {
            return false;
        };
        attempt.supervised
            && attempt.state.is_open()
            && holdfast_supervisor::look(
                &self.effects_root().join(attempt_id),
                attempt_id,
                &attempt.identity.argument_digest,
                &attempt.boot_id,
                false,
            )
            .is_ok_and(|evidence| matches!(evidence, ProcessEvidence::Running { .. }))
    }

    /// What can't be stored now is kept, and stored when storage works again.
    async fn store_one(&mut self, record: Record) -> Result<Option<u64>, (String, String)> {
        match self.commit_evidence(vec![record.clone()]).await {
            Ok(entries) => Ok(entries.first().map(|entry| entry.seq)),
            Err(error) => {
                self.unstored.push(record);
                Err((error.code().to_owned(), error.to_string()))
            }
        }
    }

    /// Makes an outcome the attempt's result, or its state. A person's resolution stays, and the
    /// result is attached to it (TR-10). Answers the place of the record.
    pub(super) async fn store_outcome(
        &mut self,
        attempt_id: &str,
        outcome: ToolOutcome,
        source: ResultSource,
    ) -> Result<Option<u64>, (String, String)> {
        let Some(attempt) = self.store.session.attempt(attempt_id) else {
            return Ok(None);
        };
        let by_person = attempt.state.is_by_person();
        let folder = self.effects_root().join(attempt_id);
        let survives = !outcome.survivors.is_empty();
        let record: Record = match outcome.state {
            AttemptState::Completed | AttemptState::Failed | AttemptState::Interrupted => {
                let result = self.result_record(attempt_id, outcome, source);
                if by_person {
                    LateEvidence { result }.into()
                } else {
                    result.into()
                }
            }
            AttemptState::NotStarted => NotStarted {
                attempt_id: attempt_id.to_owned(),
                reason: outcome.text,
            }
            .into(),
            AttemptState::Cancelled => AttemptChanged {
                attempt_id: attempt_id.to_owned(),
                state: AttemptState::Cancelled,
                reason: outcome.text,
                stragglers: Vec::new(),
            }
            .into(),
            AttemptState::Pending
            | AttemptState::Started
            | AttemptState::Running
            | AttemptState::Unknown
            | AttemptState::UserConfirmed
            | AttemptState::UserDismissed => {
                // The folder stays: it is evidence.
                let reason = if outcome.effect_summary.is_empty() {
                    outcome.text
                } else {
                    outcome.effect_summary
                };
                let change = AttemptChanged {
                    attempt_id: attempt_id.to_owned(),
                    state: AttemptState::Unknown,
                    reason,
                    stragglers: outcome.stragglers,
                };
                return self.store_one(change.into()).await;
            }
        };
        if survives {
            self.watch_survivors(attempt_id);
        }
        let seq = self.store_one(record).await?;
        if !survives {
            drop_folder(&folder);
        }
        Ok(seq)
    }

    fn result_record(
        &self,
        attempt_id: &str,
        outcome: ToolOutcome,
        source: ResultSource,
    ) -> ToolResult {
        let raw = small_text(&outcome.full_output);
        let (output, lost) = match raw {
            Some(_) => (None, false),
            None => self.spill(attempt_id, &outcome.full_output),
        };
        ToolResult {
            attempt_id: attempt_id.to_owned(),
            state: outcome.state,
            source,
            digest: sha256_hex(outcome.text.as_bytes()),
            text: outcome.text,
            effect_summary: outcome.effect_summary,
            raw,
            output,
            truncated: outcome.truncated || lost,
            diff: outcome.diff,
            exit: outcome.exit,
            may_continue_elsewhere: outcome.may_continue_elsewhere,
            duration_ms: outcome.duration_ms,
        }
    }

    /// Keeps the whole output beside the log. When that fails the result counts all the same, and
    /// says that not all of its output is there.
    fn spill(&self, attempt_id: &str, full: &FullOutput) -> (Option<SpillRef>, bool) {
        let stored = match full {
            FullOutput::None => return (None, false),
            FullOutput::Bytes(bytes) => self
                .store
                .spill
                .store(attempt_id, bytes)
                .map(|()| bytes.len() as u64),
            FullOutput::File(path) => match std::fs::File::open(path) {
                Ok(mut file) => self.store.spill.store_from(attempt_id, &mut file),
                Err(error) => {
                    tracing::warn!(%error, "a command's output could not be read");
                    return (None, true);
                }
            },
        };
        match stored {
            Ok(length) => {
                let spill = SpillRef {
                    name: attempt_id.to_owned(),
                    length,
                };
                (Some(spill), false)
            }
            Err(error) => {
                tracing::warn!(code = error.code(), "a whole output could not be kept");
                (None, true)
            }
        }
    }
}

/// Outputs up to this many bytes are kept in the log itself; larger ones beside it.
const INLINE_OUTPUT: usize = 64 * 1024;

/// A small output that is text: it goes into the record, which is synced anyway.
fn small_text(full: &FullOutput) -> Option<String> {
    match full {
        FullOutput::None => None,
        FullOutput::Bytes(bytes) if bytes.len() <= INLINE_OUTPUT => {
            String::from_utf8(bytes.clone()).ok()
        }
        FullOutput::Bytes(_) => None,
        FullOutput::File(path) => holdfast_files::read_bounded(path, INLINE_OUTPUT as u64)
            .ok()
            .and_then(|bytes| String::from_utf8(bytes).ok()),
    }
}

/// An effect folder goes after its result is durable; leftovers are swept at the next opening.
pub(super) fn drop_folder(folder: &std::path::Path) {
    if folder.exists()
        && let Err(error) = holdfast_supervisor::remove(folder)
    {
        tracing::debug!(
            code = error.code(),
            "an effect folder is left for the next sweep"
        );
    }
}
