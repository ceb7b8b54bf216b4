//! A data folder, a workspace, a host over storage that can fail, and one session of it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use holdfast_api::ApiError;
use holdfast_api::event::{Event, Frame};
use holdfast_api::host::{Selector, SessionHost};
use holdfast_api::recovery::ToolRecoverySnapshot;
use holdfast_api::session::{
    Approve, Cancel, Cancelled, CreateSession, PendingPrompt, Status, Submit,
};
use holdfast_api::transcript::{PageQuery, ToolView, TranscriptItem};
use holdfast_controller::config::Config;
use holdfast_controller::hub::Reader;
use holdfast_controller::source::Source;
use holdfast_controller::{Host, HostOptions};
use holdfast_domain::recovery::admission::{Action, ActionRequest};
use holdfast_domain::transcript::record::Record;
use holdfast_files::Faulty;
use holdfast_testkit::Ledger;
use holdfast_testkit::wait::{SOON, until_asked};
use holdfast_tools::BroughtTool;
use tempfile::TempDir;

use crate::gate::{Gate, Gated};
use crate::script::{Script, Scripted};

/// Counts: each reading is a millisecond later, each id a new one. No two benches have an id in
/// common: a command is found by its attempt's id among all processes.
#[derive(Debug)]
pub(crate) struct Counting {
    bench: [u8; 8],
    count: AtomicU64,
    broken: AtomicBool,
}

impl Counting {
    fn new() -> Self {
        static BENCHES: AtomicU64 = AtomicU64::new(0);
        let bench = u64::from(std::process::id()) << 32 | BENCHES.fetch_add(1, Ordering::SeqCst);
        Self {
            bench: bench.to_be_bytes(),
            count: AtomicU64::new(0),
            broken: AtomicBool::new(false),
        }
    }

    /// The next reading of the clock is a defect.
    pub(crate) fn break_once(&self) {
        self.broken.store(true, Ordering::SeqCst);
    }

    /// So much time goes by.
    pub(crate) fn skip(&self, time: Duration) {
        let millis = u64::try_from(time.as_millis()).unwrap();
        self.count.fetch_add(millis, Ordering::SeqCst);
    }

    fn next(&self) -> u64 {
        self.count.fetch_add(1, Ordering::SeqCst) + 1
    }
}

impl Source for Counting {
    fn now(&self) -> u64 {
        assert!(
            !self.broken.swap(false, Ordering::SeqCst),
            "a defect of the clock, on purpose"
        );
        1_800_000_000_000 + self.next()
    }

    fn random(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&self.bench);
        bytes[8..].copy_from_slice(&self.next().to_be_bytes());
        bytes
    }
}

/// Everything that a host stands on, and that outlives it.
pub(crate) struct Bench {
    folder: TempDir,
    pub(crate) storage: Faulty,
    pub(crate) gate: Arc<Gate>,
    pub(crate) script: Arc<Script>,
    pub(crate) source: Arc<Counting>,
    pub(crate) config: Config,
    /// TR-35.
    pub(crate) retry: bool,
    /// TR-32; the host's own when there is none.
    pub(crate) inspection_time: Option<Duration>,
    pub(crate) tools: Vec<Arc<dyn BroughtTool>>,
}

impl Bench {
    pub(crate) fn new() -> Self {
        supervisor();
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("workspace")).unwrap();
        let gate = Arc::<Gate>::default();
        Self {
            folder,
            storage: Faulty::new(Arc::new(Gated(Arc::clone(&gate)))),
            gate,
            script: Arc::default(),
            source: Arc::new(Counting::new()),
            config: Config::default(),
            retry: false,
            inspection_time: None,
            tools: Vec::new(),
        }
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace").canonicalize().unwrap()
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Outside of the workspace and of all that the host keeps.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn ledger(&self) -> Ledger {
        Ledger::at(self.outside("ledger"))
    }

    pub(crate) fn host(&self) -> Host {
        let mut options = HostOptions::new(
            self.data(),
            self.config.clone(),
            Arc::clone(&self.source) as Arc<dyn Source>,
            Arc::new(Scripted(Arc::clone(&self.script))),
        );
        options.workspace = Some(self.workspace());
        options.storage = Arc::new(self.storage.clone());
        options.retry_enabled = self.retry;
        options.inspection_time = self.inspection_time.unwrap_or(options.inspection_time);
        options.tools.clone_from(&self.tools);
        Host::new(options).unwrap()
    }

    /// A host with a new session.
    pub(crate) async fn session(&self, mode: &str) -> Session {
        let host = self.host();
        let created = host
            .create_session(CreateSession {
                mode: Some(mode.to_owned()),
                model: Some("scripted/model".to_owned()),
                ..CreateSession::default()
            })
            .await
            .unwrap();
        self.of(host, &created.session_id)
    }

    /// A session of a host.
    pub(crate) fn of(&self, host: Host, id: &str) -> Session {
        let folder = self.data().join("sessions").join(id);
        Session {
            reader: host.hub().reader(true, None, None),
            selector: Selector::of(id),
            host,
            id: id.to_owned(),
            folder,
        }
    }
}

/// The supervisor beside the test executables; built when it is not there.
fn supervisor() {
    static THERE: OnceLock<()> = OnceLock::new();
    THERE.get_or_init(|| {
        if holdfast_supervisor::find_binary().is_err() {
            let built = Command::new(env!("CARGO"))
                .args(["build", "-p", "holdfast-supervisor"])
                .status()
                .unwrap();
            assert!(built.success());
        }
    });
}

/// A session of a host, as a client has it.
pub(crate) struct Session {
    pub(crate) host: Host,
    pub(crate) id: String,
    pub(crate) selector: Selector,
    pub(crate) folder: PathBuf,
    pub(crate) reader: Reader,
}

impl Session {
    pub(crate) async fn try_submit(&self, text: &str) -> Result<String, ApiError> {
        let request = Submit {
            input: text.to_owned(),
            submission_id: None,
        };
        let submitted = self.host.submit(&self.selector, request).await?;
        Ok(submitted.turn_id)
    }

    pub(crate) async fn submit(&self, text: &str) -> String {
        self.try_submit(text).await.unwrap()
    }

    /// A whole turn; answers what was told until its end, the end included.
    pub(crate) async fn turn(&mut self, text: &str) -> Vec<Frame> {
        let turn_id = self.submit(text).await;
        let mut frames = self.until_done().await;
        // The end of an earlier turn may not have been read yet.
        while frames.last().is_some_and(|frame| frame.turn_id != turn_id) {
            frames = self.until_done().await;
        }
        frames
    }

    /// Frames up to the next end of a turn.
    pub(crate) async fn until_done(&mut self) -> Vec<Frame> {
        self.until("the turn's end", |event| {
            matches!(event, Event::TurnDone { .. })
        })
        .await
    }

    /// Frames up to the first that is meant.
    pub(crate) async fn until(&mut self, what: &str, meant: impl Fn(&Event) -> bool) -> Vec<Frame> {
        let mut found = Vec::new();
        let waiting = async {
            loop {
                for outgoing in self.reader.next().await {
                    let frame: Frame = serde_json::from_str(&outgoing.data).unwrap();
                    let last = meant(&frame.event);
                    found.push(frame);
                    if last {
                        return;
                    }
                }
            }
        };
        let in_time = tokio::time::timeout(SOON, waiting).await;
        assert!(
            in_time.is_ok(),
            "waited in vain for {what}; came: {found:#?}"
        );
        found
    }

    /// The status once it is as wanted.
    pub(crate) async fn when(&self, what: &str, wanted: impl Fn(&Status) -> bool) -> Status {
        until_asked(what, SOON, async || {
            Some(self.status().await).filter(&wanted)
        })
        .await
    }

    pub(crate) async fn idle(&self) -> Status {
        self.when("an idle session", |status| !status.running).await
    }

    pub(crate) async fn status(&self) -> Status {
        self.host.status(&self.selector).await.unwrap()
    }

    pub(crate) async fn stop(&self) -> Cancelled {
        self.host
            .cancel(&self.selector, Cancel::default())
            .await
            .unwrap()
    }

    pub(crate) async fn recovery(&self) -> ToolRecoverySnapshot {
        self.host
            .tool_recovery_snapshot(&self.selector)
            .await
            .unwrap()
    }

    /// The one unresolved attempt, once it is known to be one.
    pub(crate) async fn open_attempt(&self) -> String {
        self.when("an unresolved attempt", |status| {
            status
                .runtime_state
                .as_ref()
                .is_some_and(|state| state.unresolved == 1)
        })
        .await;
        let mut snapshot = self.recovery().await;
        snapshot.calls.remove(0).identity.attempt_id
    }

    /// An action on the present snapshot.
    pub(crate) async fn act(
        &self,
        action: Action,
        attempt_id: &str,
        inspection_id: &str,
    ) -> Result<ToolRecoverySnapshot, ApiError> {
        let snapshot = self.recovery().await;
        let request = request(&snapshot, action, attempt_id, inspection_id);
        self.resolve(request).await
    }

    pub(crate) async fn resolve(
        &self,
        request: ActionRequest,
    ) -> Result<ToolRecoverySnapshot, ApiError> {
        self.host
            .resolve_tool_recovery(&self.selector, request, "test")
            .await
    }

    /// Inspects; answers the inspection's id and the snapshot.
    pub(crate) async fn inspect(&self, attempt_id: &str) -> (String, ToolRecoverySnapshot) {
        let snapshot = self.act(Action::Inspect, attempt_id, "").await.unwrap();
        let call = snapshot
            .calls
            .iter()
            .find(|call| call.identity.attempt_id == attempt_id)
            .unwrap();
        (call.inspection_id.clone(), snapshot)
    }

    pub(crate) async fn prompts(&self) -> Vec<PendingPrompt> {
        self.host.pending_prompts(&self.selector).await.unwrap()
    }

    /// The question, once it is asked.
    pub(crate) async fn prompt(&self) -> PendingPrompt {
        self.when("a question", |status| status.pending_prompt)
            .await;
        self.prompts().await.remove(0)
    }

    pub(crate) async fn answer(&self, prompt: &PendingPrompt, allow: bool) -> Result<(), ApiError> {
        let answer = Approve {
            id: prompt.prompt_id.clone(),
            generation: prompt.approval.generation,
            allow,
            scope: None,
            reason: None,
        };
        self.host.approve(&self.selector, answer).await
    }

    /// The transcript, oldest first.
    pub(crate) async fn items(&self) -> Vec<TranscriptItem> {
        let query = PageQuery {
            limit: Some(500),
            ..PageQuery::default()
        };
        let page = self.host.transcript_page(&self.selector, &query).await;
        let mut items = page.unwrap().items;
        items.reverse();
        items
    }

    /// The calls of the transcript, oldest first.
    pub(crate) async fn tools(&self) -> Vec<ToolView> {
        self.items()
            .await
            .into_iter()
            .filter_map(|item| item.tool)
            .collect()
    }

    /// What is durable, read beside the host.
    pub(crate) fn log(&self) -> Vec<Record> {
        records(&self.folder, &self.id)
    }

    pub(crate) fn log_bytes(&self) -> Vec<u8> {
        std::fs::read(self.folder.join("log.jsonl")).unwrap()
    }
}

/// All records of a session's log.
pub(crate) fn records(folder: &Path, id: &str) -> Vec<Record> {
    let read = holdfast_journal::read_only(folder, id).unwrap();
    read.entries
        .iter()
        .map(|entry| Record::parse(&entry.kind, entry.payload.get()))
        .collect()
}

/// A request on a snapshot.
pub(crate) fn request(
    snapshot: &ToolRecoverySnapshot,
    action: Action,
    attempt_id: &str,
    inspection_id: &str,
) -> ActionRequest {
    ActionRequest {
        session_path: snapshot.session_path.clone(),
        runtime_epoch: snapshot.runtime_epoch.clone(),
        revision: snapshot.revision.clone(),
        attempt_id: attempt_id.to_owned(),
        inspection_id: inspection_id.to_owned(),
        action,
    }
}

/// Waits for a fact outside of the host.
pub(crate) async fn eventually<T>(what: &str, probe: impl FnMut() -> Option<T>) -> T {
    holdfast_testkit::wait::until(what, SOON, probe).await
}

/// Status and code of the turn's end in these frames.
pub(crate) fn ends(frames: &[Frame]) -> Vec<(String, String)> {
    frames
        .iter()
        .filter_map(|frame| match &frame.event {
            Event::TurnDone { status, code, .. } => Some((status.clone(), code.clone())),
            _ => None,
        })
        .collect()
}
