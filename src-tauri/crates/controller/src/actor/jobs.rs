//! Jobs: process trees that outlive their call (TR-50), their host (TR-18), or every proof of their
//! end (SV-04). A job counts until its real exit.

mod watch;

use holdfast_api::ApiError;
use holdfast_api::event::Event;
use holdfast_domain::canonical::check_arguments;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::Straggler;
use holdfast_domain::transcript::record::{
    AttemptChanged, JobEnded, NotStarted, Record, ResultSource,
};
use holdfast_supervisor::{Presence, Target};
use tokio::sync::mpsc;
use tokio::sync::watch as signal;

use super::Actor;
use super::ends::{Ended, drop_folder};
use super::live::TAIL;
use super::message::JobNews;
pub(super) use watch::outcome;
use watch::{Told, Watch};

/// What a job is to its call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobKind {
    /// Its call was answered, and it goes on (TR-50): in flight.
    Background,
    /// Found running after a restart, or after its turn gave it up: in flight again.
    Reattached,
    /// Its call has its result.
    Survivors,
    /// Its call's outcome is unknown; nobody claims that it stopped (SV-04). It is no executor of
    /// this host's, so the attempt stays unresolved.
    Stragglers,
}

impl JobKind {
    /// Its attempt's executor is in this host's hands.
    pub(super) fn is_in_flight(self) -> bool {
        match self {
            Self::Background | Self::Reattached => true,
            Self::Survivors | Self::Stragglers => false,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Background => "background",
            Self::Reattached => "reattached",
            Self::Survivors => "survivors",
            Self::Stragglers => "stragglers",
        }
    }
}

/// One job.
pub(crate) struct JobState {
    pub(super) kind: JobKind,
    /// Stop was asked for.
    pub(super) stopping: bool,
    /// Tells the watcher to stop it; each wish is a new try. Without this end the watcher goes.
    pub(super) stop: mpsc::UnboundedSender<()>,
    /// How it ended, once it has.
    pub(super) over: signal::Sender<Option<String>>,
}

impl Actor {
    /// A command that goes on while its call is answered; so much of its output was told.
    pub(super) fn watch_background(&mut self, attempt_id: &str, told: u64) {
        self.watch(attempt_id, JobKind::Background, Told::UpTo(told));
    }

    /// Found running after a restart: in flight again, as a job.
    pub(super) fn reattach(&mut self, attempt_id: &str) {
        // What this host told already is not told again; after a restart its end is.
        let told = if self.outputs.contains_key(attempt_id) {
            Told::AllBut(0)
        } else {
            Told::AllBut(TAIL as u64)
        };
        self.watch(attempt_id, JobKind::Reattached, told);
    }

    /// What a finished command left running.
    pub(super) fn watch_survivors(&mut self, attempt_id: &str) {
        self.watch(attempt_id, JobKind::Survivors, Told::Never);
    }

    /// What is left of a command whose outcome is unknown.
    pub(super) fn watch_stragglers(&mut self, attempt_id: &str) {
        self.watch(attempt_id, JobKind::Stragglers, Told::Never);
    }

    /// What is alive of a supervised attempt without a result: its whole tree, or what a stop left.
    pub(super) async fn watch_what_is_left(&mut self, attempt_id: &str) {
        let Some(attempt) = self.store.session.attempt(attempt_id) else {
            return;
        };
        if !attempt.supervised || attempt.result.is_some() || attempt.late.is_some() {
            return;
        }
        let may_run = attempt.state.is_open() || attempt.state.is_by_person();
        let named = !attempt.stragglers.is_empty();
        match self.presence(attempt_id).await {
            // It was told to end already, and goes on under its supervisor.
            Presence::Lingering if named && self.closed => {}
            Presence::Lingering | Presence::Absent if named => self.watch_stragglers(attempt_id),
            Presence::Running | Presence::Lingering if may_run => self.reattach(attempt_id),
            Presence::Running | Presence::Lingering | Presence::Absent => {}
        }
    }

    /// Whether the attempt's supervisor is at work. What can't be read now is answered as absent.
    pub(super) async fn presence(&self, attempt_id: &str) -> Presence {
        let Some(attempt) = self.store.session.attempt(attempt_id) else {
            return Presence::Absent;
        };
        let folder = self.effects_root().join(attempt_id);
        let (id, digest) = (
            attempt_id.to_owned(),
            attempt.identity.argument_digest.clone(),
        );
        tokio::task::spawn_blocking(move || holdfast_supervisor::presence(&folder, &id, &digest))
            .await
            .ok()
            .and_then(Result::ok)
            .unwrap_or(Presence::Absent)
    }

    fn watch(&mut self, attempt_id: &str, kind: JobKind, told: Told) {
        let Some(attempt) = self.store.session.attempt(attempt_id) else {
            return;
        };
        if let Some(job) = self.jobs.get_mut(attempt_id) {
            job.kind = kind;
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
                kind,
                stopping: self.closed,
                stop,
                over: signal::Sender::new(None),
            },
        );
        let watch = Watch {
            told,
            command: self.command_of(attempt_id),
            spill: self.store.spill.clone(),
            outbox: self.outbox.clone(),
            target,
        };
        tokio::spawn(watch.run(wishes));
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
            JobNews::Exited(ended) => self.job_exited(attempt_id, *ended).await,
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
                self.job_lost(attempt_id, reason, stragglers).await;
            }
        }
        self.refresh_repeat().await;
    }

    async fn job_gone(&mut self, attempt_id: &str) {
        let ended = self.job_end(attempt_id, "nothing of it is left");
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
            drop_folder(&self.effects_root().join(attempt_id));
        }
    }

    /// The wish may be repeated. A session that ends does not wait for what it can't stop: that
    /// goes on under its supervisor, and is found at the next opening.
    fn job_stop_failed(&mut self, attempt_id: &str, reason: &str) {
        if let Some(job) = self.jobs.get_mut(attempt_id) {
            job.stopping = false;
        }
        if self.closed {
            self.forget_job(attempt_id);
        }
        self.notice(
            "job_stop_failed",
            format!("a job could not be stopped ({reason}); it goes on; try again"),
        );
        self.emit_job(attempt_id, self.closed);
    }

    /// The real result of a command that is in flight as a job (TR-18, TR-50). For survivors the result is there already, and
    /// for stragglers it is known that there is none.
    async fn job_exited(&mut self, attempt_id: &str, ended: Ended) {
        let Some(attempt) = self.store.session.attempt(attempt_id) else {
            return;
        };
        let is_open = self
            .jobs
            .get(attempt_id)
            .is_some_and(|job| job.kind.is_in_flight());
        // What this host ran from its start to its end was never found again.
        let source = match self.jobs.get(attempt_id).map(|job| job.kind) {
            Some(JobKind::Background) => ResultSource::Live,
            _ => ResultSource::Recovered,
        };
        if !is_open || attempt.result.is_some() || attempt.late.is_some() {
            return;
        }
        let call_id = attempt.identity.call_id.clone();
        let left = match (
            ended.outcome.survivors.is_empty(),
            ended.outcome.stragglers.is_empty(),
        ) {
            (false, _) => Some(JobKind::Survivors),
            (true, false) => Some(JobKind::Stragglers),
            (true, true) => None,
        };
        let stored = self.store_outcome(attempt_id, ended, source).await;
        self.job_left(attempt_id, left);
        match stored {
            Ok(seq) => self.emit_result(&call_id, seq),
            // It is kept, and the folder still has the receipt.
            Err((code, message)) => self.notice(&code, message),
        }
    }

    /// Its call has ended; what it left is watched on.
    fn job_left(&mut self, attempt_id: &str, left: Option<JobKind>) {
        match left {
            // What could not be stopped does not hold up the end of the session.
            Some(JobKind::Stragglers) if self.closed => self.job_left(attempt_id, None),
            Some(kind) => {
                if let Some(job) = self.jobs.get_mut(attempt_id) {
                    job.kind = kind;
                    job.stopping = self.closed;
                }
            }
            None => {
                if self.forget_job(attempt_id) {
                    self.emit_job(attempt_id, true);
                }
            }
        }
    }

    /// It is over, and whoever waits for that hears how it ended.
    fn forget_job(&mut self, attempt_id: &str) -> bool {
        let Some(job) = self.jobs.remove(attempt_id) else {
            return false;
        };
        job.over.send_replace(Some(self.job_words(attempt_id)));
        true
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

    /// Its supervisor is gone. While processes of it live, it stays a job: found by the attempt's
    /// id, and stoppable (SV-04).
    async fn job_lost(&mut self, attempt_id: &str, reason: String, stragglers: Vec<Straggler>) {
        let Some(attempt) = self.store.session.attempt(attempt_id) else {
            return;
        };
        let is_over = stragglers.is_empty();
        let settled = attempt.result.is_some() || attempt.state.is_by_person();
        let is_known = attempt.state == AttemptState::Unknown && attempt.stragglers == stragglers;
        let record = if settled {
            is_over.then(|| self.job_end(attempt_id, &reason)).flatten()
        } else if is_known {
            None
        } else {
            Some(
                AttemptChanged {
                    attempt_id: attempt_id.to_owned(),
                    state: AttemptState::Unknown,
                    reason,
                    stragglers,
                }
                .into(),
            )
        };
        if is_over {
            return self.job_over(attempt_id, record).await;
        }
        if let Some(job) = self.jobs.get_mut(attempt_id)
            && job.kind.is_in_flight()
        {
            job.kind = JobKind::Stragglers;
        }
        self.record_of_job(attempt_id, record).await;
        self.emit_job(attempt_id, false);
    }

    async fn job_over(&mut self, attempt_id: &str, record: Option<Record>) {
        let seq = self.store_for_job(record).await;
        if self.forget_job(attempt_id) {
            self.emit_job(attempt_id, true);
        }
        self.emit_attempt(attempt_id, seq);
    }

    async fn record_of_job(&mut self, attempt_id: &str, record: Option<Record>) {
        let seq = self.store_for_job(record).await;
        self.emit_attempt(attempt_id, seq);
    }

    async fn store_for_job(&mut self, record: Option<Record>) -> Option<u64> {
        match self.commit(vec![record?], Vec::new()).await {
            Ok(entries) => entries.first().map(|entry| entry.seq),
            Err(error) => {
                self.notice(error.code(), error.to_string());
                None
            }
        }
    }

    fn emit_attempt(&self, attempt_id: &str, seq: Option<u64>) {
        if let Some(attempt) = self.store.session.attempt(attempt_id) {
            self.emit_result(&attempt.identity.call_id, seq);
        }
    }
}
