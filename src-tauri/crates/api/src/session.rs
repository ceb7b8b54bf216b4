//! Sessions: list, creation, messages, questions, status.

use holdfast_domain::runtime::snapshot::RuntimeState;
use serde::{Deserialize, Serialize};

/// The path of a session on the wire: `session-id:<32 hex>`.
pub fn session_path(session_id: &str) -> String {
    format!("session-id:{session_id}")
}

/// `GET /status`. The old fields come from the same snapshot (RS-27). Without a current session the
/// ids are empty and nothing runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// 32 hex digits, or empty.
    pub session_id: String,
    /// `session-id:<32 hex>`, or empty.
    pub session_path: String,
    /// Title for display.
    pub title: String,
    /// Absolute path of the workspace.
    pub workspace: String,
    /// `provider/model`.
    pub model: String,
    /// Permission mode.
    pub mode: String,
    /// See [`RuntimeState`].
    pub running: bool,
    /// See [`RuntimeState`].
    pub pending_prompt: bool,
    /// See [`RuntimeState`].
    #[specta(type = f64)]
    pub background_jobs: u64,
    /// See [`RuntimeState`].
    pub cancel_requested: bool,
    /// See [`RuntimeState`].
    pub cancellable: bool,
    /// The session's log takes no more records until storage works again (TR-48).
    pub storage_failed: bool,
    /// The whole snapshot; absent without a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime_state: Option<RuntimeState>,
    /// How the latest turn failed: code and message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<LastError>,
}

/// How the latest turn failed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
pub struct LastError {
    /// Stable code.
    pub code: String,
    /// For a person.
    pub message: String,
}

/// `GET /runtime-states` (RS-26).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeStates {
    /// Always 1.
    pub schema_version: u32,
    /// The host's epoch.
    pub epoch: String,
    /// Changes when the content changes.
    #[specta(type = f64)]
    pub revision: u64,
    /// Open sessions, sorted by path.
    pub sessions: Vec<RuntimeStateRow>,
}

/// One open session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeStateRow {
    /// `session-id:<32 hex>`.
    pub session_path: String,
    /// It is the host's current session.
    pub current: bool,
    /// Its latest committed snapshot.
    pub state: RuntimeState,
}

/// `GET /sessions`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(default, deny_unknown_fields)]
pub struct SessionsQuery {
    /// Words that title or workspace must contain.
    pub query: Option<String>,
    /// `next` of an earlier page.
    pub cursor: Option<String>,
    /// Rows, 1…200; 50 without it.
    #[specta(type = Option<f64>)]
    pub limit: Option<usize>,
}

/// A page of the list, latest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
pub struct SessionsPage {
    /// Rows.
    pub items: Vec<SessionRow>,
    /// Cursor of the next page.
    pub next: Option<String>,
}

/// One session of the list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    /// 32 hex digits.
    pub session_id: String,
    /// `session-id:<32 hex>`.
    pub session_path: String,
    /// Title for display.
    pub title: String,
    /// Absolute path of the workspace.
    pub workspace: String,
    /// Unix milliseconds.
    #[specta(type = f64)]
    pub updated_at: u64,
    /// What it does.
    pub state: SessionState,
}

/// A session's state in the list: the committed snapshot of an open one, and for one that is not
/// open what its log says.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct SessionState {
    /// This host has it open.
    pub open: bool,
    /// `idle`, `executing`, `finishing`, `closed`.
    pub phase: String,
    /// See [`RuntimeState`].
    pub turn_status: String,
    /// A person is asked.
    pub pending_prompt: bool,
    /// Jobs that have not exited.
    #[specta(type = f64)]
    pub background_jobs: u64,
    /// Attempts behind the barrier.
    #[specta(type = f64)]
    pub unresolved: u64,
    /// The log could not be read to its end; why, for a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// `POST /sessions`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(deny_unknown_fields)]
pub struct CreateSession {
    /// Absolute path of a folder; the host's own default without it, if it has one.
    #[serde(default)]
    pub workspace: Option<String>,
    /// Title.
    #[serde(default)]
    pub title: Option<String>,
    /// `provider/model`; the configured default without it.
    #[serde(default)]
    pub model: Option<String>,
    /// Permission mode; the configured one without it.
    #[serde(default)]
    pub mode: Option<String>,
}

/// Reply to the creation of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct CreatedSession {
    /// 32 hex digits.
    pub session_id: String,
    /// `session-id:<32 hex>`.
    pub session_path: String,
}

/// `PATCH /sessions/{id}`; absent fields stay.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(default, deny_unknown_fields)]
pub struct PatchSession {
    /// New title.
    pub title: Option<String>,
    /// New permission mode.
    pub mode: Option<String>,
    /// New model.
    pub model: Option<String>,
    /// Archive or bring back.
    pub archived: Option<bool>,
}

/// `POST /resume`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Resume {
    /// 32 hex digits.
    pub session_id: String,
}

/// `POST /submit`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Submit {
    /// The message.
    pub input: String,
    /// The client's key; the same key again is the same message (RS-16).
    #[serde(default)]
    pub submission_id: Option<String>,
}

/// Reply to a submit: durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct Submitted {
    /// The turn.
    pub turn_id: String,
    /// The key was known already; nothing new was stored.
    pub duplicate: bool,
}

/// `POST /cancel`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Cancel {
    /// The turn that is meant; the present one without it.
    pub turn_id: Option<String>,
}

/// What became of a cancel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cancelled {
    /// Asked for; the snapshot tells when it has ended (202).
    Requested,
    /// Nothing of that turn runs (200).
    AlreadyEnded,
}

/// `GET /pending-prompts`: one question. `repeat` is the repeat guard (TR-46): it stands in the place
/// of the ordinary approval, in every mode, offers the scope `once` alone, and has `earlier`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct PendingPrompt {
    /// Its id.
    pub prompt_id: String,
    /// `approval` or `repeat`.
    pub kind: String,
    /// The turn.
    pub turn_id: String,
    /// What is asked.
    pub approval: Approval,
}

/// What a person is asked to allow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// Id for the answer.
    pub id: String,
    /// Tool name.
    pub tool: String,
    /// What it acts on.
    pub subject: String,
    /// Unified diff of a file change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// Generation for the answer.
    #[specta(type = f64)]
    pub generation: u64,
    /// Answers that are offered.
    pub scopes: Vec<String>,
    /// Our id of the call.
    pub call_id: String,
    /// Why it asks.
    pub reason: String,
    /// What may happen a second time; with the kind `repeat` alone. It is read off the present state
    /// with each reply, and when its `state` changes the question is asked with a new generation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub earlier: Option<Earlier>,
}

/// TR-46: the earlier attempt that a person decides about before its effect may happen again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct Earlier {
    /// Its id.
    pub attempt_id: String,
    /// Our id of its call, for the place in the transcript; empty when the log has lost it.
    pub call_id: String,
    /// Its tool.
    pub tool: String,
    /// What it acted on.
    pub subject: String,
    /// The new call is exactly this one. Else only the first command behind a restart that found
    /// this one open, which may be the same in other words.
    pub same_call: bool,
    /// The word that its card has: `user_confirmed`, `user_dismissed`, `interrupted`, `completed`
    /// or `failed` (both found after a restart), or `in_flight`.
    pub state: String,
    /// Unix milliseconds of its start.
    #[specta(type = Option<f64>)]
    pub started_at: Option<u64>,
    /// Unix milliseconds at which it ended, or at which a person resolved it; `null` while it runs.
    #[specta(type = Option<f64>)]
    pub ended_at: Option<u64>,
    /// Exit status of a command that exited by itself.
    pub exit_code: Option<i32>,
    /// How it ended, as a sentence in English: never its arguments or its output.
    pub outcome: String,
}

/// `POST /approve`. `allow` has no default: an answer without it is refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(deny_unknown_fields)]
pub struct Approve {
    /// Id of the approval.
    pub id: String,
    /// Generation that was seen.
    #[specta(type = f64)]
    pub generation: u64,
    /// Allowed or not.
    pub allow: bool,
    /// `once` (without it), or `session`.
    #[serde(default)]
    pub scope: Option<String>,
    /// The person's words, told to the model on a denial.
    #[serde(default)]
    pub reason: Option<String>,
}

/// `GET /jobs`: one command or process tree that nobody waits for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Id: that of its attempt.
    pub id: String,
    /// The command.
    pub subject: String,
    /// Unix milliseconds.
    #[specta(type = Option<f64>)]
    pub started_at: Option<u64>,
    /// The command, whole; empty when it is lost, or of an older host.
    #[serde(default)]
    pub command: String,
    /// Our id of its call.
    #[serde(default)]
    pub call_id: String,
    /// Process id of its supervisor, for display.
    pub pid: Option<u32>,
    /// Bytes of output that are there now; `GET /output?attempt` has them.
    #[serde(default)]
    #[specta(type = f64)]
    pub output_length: u64,
    /// `background`: a command that was not waited for (TR-50); `reattached`: one that was found
    /// running after a restart; `survivors`: what a finished command left;
    /// `stragglers`: what is left of a command whose outcome is unknown (SV-04).
    pub kind: String,
    /// Stop was asked for.
    pub stopping: bool,
}

/// `POST /jobs/background`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BackgroundJob {
    /// The running command's attempt.
    pub attempt_id: String,
}

/// `POST /jobs/cancel`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(deny_unknown_fields)]
pub struct CancelJob {
    /// Id of the job.
    pub id: String,
}
