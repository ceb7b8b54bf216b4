//! What an actor is told.

use holdfast_api::ApiError;
use holdfast_api::history::{CompactionStarted, Rewind, RewindReply};
use holdfast_api::inbox::{EditItem, Enqueue, Enqueued, InboxReceipt, InboxView, MoveItem};
use holdfast_api::recovery::ToolRecoverySnapshot;
use holdfast_api::session::{Approve, Job, PatchSession, PendingPrompt, Status, Submit, Submitted};
use holdfast_api::transcript::{
    DiffReply, OutputPage, PageQuery, TranscriptPage, TranscriptSnapshot,
};
use holdfast_domain::recovery::admission::ActionRequest;
use holdfast_domain::recovery::process::Straggler;
use holdfast_provider::{ModelEvent, ProviderError};
use holdfast_tools::JobLook;
use tokio::sync::{oneshot, watch};

use super::ends::Ended;

/// Where an answer goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, ApiError>>;

/// One message.
pub(crate) enum Message {
    /// From a client.
    Command(Command),
    /// From the model of a step.
    Model {
        turn_id: String,
        step: u32,
        item: Box<Result<ModelEvent, ProviderError>>,
    },
    /// The request of a step is over, whatever it said.
    ModelGone {
        turn_id: String,
        step: u32,
        panicked: bool,
    },
    /// A tool ended; `None` when its task panicked.
    ToolEnded {
        call_id: String,
        attempt_id: String,
        outcome: Box<Option<Ended>>,
    },
    /// A part of a running call's output.
    Progress { attempt_id: String, text: String },
    /// From the watcher of a job.
    Job { attempt_id: String, news: JobNews },
    /// Stop was asked for through the switch.
    StopRequested,
}

/// What a job's watcher saw.
pub(crate) enum JobNews {
    /// The root process ended, and so its call.
    Exited(Box<Ended>),
    /// Nothing of it is left.
    Gone,
    /// It was fenced before its start.
    NotStarted,
    /// It could not be told to stop; why.
    StopFailed(String),
    /// Its supervisor is gone. Processes that live on are watched by the attempt's id (SV-04).
    Lost {
        reason: String,
        stragglers: Vec<Straggler>,
    },
}

/// What a person does to what waits.
pub(crate) enum QueueChange {
    Edit(String, EditItem),
    Delete(String),
    Move(MoveItem),
    Pause,
    Resume,
}

/// What a client asks.
pub(crate) enum Command {
    Status(Reply<Status>),
    Submit(Submit, Reply<Submitted>),
    Inbox(Reply<InboxView>),
    Receipt(String, Reply<InboxReceipt>),
    Enqueue(Enqueue, Reply<Enqueued>),
    Queue(QueueChange, Reply<()>),
    Compact(Reply<CompactionStarted>),
    Rewind(Rewind, Reply<RewindReply>),
    /// A copy of the session's log into the folder of that lease, while nothing is appended.
    Copy {
        to: holdfast_journal::Lease,
        to_id: String,
        reply: Reply<holdfast_journal::Lease>,
    },
    Prompts(Reply<Vec<PendingPrompt>>),
    Approve(Approve, Reply<()>),
    Recovery(Reply<ToolRecoverySnapshot>),
    Resolve(ActionRequest, String, Reply<ToolRecoverySnapshot>),
    Patch(PatchSession, Reply<()>),
    Page(PageQuery, Reply<TranscriptPage>),
    Snapshot(Reply<TranscriptSnapshot>),
    Diff(String, Reply<DiffReply>),
    Output(String, u64, Reply<OutputPage>),
    Jobs(Reply<Vec<Job>>),
    CancelJob(String, Reply<()>),
    /// TR-50: the command of that attempt.
    Background(String, Reply<Job>),
    /// From a model.
    LookAtJob {
        id: String,
        offset: u64,
        limit: u64,
        reply: Reply<JobLook>,
    },
    /// From a model; what comes back tells how it ended, once it has.
    StopJob(String, Reply<watch::Receiver<Option<String>>>),
    /// Stop everything, store the end, give the session back.
    Close {
        keep_jobs: bool,
        reply: Reply<()>,
    },
}
