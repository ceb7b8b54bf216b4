//! How a turn is stopped and ends, and how a session is closed.
//!
//! Guarantees: a turn's end is told once, behind its record and behind the idle state; what can't be
//! stored is ended all the same and shown as failed.

use holdfast_api::event::Event;
use holdfast_api::session::LastError;
use holdfast_domain::transcript::record::{Record, TurnEnded};
use tokio_util::sync::CancellationToken;

use super::Actor;
use crate::stops::{StopPoint, pass};

impl Actor {
    /// Stop: the model's socket closes, running tools are told, questions close.
    pub(super) async fn stop_requested(&mut self) {
        let question = self.store.session.prompt.is_some();
        let stops = self
            .running
            .as_ref()
            .map_or(question, |turn| turn.cancel.is_cancelled());
        if stops && !self.closed {
            self.pause_at_stop().await;
        }
        if let Some(turn) = &mut self.running {
            if !turn.cancel.is_cancelled() {
                return;
            }
            if turn.compacting.is_some() {
                return self.end_compaction("cancelled", "", "");
            }
            if let Some(model) = turn.model.take() {
                model.abort();
                turn.streaming = false;
                self.keep_partial().await;
            }
        }
        // A question that waits beside a retry is none of its business.
        if self.running.as_ref().is_some_and(|phase| phase.retry) {
            return;
        }
        if self.store.session.prompt.is_none() {
            return;
        }
        if self.running.is_none() && self.writable().await.is_err() {
            // The question stays open, and so does the way to stop it.
            return self.arm_for_prompt();
        }
        let closed = self
            .close_prompt("not_started", "not started: the person stopped the turn")
            .await;
        match (closed, self.running.is_some()) {
            (Ok(()), true) => {}
            (Ok(()), false) => self.switch.disarm(),
            (Err(error), true) => {
                self.end_turn("cancelled", error.code(), &error.to_string())
                    .await;
            }
            (Err(_), false) => self.arm_for_prompt(),
        }
    }

    /// A Stop means what waits, too; what comes behind it was meant to run.
    async fn pause_at_stop(&mut self) {
        let Some(paused) = self.pause_of("stopped") else {
            return;
        };
        self.queue_held |= self.commit(vec![paused.into()], Vec::new()).await.is_err();
        self.emit_inbox();
    }

    /// Stop closes a question that outlived its turn.
    pub(super) fn arm_for_prompt(&self) {
        match &self.store.session.prompt {
            Some(asked) => self.switch.arm(&asked.turn_id, CancellationToken::new()),
            None => self.switch.disarm(),
        }
    }

    /// Stores a turn's end. What can't be stored is ended all the same, and shown as failed.
    pub(super) async fn end_turn(&mut self, status: &str, code: &str, message: &str) {
        if self.running.as_ref().is_some_and(|phase| phase.retry) {
            return self.end_retry(Some((code, message)));
        }
        if self.compaction().is_some() {
            return self.end_compaction(status, code, message);
        }
        let Some(mut turn) = self.running.take() else {
            return;
        };
        if let Some(model) = turn.model.take() {
            model.abort();
        }
        self.finishing = true;
        self.arm_for_prompt();
        self.publish();
        pass(StopPoint::TurnEnding);
        let ended = TurnEnded {
            turn_id: turn.turn_id.clone(),
            status: status.to_owned(),
            code: code.to_owned(),
            message: message.to_owned(),
        };
        let mut records: Vec<Record> = vec![ended.into()];
        let paused = self.pause_of("turn_failed").filter(|_| status == "failed");
        let pauses = paused.is_some();
        records.extend(paused.map(Record::from));
        let stored = self.commit_evidence(records).await;
        let (status, code, message, seq) = match &stored {
            Ok(entries) => (
                status,
                code.to_owned(),
                message.to_owned(),
                entries.first().map(|entry| entry.seq),
            ),
            Err(error) => {
                self.unstored_end = Some("failed".to_owned());
                ("failed", error.code().to_owned(), error.to_string(), None)
            }
        };
        if status == "failed" {
            self.last_error = Some(LastError {
                code: code.clone(),
                message: message.clone(),
            });
        }
        self.prepared.clear();
        self.finishing = false;
        // The next state is published before the turn's end is told, so that a client that hears
        // of the end finds the session idle.
        self.publish();
        self.emit(
            &turn.turn_id,
            seq,
            Event::TurnDone {
                status: status.to_owned(),
                code,
                message,
            },
        );
        if pauses {
            self.queue_held |= stored.is_err();
            self.emit_inbox();
        }
        self.write_index();
    }

    /// Everything is told to end; the actor goes when the last of it has. A question that waits
    /// for a person stays open, as over a crash (TR-51).
    pub(super) async fn close(&mut self, keep_jobs: bool) {
        self.closed = true;
        self.keep_jobs = keep_jobs;
        if keep_jobs {
            self.let_go();
            // Their watchers end with this process; their supervisors go on.
            self.jobs.clear();
        }
        if self.left {
            return;
        }
        for job in self.jobs.values_mut() {
            job.stopping = true;
            let _ = job.stop.send(());
        }
        let waits = self.store.session.prompt.is_some();
        match &self.running {
            Some(turn) if waits && turn.calls.is_empty() => {
                self.end_turn(
                    "interrupted",
                    "host_closed",
                    "the program was closed while it waited for an answer; the question is kept",
                )
                .await;
            }
            Some(_) => {
                self.switch.stop(None);
                self.stop_requested().await;
            }
            None => {}
        }
    }

    /// SV-09: commands that run go on, whatever is configured for the host's loss. A turn that one
    /// of them belongs to is left as a host's loss leaves it: the next host finds its real result.
    fn let_go(&mut self) {
        let calls = self.running.iter().flat_map(|turn| turn.calls.values());
        let supervised: Vec<String> = calls
            .filter(|id| {
                let attempt = self.store.session.attempt(id);
                attempt.is_some_and(|attempt| attempt.supervised)
            })
            .cloned()
            .collect();
        for attempt_id in self.jobs.keys().chain(&supervised) {
            let folder = self.effects_root().join(attempt_id);
            if let Err(error) = holdfast_supervisor::request_keep(&folder) {
                tracing::warn!(code = error.code(), "a command may end with this program");
            }
        }
        let Some(turn) = self.running.as_mut().filter(|_| !supervised.is_empty()) else {
            return;
        };
        if let Some(model) = turn.model.take() {
            model.abort();
        }
        self.left = true;
    }
}
