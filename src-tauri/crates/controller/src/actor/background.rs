//! Commands that go on as jobs while they run, by the model's wish or a person's (TR-50), and what a
//! model sees of jobs.
//!
//! Guarantees: such a command is watched before its call is answered, so that it is in flight without
//! a gap; its attempt stays open until its real end.

use async_trait::async_trait;
use holdfast_api::ApiError;
use holdfast_api::session::Job;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::transcript::notes::{end_of, utc};
use holdfast_domain::transcript::record::JobStarted;
use holdfast_supervisor::folder::OUTPUT;
use holdfast_tools::{Background, JobLook, Jobs, ToolOutcome};
use tokio::sync::{mpsc, oneshot, watch};

use super::Actor;
use super::jobs::JobState;
use super::message::{Command, Message, Reply};

/// A wish of a person that waits for its answer: when it is a job, that is durable.
pub(super) type Moves = Vec<Reply<Job>>;

impl Actor {
    /// Its call is answered, and the command goes on. Answers the place of the record.
    pub(super) async fn goes_on_as_job(
        &mut self,
        attempt_id: &str,
        outcome: ToolOutcome,
        background: Background,
    ) -> Result<Option<u64>, (String, String)> {
        // Watched whatever becomes of the record: it runs.
        self.watch_background(attempt_id, background.told);
        let by = if background.by_person {
            JobStarted::PERSON
        } else {
            JobStarted::MODEL
        };
        let started = JobStarted {
            attempt_id: attempt_id.to_owned(),
            by: by.to_owned(),
            text: outcome.text,
        };
        self.store_one(started.into()).await
    }

    /// `POST /jobs/background`: a command that a turn waits for goes on without being waited for.
    pub(super) fn move_to_background(&mut self, attempt_id: String, reply: Reply<Job>) {
        match self.detach(&attempt_id) {
            Ok(()) => self.moves.entry(attempt_id).or_default().push(reply),
            Err(error) => {
                let _ = reply.send(Err(error));
            }
        }
    }

    fn detach(&self, attempt_id: &str) -> Result<(), ApiError> {
        let attempt = self.known(attempt_id)?;
        if !attempt.supervised || attempt.read_only {
            return Err(ApiError::conflict(
                "not_a_command",
                "only a command that may change something can go on in the background; nothing was \
                 changed; wait for this call, or stop the turn",
            ));
        }
        let running = self.running.as_ref();
        let token = running.and_then(|turn| turn.detach.get(attempt_id));
        match (running, token) {
            (Some(turn), Some(_)) if turn.cancel.is_cancelled() => Err(ApiError::conflict(
                "turn_stopping",
                "the turn is being stopped, and this command with it; nothing was changed",
            )),
            (Some(_), Some(token)) => {
                token.cancel();
                Ok(())
            }
            (_, _) => Err(not_waited_for()),
        }
    }

    /// The call of that attempt is over for its turn: whoever wanted it in the background hears
    /// whether it is there.
    pub(super) fn answer_moves(&mut self, attempt_id: &str) {
        if let Some(turn) = &mut self.running {
            turn.detach.remove(attempt_id);
        }
        let Some(moves) = self.moves.remove(attempt_id) else {
            return;
        };
        self.publish();
        let moved = self
            .store
            .session
            .attempt(attempt_id)
            .is_some_and(|attempt| attempt.background.is_some());
        for reply in moves {
            let job = self.jobs.get(attempt_id).filter(|_| moved);
            let _ = reply.send(
                job.map(|job| self.job_view(attempt_id, job))
                    .ok_or_else(not_waited_for),
            );
        }
    }

    /// A job as lists show it.
    pub(super) fn job_view(&self, id: &str, job: &JobState) -> Job {
        let attempt = self.store.session.attempt(id);
        let folder = self.effects_root().join(id);
        Job {
            id: id.to_owned(),
            call_id: attempt
                .map(|attempt| attempt.identity.call_id.clone())
                .unwrap_or_default(),
            subject: attempt
                .map(|attempt| attempt.subject.clone())
                .unwrap_or_default(),
            command: self.command_of(id),
            started_at: attempt.and_then(|attempt| attempt.started_at),
            kind: job.kind.word().to_owned(),
            stopping: job.stopping,
            pid: holdfast_supervisor::started_by(&folder),
            output_length: std::fs::metadata(folder.join(OUTPUT)).map_or(0, |meta| meta.len()),
        }
    }

    /// The model's tool `job_output`.
    pub(super) fn look_at_job(
        &self,
        id: &str,
        offset: u64,
        limit: u64,
    ) -> Result<JobLook, ApiError> {
        let unknown = || {
            ApiError::not_found(
                "job_unknown",
                format!("this session has no job {id}; nothing was read; use an id as it was told"),
            )
        };
        let attempt = self.store.session.attempt(id).ok_or_else(unknown)?;
        if !attempt.supervised || attempt.read_only {
            return Err(unknown());
        }
        let page = self.output_part(id, offset, limit)?;
        Ok(JobLook {
            state: self.job_words(id),
            offset,
            next: page.next,
            length: page.length,
            text: page.text,
        })
    }

    /// The model's tool `job_stop`: whoever asks waits for the words on its end.
    pub(super) fn stop_job(
        &mut self,
        id: &str,
    ) -> Result<watch::Receiver<Option<String>>, ApiError> {
        if !self.jobs.contains_key(id) {
            let words = match self.store.session.attempt(id) {
                Some(_) => self.job_words(id),
                None => "this session has no such job".to_owned(),
            };
            return Err(ApiError::not_found(
                "job_unknown",
                format!("job {id} is not there to be stopped: {words}; nothing was stopped"),
            ));
        }
        self.cancel_job(id)?;
        self.jobs
            .get(id)
            .map(|job| job.over.subscribe())
            .ok_or_else(|| ApiError::not_found("job_unknown", "it has ended just now".to_owned()))
    }

    /// What is known of a job now, for a model: never its arguments.
    pub(super) fn job_words(&self, id: &str) -> String {
        let Some(attempt) = self.store.session.attempt(id) else {
            return "nothing is known of it".to_owned();
        };
        if let Some(job) = self.jobs.get(id) {
            let since = attempt
                .started_at
                .map_or_else(String::new, |at| format!(" since {}", utc(at)));
            let stopping = if job.stopping {
                "; it was told to stop"
            } else {
                ""
            };
            return match &attempt.result {
                Some(result) => format!(
                    "something of it still runs{stopping}; of the command itself: {}",
                    end_of(result)
                ),
                None => format!("it runs{since}{stopping}"),
            };
        }
        match &attempt.result {
            Some(result) => end_of(result),
            None if attempt.state == AttemptState::Unknown => {
                "it does not run, and its outcome is unknown".to_owned()
            }
            None => format!("it does not run: {}", attempt.state.as_str()),
        }
    }
}

fn not_waited_for() -> ApiError {
    ApiError::conflict(
        "call_not_running",
        "no turn waits for this command now: it has ended, or it is a job already; nothing was \
         changed; refresh",
    )
}

/// The session's jobs as its tools reach them.
#[derive(Debug)]
pub(super) struct OwnJobs {
    pub(super) outbox: mpsc::UnboundedSender<Message>,
}

impl OwnJobs {
    async fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Result<T, String> {
        let closed = || "the session was closed".to_owned();
        let (reply, answer) = oneshot::channel();
        self.outbox
            .send(Message::Command(command(reply)))
            .map_err(|_| closed())?;
        answer
            .await
            .map_err(|_| closed())?
            .map_err(|error| error.message)
    }
}

#[async_trait]
impl Jobs for OwnJobs {
    async fn look(&self, id: &str, offset: u64, limit: u64) -> Result<JobLook, String> {
        let id = id.to_owned();
        self.ask(|reply| Command::LookAtJob {
            id,
            offset,
            limit,
            reply,
        })
        .await
    }

    async fn stop(&self, id: &str) -> Result<String, String> {
        let id = id.to_owned();
        let mut over = self.ask(|reply| Command::StopJob(id, reply)).await?;
        let end = over.wait_for(Option::is_some).await;
        match end {
            Ok(words) => Ok(words.clone().unwrap_or_default()),
            Err(_) => Err("the session was closed before it ended".to_owned()),
        }
    }
}
