//! The table of host operations, as this host carries them out.

use async_trait::async_trait;
use holdfast_api::ApiError;
use holdfast_api::history::{CompactionStarted, Rewind, RewindReply};
use holdfast_api::host::{Selector, SessionHost};
use holdfast_api::inbox::{EditItem, Enqueue, Enqueued, InboxReceipt, InboxView, MoveItem};
use holdfast_api::recovery::ToolRecoverySnapshot;
use holdfast_api::session::{
    Approve, BackgroundJob, Cancel, CancelJob, Cancelled, CreateSession, CreatedSession, Job,
    PatchSession, PendingPrompt, RuntimeStates, SessionsPage, SessionsQuery, Status, Submit,
    Submitted,
};
use holdfast_api::transcript::{
    DiffReply, OutputPage, PageQuery, TranscriptPage, TranscriptSnapshot,
};
use holdfast_domain::recovery::admission::ActionRequest;

use super::Host;
use crate::actor::message::{Command, QueueChange};

#[async_trait]
impl SessionHost for Host {
    async fn status(&self, selector: &Selector) -> Result<Status, ApiError> {
        match self.selected_id(selector) {
            Ok(id) => self.session(&id).await?.ask(Command::Status).await,
            Err(error) if error.code == "no_session" => Ok(no_session()),
            Err(error) => Err(error),
        }
    }

    async fn runtime_states(&self) -> Result<RuntimeStates, ApiError> {
        Ok(self.shared.hub.runtime_states())
    }

    async fn tool_recovery_snapshot(
        &self,
        selector: &Selector,
    ) -> Result<ToolRecoverySnapshot, ApiError> {
        self.select(selector).await?.ask(Command::Recovery).await
    }

    async fn resolve_tool_recovery(
        &self,
        selector: &Selector,
        request: ActionRequest,
        source: &str,
    ) -> Result<ToolRecoverySnapshot, ApiError> {
        let source = source.to_owned();
        self.select(selector)
            .await?
            .ask(|reply| Command::Resolve(request, source, reply))
            .await
    }

    async fn list_sessions(&self, query: &SessionsQuery) -> Result<SessionsPage, ApiError> {
        let open: std::collections::HashSet<String> = self.open_ids().await;
        let shared = std::sync::Arc::clone(&self.shared);
        let query = query.clone();
        tokio::task::spawn_blocking(move || shared.list(&query, |id| open.contains(id)))
            .await
            .map_err(|_| {
                ApiError::internal("internal", "the list could not be made because of a defect")
            })?
    }

    async fn create_session(&self, request: CreateSession) -> Result<CreatedSession, ApiError> {
        self.create(request).await
    }

    async fn patch_session(&self, session_id: &str, patch: PatchSession) -> Result<(), ApiError> {
        self.session(session_id)
            .await?
            .ask(|reply| Command::Patch(patch, reply))
            .await
    }

    async fn delete_session(&self, session_id: &str) -> Result<(), ApiError> {
        self.trash(session_id).await
    }

    async fn resume(&self, session_id: &str) -> Result<(), ApiError> {
        // The first answer comes after recovery, so that what is current tells the truth.
        self.session(session_id).await?.ask(Command::Status).await?;
        self.shared.hub.make_current(session_id);
        Ok(())
    }

    async fn submit(&self, selector: &Selector, request: Submit) -> Result<Submitted, ApiError> {
        self.select(selector)
            .await?
            .ask(|reply| Command::Submit(request, reply))
            .await
    }

    async fn inbox(&self, selector: &Selector) -> Result<InboxView, ApiError> {
        self.select(selector).await?.ask(Command::Inbox).await
    }

    async fn inbox_receipt(
        &self,
        selector: &Selector,
        key: &str,
    ) -> Result<InboxReceipt, ApiError> {
        let key = key.to_owned();
        self.select(selector)
            .await?
            .ask(|reply| Command::Receipt(key, reply))
            .await
    }

    async fn enqueue(&self, selector: &Selector, request: Enqueue) -> Result<Enqueued, ApiError> {
        self.select(selector)
            .await?
            .ask(|reply| Command::Enqueue(request, reply))
            .await
    }

    async fn edit_item(
        &self,
        selector: &Selector,
        item_id: &str,
        edit: EditItem,
    ) -> Result<(), ApiError> {
        let change = QueueChange::Edit(item_id.to_owned(), edit);
        self.change_queue(selector, change).await
    }

    async fn delete_item(&self, selector: &Selector, item_id: &str) -> Result<(), ApiError> {
        let change = QueueChange::Delete(item_id.to_owned());
        self.change_queue(selector, change).await
    }

    async fn move_item(&self, selector: &Selector, request: MoveItem) -> Result<(), ApiError> {
        self.change_queue(selector, QueueChange::Move(request))
            .await
    }

    async fn pause_inbox(&self, selector: &Selector) -> Result<(), ApiError> {
        self.change_queue(selector, QueueChange::Pause).await
    }

    async fn resume_inbox(&self, selector: &Selector) -> Result<(), ApiError> {
        self.change_queue(selector, QueueChange::Resume).await
    }

    async fn cancel(&self, selector: &Selector, request: Cancel) -> Result<Cancelled, ApiError> {
        let handle = self.select(selector).await?;
        let stopped = handle.switch.stop(request.turn_id.as_deref());
        if stopped == Cancelled::Requested {
            handle.stop_requested();
        }
        Ok(stopped)
    }

    async fn compact(&self, selector: &Selector) -> Result<CompactionStarted, ApiError> {
        self.select(selector).await?.ask(Command::Compact).await
    }

    async fn rewind(&self, selector: &Selector, request: Rewind) -> Result<RewindReply, ApiError> {
        self.select(selector)
            .await?
            .ask(|reply| Command::Rewind(request, reply))
            .await
    }

    async fn fork(&self, selector: &Selector) -> Result<CreatedSession, ApiError> {
        self.copied(selector).await
    }

    async fn pending_prompts(&self, selector: &Selector) -> Result<Vec<PendingPrompt>, ApiError> {
        self.select(selector).await?.ask(Command::Prompts).await
    }

    async fn approve(&self, selector: &Selector, answer: Approve) -> Result<(), ApiError> {
        self.select(selector)
            .await?
            .ask(|reply| Command::Approve(answer, reply))
            .await
    }

    async fn transcript_page(
        &self,
        selector: &Selector,
        query: &PageQuery,
    ) -> Result<TranscriptPage, ApiError> {
        let query = query.clone();
        self.select(selector)
            .await?
            .ask(|reply| Command::Page(query, reply))
            .await
    }

    async fn transcript_snapshot(
        &self,
        selector: &Selector,
    ) -> Result<TranscriptSnapshot, ApiError> {
        self.select(selector).await?.ask(Command::Snapshot).await
    }

    async fn diff(&self, selector: &Selector, attempt_id: &str) -> Result<DiffReply, ApiError> {
        let attempt_id = attempt_id.to_owned();
        self.select(selector)
            .await?
            .ask(|reply| Command::Diff(attempt_id, reply))
            .await
    }

    async fn output(
        &self,
        selector: &Selector,
        attempt_id: &str,
        offset: u64,
    ) -> Result<OutputPage, ApiError> {
        let attempt_id = attempt_id.to_owned();
        self.select(selector)
            .await?
            .ask(|reply| Command::Output(attempt_id, offset, reply))
            .await
    }

    async fn jobs(&self, selector: &Selector) -> Result<Vec<Job>, ApiError> {
        self.select(selector).await?.ask(Command::Jobs).await
    }

    async fn cancel_job(&self, selector: &Selector, request: CancelJob) -> Result<(), ApiError> {
        self.select(selector)
            .await?
            .ask(|reply| Command::CancelJob(request.id, reply))
            .await
    }

    async fn background_job(
        &self,
        selector: &Selector,
        request: BackgroundJob,
    ) -> Result<Job, ApiError> {
        self.select(selector)
            .await?
            .ask(|reply| Command::Background(request.attempt_id, reply))
            .await
    }
}

impl Host {
    async fn change_queue(&self, selector: &Selector, change: QueueChange) -> Result<(), ApiError> {
        self.select(selector)
            .await?
            .ask(|reply| Command::Queue(change, reply))
            .await
    }
}

fn no_session() -> Status {
    Status {
        session_id: String::new(),
        session_path: String::new(),
        title: String::new(),
        workspace: String::new(),
        model: String::new(),
        mode: String::new(),
        running: false,
        pending_prompt: false,
        background_jobs: 0,
        cancel_requested: false,
        cancellable: false,
        storage_failed: false,
        runtime_state: None,
        last_error: None,
    }
}
