//! Jobs: process trees that outlive their call (TR-50) or their host (TR-18). A job counts until its
//! real exit.

use std::time::Duration;

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

use super::Actor;
use super::ends::drop_folder;
use super::message::{JobNews, Message};

/// One job.
pub(crate) struct JobState {
    /// Its call has no result yet: it was found running after a restart.
    pub(super) reattached: bool,
    /// Stop was asked for.
    pub(super) stopping: bool,
    /// Tells the watcher to stop it; each wish is a new try. Without this end the watcher goes.
    pub(super) stop: mpsc::UnboundedSender<()>,
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
        if self.closed && self.keep_jobs {
            return;
        }
        let (stop, wishes) = mpsc::unbounded_channel();
        if self.closed {
            // What comes to light while the session ends is ended with it.
            let _ = stop.send(());
        }
        self.jobs.insert(
            attempt_id.to_owned(),
            JobState {
                reattached,
                stopping: self.closed,
                stop,
            },
        );
        tokio::spawn(watch(target, wishes, self.outbox.clone()));
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
        let _ = job.stop.send(());
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
            JobNews::Gone => self.job_gone(attempt_id).await,
            JobNews::StopFailed(reason) => self.job_stop_failed(attempt_id, &reason),
            JobNews::Lost { reason, stragglers } => {
                let record = self.lost(attempt_id, reason, stragglers);
                self.job_over(attempt_id, record).await;
            }
        }
    }

    async fn job_gone(&mut self, attempt_id: &str) {
        let folder = self.effects_root().join(attempt_id);
        let left: Vec<String> = holdfast_supervisor::read_end(&folder, attempt_id)
            .ok()
            .flatten()
            .map(|end| end.stragglers)
            .unwrap_or_default()
            .iter()
            .map(|process| format!("{} (pid {})", process.name, process.pid))
            .collect();
        let reason = if left.is_empty() {
            "nothing of it is left".to_owned()
        } else {
            format!(
                "it was told to end, and these could not be: {}",
                left.join(", ")
            )
        };
        let ended = self.job_end(attempt_id, &reason);
        self.job_over(attempt_id, ended).await;
        // The folder is the only evidence of a result that is not in the log.
        let settled = self
            .store
            .session
            .attempt(attempt_id)
            .is_some_and(|attempt| {
                !attempt.job && (attempt.result.is_some() || attempt.late.is_some())
            });
        if settled {
            drop_folder(&folder);
        }
    }

    /// The wish may be repeated. A session that ends does not wait for what it can't stop: that
    /// goes on under its supervisor, and is found at the next opening.
    fn job_stop_failed(&mut self, attempt_id: &str, reason: &str) {
        if let Some(job) = self.jobs.get_mut(attempt_id) {
            job.stopping = false;
        }
        if self.closed {
            self.jobs.remove(attempt_id);
        }
        self.notice(
            "job_stop_failed",
            format!("a job could not be told to stop ({reason}); it goes on; try again"),
        );
        self.emit_job(attempt_id, self.closed);
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
                self.job_left(attempt_id, survives);
                self.emit_result(&call_id, seq);
            }
            // It is kept, and the folder still has the receipt.
            Err((code, message)) => {
                self.job_left(attempt_id, survives);
                self.notice(&code, message);
            }
        }
    }

    fn job_left(&mut self, attempt_id: &str, survives: bool) {
        if survives {
            // Its call has ended; what it left is watched on.
            if let Some(job) = self.jobs.get_mut(attempt_id) {
                job.reattached = false;
            }
        } else if self.jobs.remove(attempt_id).is_some() {
            self.emit_job(attempt_id, true);
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

/// Times that a watcher looks again when its look fails.
const LOOKS: u32 = 40;
/// Between two of them.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Watches one supervised tree to its end, or until nobody wants to know.
async fn watch(
    target: Target,
    mut wishes: mpsc::UnboundedReceiver<()>,
    outbox: mpsc::UnboundedSender<Message>,
) {
    let attempt_id = target.attempt_id.clone();
    let tell = |news| {
        let attempt_id = attempt_id.clone();
        outbox.send(Message::Job { attempt_id, news }).is_ok()
    };
    let mut attachment = Attachment::attach(target, None, 0);
    let mut failures = 0;
    loop {
        let next = tokio::select! {
            wish = wishes.recv() => {
                if wish.is_none() {
                    return;
                }
                if let Err(error) = attachment.stop()
                    && !tell(JobNews::StopFailed(error.to_string()))
                {
                    return;
                }
                continue;
            }
            next = attachment.next() => next,
        };
        let (news, last) = match next {
            Ok(Progress::Output(_)) => {
                failures = 0;
                continue;
            }
            Ok(Progress::Exited(receipt)) => {
                let last = receipt.survivors.is_empty();
                (JobNews::Exited(receipt), last)
            }
            Ok(Progress::Gone) => (JobNews::Gone, true),
            Ok(Progress::NotStarted) => (JobNews::NotStarted, true),
            Ok(Progress::Lost { reason, stragglers }) => {
                (JobNews::Lost { reason, stragglers }, true)
            }
            Err(error) if failures < LOOKS => {
                failures += 1;
                tracing::debug!(code = error.code(), "a job can't be looked at now");
                tokio::time::sleep(LOOK_AGAIN).await;
                continue;
            }
            Err(error) => {
                let reason = error.to_string();
                let stragglers = Vec::new();
                (JobNews::Lost { reason, stragglers }, true)
            }
        };
        if !tell(news) || last {
            return;
        }
    }
}
