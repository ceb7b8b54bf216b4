//! Results: bound to their attempt, durable before they are announced (TR-08…TR-11).

use std::io::Read;
use std::path::PathBuf;

use holdfast_domain::canonical::sha256_hex;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::transcript::record::{
    AttemptChanged, LateEvidence, NotStarted, Record, ResultSource, SpillRef, ToolResult,
};
use holdfast_journal::Spill;
use holdfast_tools::{FullOutput, ToolOutcome};

use super::Actor;
use crate::stops::{StopPoint, pass};

impl Actor {
    pub(super) fn effects_root(&self) -> PathBuf {
        self.store.folder().join("effects")
    }

    /// A tool of this host ended.
    pub(super) async fn tool_ended(
        &mut self,
        call_id: &str,
        attempt_id: &str,
        outcome: Option<Ended>,
    ) {
        pass(StopPoint::ToolEnded);
        if let Some(turn) = &mut self.running {
            turn.streaming = false;
        }
        let stored = match outcome {
            Some(Ended {
                outcome:
                    outcome @ ToolOutcome {
                        background: Some(background),
                        ..
                    },
                ..
            }) => self.goes_on_as_job(attempt_id, outcome, background).await,
            Some(outcome) => {
                self.store_outcome(attempt_id, outcome, ResultSource::Live)
                    .await
            }
            None => self.tool_panicked(attempt_id).await,
        };
        // TR-10: its real result still goes to this attempt. Or only stragglers are left of it.
        if !self.jobs.contains_key(attempt_id) {
            self.watch_what_is_left(attempt_id).await;
        }
        // Only now is it no longer in flight: an attempt is never uncertain while its result is on
        // the way into the log.
        if let Some(turn) = &mut self.running {
            turn.calls.remove(call_id);
        }
        self.answer_moves(attempt_id);
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

    /// What can't be stored now is kept, and stored when storage works again.
    pub(super) async fn store_one(
        &mut self,
        record: Record,
    ) -> Result<Option<u64>, (String, String)> {
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
        ended: Ended,
        source: ResultSource,
    ) -> Result<Option<u64>, (String, String)> {
        let outcome = &ended.outcome;
        let Some(attempt) = self.store.session.attempt(attempt_id) else {
            return Ok(None);
        };
        let by_person = attempt.state.is_by_person();
        let folder = self.effects_root().join(attempt_id);
        let survives = !outcome.survivors.is_empty();
        let record: Record = match outcome.state {
            AttemptState::Completed | AttemptState::Failed | AttemptState::Interrupted => {
                let result = result_record(attempt_id, ended, source);
                if by_person {
                    LateEvidence { result }.into()
                } else {
                    result.into()
                }
            }
            AttemptState::NotStarted => NotStarted {
                attempt_id: attempt_id.to_owned(),
                reason: outcome.text.clone(),
            }
            .into(),
            AttemptState::Cancelled => AttemptChanged {
                attempt_id: attempt_id.to_owned(),
                state: AttemptState::Cancelled,
                reason: outcome.text.clone(),
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
                    &outcome.text
                } else {
                    &outcome.effect_summary
                };
                let change = AttemptChanged {
                    attempt_id: attempt_id.to_owned(),
                    state: AttemptState::Unknown,
                    reason: reason.clone(),
                    stragglers: outcome.stragglers.clone(),
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
}

/// An outcome whose output is kept already.
pub(crate) struct Ended {
    pub(super) outcome: ToolOutcome,
    /// The output itself, when it is small.
    raw: Option<String>,
    /// Where it is, when it is large.
    output: Option<SpillRef>,
    /// Not all of it could be kept. The result counts all the same, and says so.
    lost: bool,
}

/// Keeps the whole output beside the log, on a thread that may wait for the disk. An outcome that is
/// no result keeps its evidence where it is.
pub(super) async fn keep(spill: Spill, attempt_id: &str, outcome: ToolOutcome) -> Ended {
    let is_result = matches!(
        outcome.state,
        AttemptState::Completed | AttemptState::Failed | AttemptState::Interrupted
    );
    if !is_result || outcome.full_output == FullOutput::None {
        return Ended {
            outcome,
            raw: None,
            output: None,
            lost: false,
        };
    }
    let name = attempt_id.to_owned();
    let full = outcome.full_output.clone();
    // A job prints on into the same file; what the receipt vouches for is the call's.
    let length = outcome.exit.as_ref().map(|exit| exit.output_length);
    let kept = tokio::task::spawn_blocking(move || store(&spill, &name, &full, length)).await;
    let (raw, output, lost) = kept.unwrap_or((None, None, true));
    Ended {
        outcome,
        raw,
        output,
        lost,
    }
}

fn store(
    spill: &Spill,
    name: &str,
    full: &FullOutput,
    length: Option<u64>,
) -> (Option<String>, Option<SpillRef>, bool) {
    if let Some(raw) = small_text(full, length) {
        return (Some(raw), None, false);
    }
    let stored = match full {
        FullOutput::None => return (None, None, false),
        FullOutput::Bytes(bytes) => spill.store(name, bytes).map(|()| bytes.len() as u64),
        FullOutput::File(path) => match std::fs::File::open(path) {
            Ok(file) => spill.store_from(name, &mut file.take(length.unwrap_or(u64::MAX))),
            Err(error) => {
                tracing::warn!(%error, "a command's output could not be read");
                return (None, None, true);
            }
        },
    };
    match stored {
        Ok(length) => {
            let name = name.to_owned();
            (None, Some(SpillRef { name, length }), false)
        }
        Err(error) => {
            tracing::warn!(code = error.code(), "a whole output could not be kept");
            (None, None, true)
        }
    }
}

fn result_record(attempt_id: &str, ended: Ended, source: ResultSource) -> ToolResult {
    let Ended {
        outcome,
        raw,
        output,
        lost,
    } = ended;
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

/// Outputs up to this many bytes are kept in the log itself; larger ones beside it.
const INLINE_OUTPUT: usize = 64 * 1024;

/// A small output that is text: it goes into the record, which is synced anyway.
fn small_text(full: &FullOutput, length: Option<u64>) -> Option<String> {
    match full {
        FullOutput::None => None,
        FullOutput::Bytes(bytes) if bytes.len() <= INLINE_OUTPUT => {
            String::from_utf8(bytes.clone()).ok()
        }
        FullOutput::Bytes(_) => None,
        FullOutput::File(path) => {
            let file = std::fs::File::open(path).ok()?;
            let known = file.metadata().ok()?.len();
            let length = length.map_or(known, |length| length.min(known));
            if length > INLINE_OUTPUT as u64 {
                return None;
            }
            let mut bytes = Vec::new();
            file.take(length).read_to_end(&mut bytes).ok()?;
            String::from_utf8(bytes).ok()
        }
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
