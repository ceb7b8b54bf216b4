//! The host of sessions that is somewhere else, as the same trait that the local one has (TR-02),
//! whichever way it speaks.

use std::sync::Arc;

use async_trait::async_trait;
use holdfast_api::history::{CompactionStarted, Rewind, RewindReply};
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
use holdfast_api::{ApiError, Selector, SessionHost};
use holdfast_domain::recovery::admission::ActionRequest;

use crate::connection::Connection;
use crate::dialect::Dialect;
use crate::foreign::ForeignHost;
use crate::own::OwnHost;

/// A host somewhere else. Clones are the same host.
#[derive(Clone)]
pub struct RemoteHost {
    connection: Connection,
}

impl RemoteHost {
    /// The host of that connection.
    pub fn new(connection: Connection) -> Self {
        Self { connection }
    }

    /// Its connection.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The host as it speaks on the latest connection.
    fn there(&self) -> Box<dyn SessionHost> {
        let inner = Arc::clone(&self.connection.inner);
        match inner.dialect() {
            Dialect::Own => Box::new(OwnHost { inner }),
            Dialect::Reasonix => Box::new(ForeignHost { inner }),
        }
    }
}

/// Every operation goes to the host as it speaks.
macro_rules! operations {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl SessionHost for RemoteHost {
            $(async fn $name(&self $(, $argument: $type)*) -> Result<$answer, ApiError> {
                self.there().$name($($argument),*).await
            })*
        }
    };
}

operations! {
    status(selector: &Selector) -> Status;
    runtime_states() -> RuntimeStates;
    tool_recovery_snapshot(selector: &Selector) -> ToolRecoverySnapshot;
    resolve_tool_recovery(selector: &Selector, request: ActionRequest, source: &str)
        -> ToolRecoverySnapshot;
    list_sessions(query: &SessionsQuery) -> SessionsPage;
    create_session(request: CreateSession) -> CreatedSession;
    patch_session(session_id: &str, patch: PatchSession) -> ();
    delete_session(session_id: &str) -> ();
    resume(session_id: &str) -> ();
    submit(selector: &Selector, request: Submit) -> Submitted;
    inbox(selector: &Selector) -> InboxView;
    inbox_receipt(selector: &Selector, key: &str) -> InboxReceipt;
    enqueue(selector: &Selector, request: Enqueue) -> Enqueued;
    edit_item(selector: &Selector, item_id: &str, edit: EditItem) -> ();
    delete_item(selector: &Selector, item_id: &str) -> ();
    move_item(selector: &Selector, request: MoveItem) -> ();
    pause_inbox(selector: &Selector) -> ();
    resume_inbox(selector: &Selector) -> ();
    cancel(selector: &Selector, request: Cancel) -> Cancelled;
    compact(selector: &Selector) -> CompactionStarted;
    rewind(selector: &Selector, request: Rewind) -> RewindReply;
    fork(selector: &Selector) -> CreatedSession;
    pending_prompts(selector: &Selector) -> Vec<PendingPrompt>;
    approve(selector: &Selector, answer: Approve) -> ();
    transcript_page(selector: &Selector, query: &PageQuery) -> TranscriptPage;
    transcript_snapshot(selector: &Selector) -> TranscriptSnapshot;
    diff(selector: &Selector, attempt_id: &str) -> DiffReply;
    output(selector: &Selector, attempt_id: &str, offset: u64) -> OutputPage;
    jobs(selector: &Selector) -> Vec<Job>;
    cancel_job(selector: &Selector, request: CancelJob) -> ();
    background_job(selector: &Selector, request: BackgroundJob) -> Job;
}
