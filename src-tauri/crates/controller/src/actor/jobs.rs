//! Jobs: process trees that outlive their call (TR-50) or their host (TR-18). A job counts until its
//! real exit.

use holdfast_api::ApiError;
use holdfast_api::event::Event;
use holdfast_domain::canonical::check_arguments;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{ExitReceipt, Straggler};
use holdfast_domain::transcript::record::{
    AttemptChanged, JobEnded, NotStarted, Record, ResultSource,
};
use holdfast_supervisor::{Attachment, Progress, Target};
use holdfast_tools::finish_shell;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Actor;
use super::ends::drop_folder;
use super::message::{JobNews, Message};

/// One job.
pub(crate) struct JobState {
    /// Its call has no result yet: it was found running after a restart.
    pub(super) reattached: bool,
    /// Stop was asked for.
    pub(super) stopping: bool,
    /// Tells the watcher to stop it.
    pub(super) stop: CancellationToken,
}

impl Actor {
    /// Found running after a restart: in flight again, as a job.
    pub(super) fn reattach(&mut self, attempt_id: &str) {
        self.watch(attempt_id, true);
    }

    /// What a finished command left running.
    pub(super) fn watch_survivors(&mut self, attempt_id: &str) {
        self.watch(attempt_id, false);
    }

    fn watch(&mut self, attempt_id: &str, reattached: bool) {
        let Some(attempt) = self.store.session.attempt(attempt_id) else {
            return;
        };
        if let Some(job) = self.jobs.get_mut(attempt_id) {
            job.reattached = reattached;
            return;
        }
        let target = Target {
            folder: self.effects_root().join(attempt_id),
            attempt_id: attempt_id.to_owned(),
            argument_digest: attempt.identity.argument_digest.clone(),
            boot_id: attempt.boot_id.clone(),
            runtime_folder: self.host.runtime_folder.clone(),
        };
        let stop = CancellationToken::new();
        self.jobs.insert(
            attempt_id.to_owned(),
            JobState {
                reattached,
                stopping: false,
                stop: stop.clone(),
            },
        );
        tokio::spawn(watch(target, stop, self.outbox.clone()));
        self.emit_job(attempt_id, false);
    }

    fn emit_job(&self, attempt_id: &str, ended: bool) {
        let id = attempt_id.to_owned();
        self.emit("", None, Event::JobChanged { id, ended });
    }

    pub(super) fn cancel_job(&mut self, id: &str) -> Result<(), ApiError> {
        let job = self.jobs.get_mut(id).ok_or_else(|| {
            ApiError::not_found(
                "job_unknown",
                "there is no such job now; it may have ended; nothing was stopped; refresh",
            )
        })?;
        job.stopping = true;
        job.stop.cancel();
        self.emit_job(id, false);
        Ok(())
    }

    pub(super) async fn job_news(&mut self, attempt_id: &str, news: JobNews) {
        match news {
            JobNews::Exited(receipt) => self.job_exited(attempt_id, &receipt).await,
            JobNews::NotStarted => {
                let record = NotStarted {
                    attempt_id: attempt_id.to_owned(),
                    reason: "it was never started".to_owned(),
                };
                self.job_over(attempt_id, Some(record.into())).await;
            }
            JobNews::Gone => {
                let ended = self.job_end(attempt_id, "nothing of it is left");
                self.job_over(attempt_id, ended).await;
                drop_folder(&self.effects_root().join(attempt_id));
            }
            JobNews::Lost { reason, stragglers } => {
                let record = self.lost(attempt_id, reason, stragglers);
                self.job_over(attempt_id, record).await;
            }
        }
    }

    /// A reattached command's real result (TR-18). For survivors the result is there already.
    async fn job_exited(&mut self, attempt_id: &str, receipt: &ExitReceipt) {
        let Some(attempt) = self.store.session.attempt(attempt_id) else {
            return;
        };
        if attempt.result.is_some() || attempt.late.is_some() {
            return;
        }
        let call_id = attempt.identity.call_id.clone();
        let command = self.command_of(attempt_id);
        let output = self.effects_root().join(attempt_id).join("output");
        let outcome = finish_shell(&command, receipt, &output, false);
        let survives = !outcome.survivors.is_empty();
        match self
            .store_outcome(attempt_id, outcome, ResultSource::Recovered)
            .await
        {
            Ok(seq) => {
                if !survives {
                    self.jobs.remove(attempt_id);
                    self.emit_job(attempt_id, true);
                }
                self.emit_result(&call_id, seq);
            }
            // The folder still has the receipt: the next opening reads it again.
            Err((code, message)) => self.notice(&code, message),
        }
    }

    /// The command of a supervised attempt, from its proposal; empty when that is lost.
    pub(super) fn command_of(&self, attempt_id: &str) -> String {
        self.store
            .session
            .attempt(attempt_id)
            .and_then(|attempt| self.store.session.call(&attempt.identity.call_id))
            .and_then(|call| check_arguments(&call.proposed.arguments).ok())
            .and_then(|arguments| Some(arguments.get("command")?.as_str()?.to_owned()))
            .unwrap_or_default()
    }

    fn job_end(&self, attempt_id: &str, reason: &str) -> Option<Record> {
        let attempt = self.store.session.attempt(attempt_id)?;
        attempt.job.then(|| {
            JobEnded {
                attempt_id: attempt_id.to_owned(),
                reason: reason.to_owned(),
            }
            .into()
        })
    }

    fn lost(&self, attempt_id: &str, reason: String, stragglers: Vec<Straggler>) -> Option<Record> {
        let attempt = self.store.session.attempt(attempt_id)?;
        if attempt.result.is_some() || attempt.state.is_by_person() {
            return self.job_end(attempt_id, &reason);
        }
        Some(
            AttemptChanged {
                attempt_id: attempt_id.to_owned(),
                state: AttemptState::Unknown,
                reason,
                stragglers,
            }
            .into(),
        )
    }

    async fn job_over(&mut self, attempt_id: &str, record: Option<Record>) {
        let seq = match record {
            Some(record) => match self.commit(vec![record], Vec::new()).await {
                Ok(entries) => entries.first().map(|entry| entry.seq),
                Err(error) => {
                    self.notice(error.code(), error.to_string());
                    None
                }
            },
            None => None,
        };
        if self.jobs.remove(attempt_id).is_some() {
            self.emit_job(attempt_id, true);
        }
        let call_id = self
            .store
            .session
            .attempt(attempt_id)
            .map(|attempt| attempt.identity.call_id.clone());
        if let Some(call_id) = call_id {
            self.emit_result(&call_id, seq);
        }
    }
}

/// Watches one supervised tree to its end.
async fn watch(target: Target, stop: CancellationToken, outbox: mpsc::UnboundedSender<Message>) {
    let attempt_id = target.attempt_id.clone();
    let mut attachment = Attachment::attach(target, None, 0);
    let mut told_to_stop = false;
    loop {
        let next = tokio::select! {
            () = stop.cancelled(), if !told_to_stop => {
                told_to_stop = true;
                if let Err(error) = attachment.stop() {
                    tracing::warn!(code = error.code(), "a job could not be told to stop");
                }
                continue;
            }
            next = attachment.next() => next,
        };
        let (news, last) = match next {
            Ok(Progress::Output(_)) => continue,
            Ok(Progress::Exited(receipt)) => {
                let last = receipt.survivors.is_empty();
                (JobNews::Exited(receipt), last)
            }
            Ok(Progress::Gone) => (JobNews::Gone, true),
            Ok(Progress::NotStarted) => (JobNews::NotStarted, true),
            Ok(Progress::Lost { reason, stragglers }) => {
                (JobNews::Lost { reason, stragglers }, true)
            }
            Err(error) => {
                let reason = error.to_string();
                let stragglers = Vec::new();
                (JobNews::Lost { reason, stragglers }, true)
            }
        };
        let message = Message::Job {
            attempt_id: attempt_id.clone(),
            news,
        };
        if outbox.send(message).is_err() || last {
            return;
        }
    }
}
