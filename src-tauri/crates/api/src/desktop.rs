//! What the window shows besides the session: tabs, projects, settings, and the one projection
//! from which every indicator comes (RS-18, RS-21).

use holdfast_domain::runtime::observed::Observed;
use serde::{Deserialize, Serialize};

use crate::event::Frame;
use crate::session::SessionRow;

/// RS-18: everything that indicators show, from one moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeStateProjection {
    /// 32 hex digits; new with every start of the app.
    pub epoch: String,
    /// Grows with every change of the content.
    #[specta(type = f64)]
    pub revision: u64,
    /// Sorted by tab and path.
    pub sessions: Vec<RuntimeSession>,
    /// One row for each session of the project tree.
    pub topics: Vec<Topic>,
}

/// Whether a state is known to be the present one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum Freshness {
    /// Confirmed.
    Synced,
    /// The last known facts.
    Unknown,
}

/// RS-18: a session as a tab has it, or one that runs without a tab (`tabId` empty).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct RuntimeSession {
    /// Id of the tab; empty for a session without one.
    pub tab_id: String,
    /// `local`, or the id of the remote host.
    pub scope: String,
    /// Absolute path of the workspace.
    pub workspace_root: String,
    /// Row in the project tree: the session's id.
    pub topic_id: String,
    /// `session-id:<32 hex>`.
    pub session_path: String,
    /// Grows when the tab is bound to another session.
    #[specta(type = f64)]
    pub session_generation: u64,
    /// A tab shows it.
    pub open: bool,
    /// It runs on another machine.
    pub remote: bool,
    /// That machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_id: Option<String>,
    /// Whether the state is confirmed.
    pub freshness: Freshness,
    /// The last published snapshot, or what a host without snapshots says (RS-14).
    pub state: Observed,
}

/// RS-15: what a row shows, the first that is true.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum TopicStatus {
    /// The turn's end is being stored.
    Finishing,
    /// Stop was asked for.
    Cancelling,
    /// A person is asked.
    WaitingConfirmation,
    /// Text arrives.
    Streaming,
    /// All else of a running turn.
    Thinking,
    /// Only jobs run.
    BackgroundJobs,
    /// The latest turn failed.
    Error,
    /// The queue is paused.
    Paused,
    /// A result waits to be delivered.
    AwaitingDelivery,
    /// Nothing.
    Idle,
}

/// RS-18: one session's row in the project tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct Topic {
    /// `local`, or the id of the remote host.
    pub scope: String,
    /// Absolute path of the workspace.
    pub workspace_root: String,
    /// The session's id.
    pub topic_id: String,
    /// Title for display.
    pub title: String,
    /// What it does.
    pub status: TopicStatus,
    /// Jobs that have not exited.
    #[specta(type = f64)]
    pub background_jobs: u64,
    /// Attempts behind the barrier.
    #[specta(type = f64)]
    pub unresolved: u64,
    /// Whether that is confirmed.
    pub freshness: Freshness,
}

/// A tab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct TabView {
    /// Its id, stable over restarts.
    pub tab_id: String,
    /// 32 hex digits.
    pub session_id: String,
    /// `session-id:<32 hex>`.
    pub session_path: String,
    /// Grows when the tab is bound to another session.
    #[specta(type = f64)]
    pub session_generation: u64,
    /// Title for display; may be empty.
    pub title: String,
    /// Absolute path of the workspace.
    pub workspace_root: String,
    /// `provider/model`.
    pub model: String,
    /// Permission mode.
    pub mode: String,
    /// The draft that was not sent.
    pub draft: String,
    /// It runs on another machine.
    pub remote: bool,
    /// That machine; empty for this one.
    pub host_id: String,
    /// Why the session can't be used now, for a person; empty when it can.
    pub problem: String,
}

/// Tabs as they were left.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct Layout {
    /// In order.
    pub tabs: Vec<TabView>,
    /// Id of the active tab; empty without tabs.
    pub active: String,
}

/// A project: a folder and its sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct ProjectView {
    /// Machine that it is on; empty for this one.
    pub host_id: String,
    /// Absolute path.
    pub workspace_root: String,
    /// Name for display.
    pub name: String,
    /// The folder is not there now.
    pub missing: bool,
    /// Its sessions, latest first.
    pub sessions: Vec<SessionRow>,
}

/// All projects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct ProjectList {
    /// This machine's in the order in which they were added, then those of other machines.
    pub projects: Vec<ProjectView>,
}

/// A folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProjectFolder {
    /// Absolute path.
    pub path: String,
}

/// A new session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewSession {
    /// Absolute path of the workspace.
    pub workspace_root: String,
    /// `provider/model`; the default when empty.
    #[serde(default)]
    pub model: String,
    /// Permission mode; the default when empty.
    #[serde(default)]
    pub mode: String,
    /// Machine that it is on; empty for this one.
    #[serde(default)]
    pub host_id: String,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OpenSession {
    /// 32 hex digits.
    pub session_id: String,
    /// Machine that it is on; empty for this one.
    #[serde(default)]
    pub host_id: String,
}

/// The active tab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActiveTab {
    /// Id of the tab.
    pub tab_id: String,
}

/// A draft.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Draft {
    /// Id of the tab.
    pub tab_id: String,
    /// The text; empty takes it away.
    pub text: String,
}

/// What of a session changes; absent fields stay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SessionChange {
    /// 32 hex digits.
    pub session_id: String,
    /// Machine that it is on; empty for this one.
    #[serde(default)]
    pub host_id: String,
    /// New title.
    #[serde(default)]
    pub title: Option<String>,
    /// New permission mode.
    #[serde(default)]
    pub mode: Option<String>,
    /// New model.
    #[serde(default)]
    pub model: Option<String>,
    /// Archive or bring back.
    #[serde(default)]
    pub archived: Option<bool>,
}

/// Models on offer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct ModelList {
    /// The default.
    pub default_model: String,
    /// `provider/model`, in order.
    pub models: Vec<ModelView>,
}

/// A model on offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct ModelView {
    /// `provider/model`.
    pub id: String,
    /// It is the scripted demo, and named so on screen.
    pub demo: bool,
    /// Why it can't be used now, for a person; empty when it can.
    pub problem: String,
}

/// Settings of the app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settings {
    /// `system`, `light`, `dark`.
    pub theme: String,
    /// `system`, `en`, `zh-CN`.
    pub language: String,
    /// Pixels of the base font, 11…18.
    pub font_size: u32,
    /// Permission mode of new sessions.
    pub mode: String,
    /// Model of new sessions, `provider/model`.
    pub model: String,
    /// Where everything is kept; not changed by saving.
    pub data_folder: String,
    /// Retry of unknown effects is allowed on this host; not changed by saving (TR-35).
    pub retry_enabled: bool,
    /// Version of the program; not changed by saving.
    pub version: String,
}

/// Providers as configured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct ProviderList {
    /// In order of their names.
    pub providers: Vec<ProviderView>,
}

/// A provider as configured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct ProviderView {
    /// Its name.
    pub name: String,
    /// Up to and including `/v1`; empty for the demo.
    pub base_url: String,
    /// Models on offer.
    pub models: Vec<String>,
    /// Environment variable of the key; may be empty.
    pub api_key_env: String,
    /// A key is stored or in the environment.
    pub has_key: bool,
}

/// A provider to be added, changed or tried. `Debug` does not show the key.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProviderChange {
    /// Its name: letters, digits, `-`, `_`.
    pub name: String,
    /// Up to and including `/v1`.
    pub base_url: String,
    /// Models on offer.
    pub models: Vec<String>,
    /// The key; empty leaves the stored one.
    #[serde(default)]
    pub api_key: String,
}

impl std::fmt::Debug for ProviderChange {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ProviderChange")
            .field("name", &self.name)
            .field("base_url", &self.base_url)
            .field("models", &self.models)
            .finish_non_exhaustive()
    }
}

/// How a trial of a provider went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct ProviderCheck {
    /// It answered.
    pub ok: bool,
    /// Stable code of what is wrong.
    pub code: String,
    /// For a person.
    pub message: String,
}

/// A command that runs while the window is asked to close (SV-09).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct RunningCommand {
    /// Its attempt.
    pub attempt_id: String,
    /// 32 hex digits.
    pub session_id: String,
    /// Title of the session; may be empty.
    pub session_title: String,
    /// The command.
    pub command: String,
    /// Unix milliseconds.
    #[specta(type = Option<f64>)]
    pub started_at: Option<u64>,
}

/// What becomes of running commands when the window closes (SV-09).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum Parting {
    /// They go on under their supervisors.
    Keep,
    /// They are stopped, and what came of them is stored.
    Stop,
}

/// The question at closing (SV-09).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct QuitQuestion {
    /// At least one.
    pub commands: Vec<RunningCommand>,
    /// What happens without an answer.
    pub default: Parting,
}

/// What the page says about closing (SV-09).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum QuitWord {
    /// The person wants to quit.
    Quit,
    /// The question is on screen.
    Shown,
    /// Quit; commands go on.
    Keep,
    /// Quit; commands are stopped.
    Stop,
    /// The window stays.
    Cancel,
}

/// The page's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct QuitAnswer {
    /// The word.
    pub word: QuitWord,
}

/// An event of the app.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(tag = "event", content = "payload")]
pub enum AppEvent {
    /// RS-18: the projection changed.
    #[serde(rename = "runtime-state:changed")]
    RuntimeStateChanged(RuntimeStateProjection),
    /// RS-25: something was missed: read everything again.
    #[serde(rename = "desktop:resync")]
    Resync(Resync),
    /// RS-25: a remote connection changed.
    #[serde(rename = "remote-tab:updated")]
    RemoteTabUpdated(RemoteTab),
    /// Frames of sessions, in order.
    #[serde(rename = "session:frames")]
    SessionFrames(SessionFrames),
}

/// RS-25.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct Resync {
    /// Grows with every resync.
    #[specta(type = f64)]
    pub recovery_version: u64,
}

/// RS-25: one connection, and all tabs that hang on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct RemoteTab {
    /// The host.
    pub host_id: String,
    /// Its tabs.
    pub tab_ids: Vec<String>,
}

/// Frames of sessions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct SessionFrames {
    /// In order.
    pub frames: Vec<NumberedFrame>,
}

/// A frame with its place in the stream, as `upTo` of a transcript snapshot names it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct NumberedFrame {
    /// `<epoch>.<n>`.
    pub id: String,
    /// The frame.
    pub frame: Frame,
}
