//! Commands about sessions: the list, messages, Stop, questions, the transcript and jobs.

use holdfast_api::app::{
    CancelReply, Nothing, Tab, TabApprove, TabAttempt, TabCancel, TabJob, TabPage, TabRewind,
    TabSubmit,
};
use holdfast_api::desktop::{OpenSession, SessionChange, TabView};
use holdfast_api::history::{CompactionStarted, RewindReply};
use holdfast_api::inbox::{
    Enqueued, InboxReceipt, InboxView, TabEditItem, TabEnqueue, TabItem, TabKey, TabMoveItem,
};
use holdfast_api::session::{Job, PendingPrompt, SessionsPage, SessionsQuery, Submitted};
use holdfast_api::transcript::{DiffReply, OutputPage, TranscriptPage, TranscriptSnapshot};

use crate::commands::commands;

commands! {
    /// All sessions.
    list_sessions(SessionsQuery) -> SessionsPage;
    /// Title, mode, model or archiving of a session.
    change_session(SessionChange) -> Nothing;
    /// To the trash.
    delete_session(OpenSession) -> Nothing;
    /// A message; durable when answered.
    submit(TabSubmit) -> Submitted;
    /// What waits for its turn.
    inbox(Tab) -> InboxView;
    /// What became of the message of a key, submitted or queued.
    inbox_receipt(TabKey) -> InboxReceipt;
    /// A message that waits for its turn, or begins it; durable when answered.
    enqueue(TabEnqueue) -> Enqueued;
    /// Another text for what waits, or sooner.
    edit_item(TabEditItem) -> Nothing;
    /// Gives up what waits.
    delete_item(TabItem) -> Nothing;
    /// Another place for what waits.
    move_item(TabMoveItem) -> Nothing;
    /// Nothing that waits runs until it is resumed.
    pause_inbox(Tab) -> Nothing;
    /// What waits runs again.
    resume_inbox(Tab) -> Nothing;
    /// Stop.
    cancel(TabCancel) -> CancelReply;
    /// Asks the model for a summary, which then stands in place of the conversation so far.
    compact(Tab) -> CompactionStarted;
    /// Takes the conversation back to before a message; files and commands stay as they are.
    rewind(TabRewind) -> RewindReply;
    /// A copy of a session, in a new tab.
    fork_session(OpenSession) -> TabView;
    /// Questions that wait for a person.
    pending_prompts(Tab) -> Vec<PendingPrompt>;
    /// Answers a question, once.
    approve(TabApprove) -> Nothing;
    /// The newest items and what is still streaming.
    transcript_snapshot(Tab) -> TranscriptSnapshot;
    /// An older page.
    transcript_page(TabPage) -> TranscriptPage;
    /// The diff of a file change.
    diff(TabAttempt) -> DiffReply;
    /// A part of a whole output.
    output(TabAttempt) -> OutputPage;
    /// Process trees that outlive their calls.
    jobs(Tab) -> Vec<Job>;
    /// Stops a job.
    cancel_job(TabJob) -> Nothing;
    /// A running command goes on as a job.
    background_job(TabAttempt) -> Job;
}
