//! What a host of sessions can do: the same trait for a local host and a remote one (TR-02).

use async_trait::async_trait;
use holdfast_domain::recovery::admission::ActionRequest;

use crate::error::ApiError;
use crate::history::{CompactionStarted, Rewind, RewindReply};
use crate::inbox::{EditItem, Enqueue, Enqueued, InboxReceipt, InboxView, MoveItem};
use crate::recovery::ToolRecoverySnapshot;
use crate::session::{
    Approve, BackgroundJob, Cancel, CancelJob, Cancelled, CreateSession, CreatedSession, Job,
    PatchSession, PendingPrompt, RuntimeStates, SessionsPage, SessionsQuery, Status, Submit,
    Submitted,
};
use crate::transcript::{DiffReply, OutputPage, PageQuery, TranscriptPage, TranscriptSnapshot};

/// Which session is meant, and which one the client expects (TR-41).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Selector {
    /// 32 hex digits; the current session without it.
    pub session: Option<String>,
    /// Asserts the session's id; wins over the path.
    pub expected_id: Option<String>,
    /// Asserts the session's path.
    pub expected_path: Option<String>,
}

impl Selector {
    /// A session by id.
    pub fn of(session_id: &str) -> Self {
        Self {
            session: Some(session_id.to_owned()),
            ..Self::default()
        }
    }
}

/// A host of sessions. Every method answers from one consistent moment; none repeats an effect.
#[async_trait]
pub trait SessionHost: Send + Sync {
    /// RS-27.
    async fn status(&self, selector: &Selector) -> Result<Status, ApiError>;
    /// RS-26: from memory only.
    async fn runtime_states(&self) -> Result<RuntimeStates, ApiError>;
    /// TR-25.
    async fn tool_recovery_snapshot(
        &self,
        selector: &Selector,
    ) -> Result<ToolRecoverySnapshot, ApiError>;
    /// TR-29…TR-38. `source` names the surface.
    async fn resolve_tool_recovery(
        &self,
        selector: &Selector,
        request: ActionRequest,
        source: &str,
    ) -> Result<ToolRecoverySnapshot, ApiError>;
    /// A page of the list.
    async fn list_sessions(&self, query: &SessionsQuery) -> Result<SessionsPage, ApiError>;
    /// A new session, which becomes the current one.
    async fn create_session(&self, request: CreateSession) -> Result<CreatedSession, ApiError>;
    /// Title, mode, model, archiving.
    async fn patch_session(&self, session_id: &str, patch: PatchSession) -> Result<(), ApiError>;
    /// To the trash; nothing is erased.
    async fn delete_session(&self, session_id: &str) -> Result<(), ApiError>;
    /// Opens a session and makes it the current one.
    async fn resume(&self, session_id: &str) -> Result<(), ApiError>;
    /// Answered when durable.
    async fn submit(&self, selector: &Selector, request: Submit) -> Result<Submitted, ApiError>;
    /// RS-16: what waits.
    async fn inbox(&self, selector: &Selector) -> Result<InboxView, ApiError>;
    /// What became of the message of a key, submitted or queued.
    async fn inbox_receipt(&self, selector: &Selector, key: &str)
    -> Result<InboxReceipt, ApiError>;
    /// Answered when durable. Begins at once where nothing is in its way.
    async fn enqueue(&self, selector: &Selector, request: Enqueue) -> Result<Enqueued, ApiError>;
    /// Another text, or sooner.
    async fn edit_item(
        &self,
        selector: &Selector,
        item_id: &str,
        edit: EditItem,
    ) -> Result<(), ApiError>;
    /// Given up; its key stays taken.
    async fn delete_item(&self, selector: &Selector, item_id: &str) -> Result<(), ApiError>;
    /// Another place.
    async fn move_item(&self, selector: &Selector, request: MoveItem) -> Result<(), ApiError>;
    /// Nothing of the queue runs until it is resumed.
    async fn pause_inbox(&self, selector: &Selector) -> Result<(), ApiError>;
    /// The queue goes on.
    async fn resume_inbox(&self, selector: &Selector) -> Result<(), ApiError>;
    /// Answered at once.
    async fn cancel(&self, selector: &Selector, request: Cancel) -> Result<Cancelled, ApiError>;
    /// Asks the model for a summary, which then stands in place of the conversation so far.
    async fn compact(&self, selector: &Selector) -> Result<CompactionStarted, ApiError>;
    /// Takes the conversation back to before a person's message; answered when durable.
    async fn rewind(&self, selector: &Selector, request: Rewind) -> Result<RewindReply, ApiError>;
    /// A copy under an id of its own. Receipts keep theirs, and open ones block there too (TR-06).
    async fn fork(&self, selector: &Selector) -> Result<CreatedSession, ApiError>;
    /// Questions that wait for a person.
    async fn pending_prompts(&self, selector: &Selector) -> Result<Vec<PendingPrompt>, ApiError>;
    /// Answers a question, once.
    async fn approve(&self, selector: &Selector, answer: Approve) -> Result<(), ApiError>;
    /// A page of the transcript.
    async fn transcript_page(
        &self,
        selector: &Selector,
        query: &PageQuery,
    ) -> Result<TranscriptPage, ApiError>;
    /// The newest items with the text that is still streaming.
    async fn transcript_snapshot(
        &self,
        selector: &Selector,
    ) -> Result<TranscriptSnapshot, ApiError>;
    /// The diff of a file change.
    async fn diff(&self, selector: &Selector, attempt_id: &str) -> Result<DiffReply, ApiError>;
    /// A part of a call's whole output.
    async fn output(
        &self,
        selector: &Selector,
        attempt_id: &str,
        offset: u64,
    ) -> Result<OutputPage, ApiError>;
    /// Process trees that outlive their calls.
    async fn jobs(&self, selector: &Selector) -> Result<Vec<Job>, ApiError>;
    /// Stops a job; it counts until its real exit.
    async fn cancel_job(&self, selector: &Selector, request: CancelJob) -> Result<(), ApiError>;
    /// A command that a turn waits for goes on as a job, and the turn without it (TR-50); answered
    /// when that is durable.
    async fn background_job(
        &self,
        selector: &Selector,
        request: BackgroundJob,
    ) -> Result<Job, ApiError>;
}
