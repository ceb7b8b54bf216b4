//! Commands of clients: each is answered from the present fold, or handed to its part.

use holdfast_api::ApiError;
use holdfast_api::event::Event;
use holdfast_api::session::{Job, PatchSession, PendingPrompt, Status, session_path};
use holdfast_domain::transcript::record::SettingsChanged;

use super::message::{Command, QueueChange};
use super::{Actor, views};
use crate::config::Mode;
use crate::store::api_error;

impl Actor {
    pub(super) async fn command(&mut self, command: Command) {
        // A client that went away needs no answer.
        match command {
            Command::Status(reply) => {
                let _ = reply.send(Ok(self.status()));
            }
            Command::Submit(request, reply) => self.submit(request, reply).await,
            Command::Inbox(reply) => {
                let _ = reply.send(Ok(self.inbox_view()));
            }
            Command::Receipt(key, reply) => {
                let _ = reply.send(self.inbox_receipt(&key));
            }
            Command::Enqueue(request, reply) => self.enqueue(request, reply).await,
            Command::Queue(change, reply) => {
                let changed = match change {
                    QueueChange::Edit(id, edit) => self.edit_item(&id, edit).await,
                    QueueChange::Delete(id) => self.delete_item(&id).await,
                    QueueChange::Move(request) => self.move_item(request).await,
                    QueueChange::Pause => self.pause_queue().await,
                    QueueChange::Resume => self.resume_queue().await,
                };
                // The state is committed before the answer, so that both agree at once.
                self.publish();
                let _ = reply.send(changed);
            }
            Command::Compact(reply) => self.compact(reply).await,
            Command::Rewind(request, reply) => {
                let rewound = self.rewind(request).await;
                self.publish();
                let _ = reply.send(rewound);
            }
            Command::Copy { to, to_id, reply } => {
                let copied = self.copy(to, to_id).await;
                let _ = reply.send(copied);
            }
            Command::Prompts(reply) => {
                let _ = reply.send(Ok(self.prompts()));
            }
            Command::Approve(answer, reply) => {
                let answered = self.approve(answer).await;
                let _ = reply.send(answered);
            }
            Command::Recovery(reply) => {
                let _ = reply.send(Ok(self.recovery_snapshot()));
            }
            Command::Resolve(request, source, reply) => {
                let (answer, retried) = match self.resolve(&request, &source).await {
                    Ok((snapshot, retried)) => (Ok(snapshot), retried),
                    Err(error) => (Err(error), None),
                };
                // The state is committed before the answer, so that both agree at once.
                self.publish();
                let _ = reply.send(answer);
                if let Some(retried) = retried {
                    self.run_retry(retried).await;
                }
            }
            Command::Patch(patch, reply) => {
                let patched = self.patch(patch).await;
                let _ = reply.send(patched);
            }
            Command::Page(query, reply) => {
                let _ = reply.send(self.page(&query));
            }
            Command::Snapshot(reply) => {
                let _ = reply.send(Ok(self.transcript_snapshot()));
            }
            Command::Diff(attempt_id, reply) => {
                let _ = reply.send(self.diff(&attempt_id));
            }
            Command::Output(attempt_id, offset, reply) => {
                let _ = reply.send(self.output(&attempt_id, offset));
            }
            Command::Jobs(reply) => {
                let _ = reply.send(Ok(self.job_list()));
            }
            Command::CancelJob(id, reply) => {
                let _ = reply.send(self.cancel_job(&id));
            }
            Command::Background(attempt_id, reply) => self.move_to_background(attempt_id, reply),
            Command::LookAtJob {
                id,
                offset,
                limit,
                reply,
            } => {
                let _ = reply.send(self.look_at_job(&id, offset, limit));
            }
            Command::StopJob(id, reply) => {
                let _ = reply.send(self.stop_job(&id));
            }
            Command::Close { keep_jobs, reply } => {
                self.closing.push(reply);
                self.close(keep_jobs).await;
            }
        }
    }

    fn status(&self) -> Status {
        let state = self.commits.current();
        let session = &self.store.session;
        Status {
            session_id: self.id.clone(),
            session_path: session_path(&self.id),
            title: views::title(session),
            workspace: session.header.workspace.clone(),
            model: session.model.clone(),
            mode: session.mode.clone(),
            running: state.running,
            pending_prompt: state.pending_prompt,
            background_jobs: state.background_jobs,
            cancel_requested: state.cancel_requested,
            cancellable: state.cancellable,
            storage_failed: self.store.is_failed(),
            runtime_state: Some(state.clone()),
            last_error: self.last_error.clone(),
        }
    }

    fn prompts(&self) -> Vec<PendingPrompt> {
        self.store
            .session
            .prompt
            .iter()
            .map(|asked| views::prompt_view(&self.store.session, asked, &self.in_flight()))
            .collect()
    }

    fn job_list(&self) -> Vec<Job> {
        self.jobs
            .iter()
            .map(|(id, job)| self.job_view(id, job))
            .collect()
    }

    async fn patch(&mut self, patch: PatchSession) -> Result<(), ApiError> {
        self.writable().await?;
        if let Some(mode) = &patch.mode
            && Mode::parse(mode).is_none()
        {
            return Err(ApiError::bad_request(
                "mode_unknown",
                format!(
                    "the mode {mode:?} is not known; nothing was changed; use ask, edits, full or \
                     read-only"
                ),
            ));
        }
        if let Some(model) = &patch.model {
            self.host.models.client(model)?;
        }
        let change = SettingsChanged {
            title: patch.title.map(|title| title.chars().take(200).collect()),
            model: patch.model,
            mode: patch.mode,
            archived: patch.archived,
        };
        self.commit(vec![change.into()], Vec::new())
            .await
            .map_err(|error| api_error(&error))?;
        let session_path = session_path(&self.host.hub.current());
        self.emit("", None, Event::SessionChanged { session_path });
        self.write_index();
        Ok(())
    }
}
