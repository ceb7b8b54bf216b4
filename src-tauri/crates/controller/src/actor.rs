//! One session's actor: the only writer of its log and the only one that decides what runs.
//!
//! Guarantees: messages are taken one at a time; after each one the next step of the turn is read
//! off the fold (so a live turn and its continuation can't differ), and the runtime state is
//! committed (RS-07). Reads change nothing (RS-01).

mod background;
mod calls;
mod clients;
mod ends;
mod guard;
mod halt;
mod history;
mod inbox;
mod input;
mod jobs;
mod live;
pub(crate) mod message;
mod pages;
mod prompts;
mod recovery;
mod restart;
mod retry;
pub(crate) mod switch;
mod turn;
pub(crate) mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use holdfast_api::ApiError;
use holdfast_api::event::{Event, Frame};
use holdfast_api::session::LastError;
use holdfast_api::transcript::{LiveMessage, ToolView};
use holdfast_domain::recovery::barrier::InFlight;
use holdfast_domain::runtime::snapshot::{Commits, Sample};
use holdfast_domain::transcript::record::{Entry, Record};
use holdfast_domain::transcript::session::Call;
use holdfast_journal::JournalError;
use holdfast_tools::{Prepared, Workspace};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use self::background::Moves;
use self::jobs::JobState;
use self::message::{Command, Message, Reply};
use self::restart::Occasion;
use self::switch::StopSwitch;
use crate::shared::Shared;
use crate::store::{Condition, Store, api_error};

/// How a host reaches a session.
#[derive(Debug, Clone)]
pub(crate) struct SessionHandle {
    messages: mpsc::UnboundedSender<Message>,
    /// Stop, without waiting for the actor.
    pub(crate) switch: Arc<StopSwitch>,
}

impl SessionHandle {
    /// Asks the actor and waits for its answer.
    pub(crate) async fn ask<T>(
        &self,
        command: impl FnOnce(Reply<T>) -> Command,
    ) -> Result<T, ApiError> {
        let closed = || {
            ApiError::conflict(
                "session_closed",
                "the session was closed; what was recorded is intact; open it again",
            )
        };
        let (reply, answer) = tokio::sync::oneshot::channel();
        self.messages
            .send(Message::Command(command(reply)))
            .map_err(|_| closed())?;
        answer.await.map_err(|_| closed())?
    }

    /// The actor is gone: the session has to be opened again.
    pub(crate) fn is_gone(&self) -> bool {
        self.messages.is_closed()
    }

    /// Tells the actor that the switch was used.
    pub(crate) fn stop_requested(&self) {
        // A closed actor has nothing to stop.
        let _ = self.messages.send(Message::StopRequested);
    }
}

/// The turn whose loop runs, or a retry.
pub(crate) struct Running {
    /// The turn; of a retry, the id of its phase, which is no turn's.
    turn_id: String,
    /// A person's retry (TR-36): one call and no model.
    retry: bool,
    cancel: CancellationToken,
    model: Option<AbortHandle>,
    /// Calls whose executor this host owns: call id → attempt id.
    calls: BTreeMap<String, String>,
    /// By which its commands are sent to the background: attempt id → switch (TR-50).
    detach: BTreeMap<String, CancellationToken>,
    live: LiveMessage,
    streaming: bool,
    /// It is no turn but a compaction: last record for which the summary will stand.
    compacting: Option<u64>,
}

/// One session.
pub(crate) struct Actor {
    host: Arc<Shared>,
    id: String,
    store: Store,
    /// `Err` when the folder can't be used now: why.
    workspace: Result<Workspace, String>,
    inbox: mpsc::UnboundedReceiver<Message>,
    outbox: mpsc::UnboundedSender<Message>,
    switch: Arc<StopSwitch>,
    running: Option<Running>,
    finishing: bool,
    closed: bool,
    /// At the end of the session, what runs without a turn goes on.
    keep_jobs: bool,
    /// The turn was left as it is, to be found by the next host; nothing more happens here.
    left: bool,
    closing: Vec<Reply<()>>,
    commits: Commits,
    jobs: BTreeMap<String, JobState>,
    /// Wishes to have a running command in the background: attempt id → who waits for the answer.
    moves: BTreeMap<String, Moves>,
    /// The end of what running calls have printed so far.
    outputs: BTreeMap<String, String>,
    prepared: BTreeMap<String, Prepared>,
    last_error: Option<LastError>,
    /// What waits could not be begun or paused in the log: it stands still until it is resumed.
    queue_held: bool,
    /// The latest turn's end could not be stored; it counts as ended all the same.
    unstored_end: Option<String>,
    /// Real outcomes that could not be stored yet; they come first once storage works again.
    unstored: Vec<Record>,
    condition: Condition,
}

impl Actor {
    /// Starts the actor of an opened session; recovery is the first thing that it does.
    pub(crate) fn spawn(
        host: Arc<Shared>,
        id: String,
        store: Store,
        condition: Condition,
    ) -> SessionHandle {
        let (outbox, inbox) = mpsc::unbounded_channel();
        let switch = Arc::new(StopSwitch::default());
        let handle = SessionHandle {
            messages: outbox.clone(),
            switch: Arc::clone(&switch),
        };
        let workspace = Workspace::open(
            &PathBuf::from(&store.session.header.workspace),
            vec![host.data.clone()],
        )
        .map_err(|error| error.to_string());
        let commits = Commits::new(
            host.source.id(),
            holdfast_api::session::session_path(&id),
            &Sample::default(),
        );
        let (hub, session_id) = (Arc::clone(&host.hub), id.clone());
        let epoch = commits.current().runtime_epoch.clone();
        let actor = Self {
            host,
            id,
            store,
            workspace,
            inbox,
            outbox,
            switch,
            running: None,
            finishing: false,
            closed: false,
            keep_jobs: false,
            left: false,
            closing: Vec::new(),
            commits,
            jobs: BTreeMap::new(),
            moves: BTreeMap::new(),
            outputs: BTreeMap::new(),
            prepared: BTreeMap::new(),
            last_error: None,
            queue_held: false,
            unstored_end: None,
            unstored: Vec::new(),
            condition,
        };
        let run = tokio::spawn(actor.run());
        tokio::spawn(async move {
            if run.await.is_err() {
                // A defect: nothing of the session is owned here any more, and nobody is left to
                // say so. What is recorded is read at the next opening.
                tracing::error!(
                    "a session ended by a defect; it is opened again when it is needed"
                );
                hub.remove_state(&session_id, &epoch);
            }
        });
        handle
    }

    async fn run(mut self) {
        self.recover(Occasion::Opened).await;
        self.publish_first();
        while let Some(message) = self.inbox.recv().await {
            self.take(message).await;
            if self.left {
                break;
            }
            self.advance().await;
            self.forget_outputs();
            self.publish();
            if self.is_done() {
                break;
            }
        }
        self.write_index();
        self.store.close().await;
        let epoch = &self.commits.current().runtime_epoch;
        self.host.hub.remove_state(&self.id, epoch);
        for reply in self.closing.drain(..) {
            let _ = reply.send(Ok(()));
        }
    }

    async fn take(&mut self, message: Message) {
        match message {
            Message::Command(command) => self.command(command).await,
            Message::Model { turn_id, item, .. } if self.compaction() == Some(turn_id.as_str()) => {
                self.summary_item(*item).await;
            }
            Message::Model {
                turn_id,
                step,
                item,
            } => self.model_item(&turn_id, step, *item).await,
            Message::ModelGone { turn_id, .. } if self.compaction() == Some(turn_id.as_str()) => {
                self.summary_gone();
            }
            Message::ModelGone {
                turn_id,
                step,
                panicked,
            } => self.model_gone(&turn_id, step, panicked).await,
            Message::ToolEnded {
                call_id,
                attempt_id,
                outcome,
            } => self.tool_ended(&call_id, &attempt_id, *outcome).await,
            Message::Progress { attempt_id, text } => self.progress(&attempt_id, text),
            Message::Job { attempt_id, news } => self.job_news(&attempt_id, news).await,
            Message::StopRequested => self.stop_requested().await,
        }
    }

    fn is_done(&self) -> bool {
        self.closed && self.running.is_none() && self.jobs.is_empty()
    }

    /// Attempts whose executor this host owns now.
    fn in_flight(&self) -> InFlight {
        let calls = self.running.iter().flat_map(|turn| turn.calls.values());
        let jobs = self
            .jobs
            .iter()
            .filter(|(_, job)| job.kind.is_in_flight())
            .map(|(attempt_id, _)| attempt_id);
        calls.chain(jobs).cloned().collect()
    }

    /// Calls whose executor this host owns now.
    fn running_calls(&self) -> BTreeSet<String> {
        self.running
            .iter()
            .flat_map(|turn| turn.calls.keys().cloned())
            .collect()
    }

    /// RS-04: what recovery found is revision 1; nobody sees a session that was not sampled yet.
    fn publish_first(&mut self) {
        let first = self.commits.current();
        let (epoch, revision) = (first.runtime_epoch.clone(), first.revision);
        if revision == 1 {
            let binding = self.commits.binding().to_owned();
            let sample = self.sample();
            self.commits.rebind(epoch, binding, &sample);
        }
        self.host
            .hub
            .publish_state(&self.id, self.commits.current().clone());
        self.publish();
    }

    /// RS-07: the commit boundary.
    fn publish(&mut self) {
        let sample = self.sample();
        if let Some(state) = self.commits.commit(&sample) {
            tracing::info!(
                source = "commit",
                epoch = state.epoch_mark(),
                revision = state.revision,
                phase = ?state.phase,
                jobs = state.background_jobs,
                unresolved = state.unresolved,
                "runtime state"
            );
            self.host.hub.publish_state(&self.id, state.clone());
        }
    }

    /// Everything is sampled from this actor's own state at once, so no sample is mixed (RS-10).
    fn sample(&self) -> Sample {
        let session = &self.store.session;
        let turn = session.turn.as_ref();
        let stored_end = turn
            .and_then(|turn| turn.ended.as_ref())
            .map(|ended| ended.status.clone());
        let (turn_id, turn_end) = match &self.running {
            // A retry and a compaction are phases of their own, with an id by which each is stopped
            // and no turn's.
            Some(phase) if phase.retry || phase.compacting.is_some() => {
                (phase.turn_id.clone(), String::new())
            }
            Some(_) | None => (
                turn.map(|turn| turn.id.clone()).unwrap_or_default(),
                stored_end
                    .or_else(|| self.unstored_end.clone())
                    .unwrap_or_default(),
            ),
        };
        Sample {
            closed: self.closed,
            running: self.running.is_some() && !self.finishing,
            // What waits begins now: nobody is told "idle" in between (RS-16).
            finishing: self.finishing || self.ready().is_some(),
            cancelling: self
                .running
                .as_ref()
                .is_some_and(|turn| turn.cancel.is_cancelled()),
            streaming: self.running.as_ref().is_some_and(|turn| turn.streaming),
            pending_prompt: session.prompt.is_some(),
            turn_id,
            turn_end,
            turn_event_seq: session.last_seq,
            background_jobs: self.jobs.len() as u64,
            unresolved: session.unresolved(&self.in_flight()),
            queue_paused: self.is_queue_paused() && !session.inbox.items().is_empty(),
        }
    }

    /// Stores records, all or none.
    async fn commit(
        &mut self,
        records: Vec<Record>,
        attempts: Vec<String>,
    ) -> Result<Vec<Entry>, JournalError> {
        let at = self.host.source.now();
        let stored = self.store.commit(at, records, attempts).await;
        if let Err(error) = &stored {
            tracing::warn!(code = error.code(), "records could not be stored");
            self.notice(error.code(), error.to_string());
        }
        stored
    }

    /// Stores what happened already and can't be taken back: a result, an end. After a failure that
    /// left the log working it is offered once more, as new records (TR-48).
    async fn commit_evidence(&mut self, records: Vec<Record>) -> Result<Vec<Entry>, JournalError> {
        match self.commit(records.clone(), Vec::new()).await {
            Err(JournalError::WriteFailed { .. }) => self.commit(records, Vec::new()).await,
            stored => stored,
        }
    }

    /// TR-48, C12: a session that could not be written is tried again when it is needed.
    async fn writable(&mut self) -> Result<(), ApiError> {
        if self.closed {
            return Err(ApiError::conflict(
                "session_closed",
                "the session is closed; nothing was changed; open it again",
            ));
        }
        let was_failed = self.store.is_failed();
        if was_failed {
            let at = self.host.source.now();
            self.store
                .reopen(at)
                .await
                .map_err(|error| api_error(&error))?;
        }
        self.store_late().await.map_err(|error| api_error(&error))?;
        // A turn that runs accounts for its own calls.
        if was_failed && self.running.is_none() {
            self.recover(Occasion::Healed).await;
        }
        Ok(())
    }

    /// Stores the real outcomes that wait for storage.
    async fn store_late(&mut self) -> Result<(), JournalError> {
        while let Some(record) = self.unstored.first().cloned() {
            let entries = self.commit_evidence(vec![record]).await?;
            self.unstored.remove(0);
            let call_id = entries
                .first()
                .and_then(|entry| restart::attempt_of(&entry.record))
                .and_then(|id| self.store.session.attempt(&id))
                .map(|attempt| attempt.identity.call_id.clone());
            if let Some(call_id) = call_id {
                self.emit_result(&call_id, entries.first().map(|entry| entry.seq));
            }
        }
        Ok(())
    }

    fn emit(&self, turn_id: &str, seq: Option<u64>, event: Event) {
        self.host.hub.publish(&Frame {
            session_id: self.id.clone(),
            turn_id: turn_id.to_owned(),
            seq,
            event,
        });
    }

    fn notice(&self, code: &str, message: String) {
        self.emit(
            "",
            None,
            Event::Notice {
                code: code.to_owned(),
                message,
            },
        );
    }

    fn tool_view(&self, call: &Call) -> ToolView {
        let read_only = !self.host.is_mutating(&call.proposed);
        views::tool_view(&self.store.session, call, &self.in_flight(), read_only)
    }

    fn tool_view_of(&self, call_id: &str) -> Option<(String, ToolView)> {
        let call = self.store.session.call(call_id)?;
        Some((call.turn_id.clone(), self.tool_view(call)))
    }

    /// Tells that a call has its result, or that its state changed. A call that was taken back is
    /// in no transcript; its state is in the recovery snapshot.
    fn emit_result(&self, call_id: &str, seq: Option<u64>) {
        let is_rewound = |call: &Call| call.rewound.is_some();
        if self.store.session.call(call_id).is_some_and(is_rewound) {
            return;
        }
        if let Some((turn_id, tool)) = self.tool_view_of(call_id) {
            self.emit(&turn_id, seq, Event::ToolResult { tool });
        }
    }

    /// Tells of the messages in the transcript's end that these records made.
    fn emit_messages(&self, entries: &[Entry]) {
        let Some(first) = entries.first() else {
            return;
        };
        for item in views::messages_since(&self.store.session, &self.in_flight(), first.seq) {
            let turn_id = item.turn_id.clone();
            self.emit(&turn_id, Some(item.seq), Event::Message { item });
        }
    }

    /// Writes the derived summary for lists, in the background.
    fn write_index(&self) {
        let summary = crate::summary::Summary::of(&self.store.session, &InFlight::new());
        if let Ok(text) = serde_json::to_string(&summary) {
            self.store.write_index(text);
        }
    }
}
