//! What the window and the browser can do: one table of app operations, one trait, one dispatcher.
//!
//! Guarantee: an operation is declared here and nowhere else. The Tauri commands and the HTTP
//! routes are made from this table, and a test compares both registries with it.

use async_trait::async_trait;
use holdfast_domain::recovery::admission::ActionRequest;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::desktop::{
    ActiveTab, Draft, Layout, ModelList, NewSession, OpenSession, ProjectFolder, ProjectList,
    ProviderChange, ProviderCheck, ProviderList, RuntimeStateProjection, SessionChange, Settings,
    TabView,
};
use crate::error::ApiError;
use crate::history::{CompactionStarted, RewindReply};
use crate::hosts::{HostChange, HostCheck, HostList, HostRef};
use crate::inbox::{
    Enqueued, InboxReceipt, InboxView, TabEditItem, TabEnqueue, TabItem, TabKey, TabMoveItem,
};
use crate::recovery::ToolRecoverySnapshot;
use crate::session::{Job, PendingPrompt, SessionsPage, SessionsQuery, Submitted};
use crate::transcript::{DiffReply, OutputPage, TranscriptPage, TranscriptSnapshot};

/// Nothing: the request or reply of operations that need none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// A tab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Tab {
    /// Id of the tab.
    pub tab_id: String,
}

/// A recovery action in a tab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TabRecovery {
    /// Id of the tab.
    pub tab_id: String,
    /// TR-29.
    pub request: ActionRequest,
}

/// A message in a tab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TabSubmit {
    /// Id of the tab.
    pub tab_id: String,
    /// The message.
    pub input: String,
    /// The client's key (RS-16).
    pub submission_id: String,
}

/// Stop in a tab. The turn that is meant is always named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TabCancel {
    /// Id of the tab.
    pub tab_id: String,
    /// The turn.
    pub turn_id: String,
}

/// A rewind in a tab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TabRewind {
    /// Id of the tab.
    pub tab_id: String,
    /// `seq` of the person's message that is taken back with all that follows it.
    #[specta(type = f64)]
    pub seq: u64,
}

/// What became of a Stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct CancelReply {
    /// Nothing of that turn ran.
    pub already_ended: bool,
}

/// An answer in a tab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TabApprove {
    /// Id of the tab.
    pub tab_id: String,
    /// Id of the question.
    pub id: String,
    /// Generation that was seen.
    #[specta(type = f64)]
    pub generation: u64,
    /// Allowed or not.
    pub allow: bool,
    /// `once` or `session`.
    pub scope: String,
    /// The person's words; may be empty.
    pub reason: String,
}

/// A page of a tab's transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TabPage {
    /// Id of the tab.
    pub tab_id: String,
    /// Cursor; the newest page without it.
    #[specta(type = Option<f64>)]
    pub before: Option<u64>,
    /// Items, 1…500.
    pub limit: u32,
}

/// An attempt of a tab's session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TabAttempt {
    /// Id of the tab.
    pub tab_id: String,
    /// The attempt.
    pub attempt_id: String,
    /// First byte, for outputs.
    #[serde(default)]
    #[specta(type = f64)]
    pub offset: u64,
}

/// A job of a tab's session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TabJob {
    /// Id of the tab.
    pub tab_id: String,
    /// Id of the job.
    pub id: String,
}

macro_rules! app_operations {
    ($($(#[$doc:meta])* $name:ident($request:ty) -> $reply:ty;)*) => {
        /// Names of all app operations.
        pub const APP: &[&str] = &[$(stringify!($name)),*];

        /// What an app can do. The window and the browser call the same.
        #[async_trait]
        pub trait App: Send + Sync {
            $($(#[$doc])* async fn $name(&self, request: $request) -> Result<$reply, ApiError>;)*
        }

        /// Calls an operation by its name with JSON; `None` when there is no such operation.
        pub async fn dispatch(
            app: &dyn App,
            name: &str,
            request: Value,
        ) -> Option<Result<Value, ApiError>> {
            match name {
                $(stringify!($name) => Some(call(request, |request| app.$name(request)).await),)*
                _ => None,
            }
        }

        /// Gives each operation's name, request and reply to another macro.
        #[macro_export]
        macro_rules! for_each_app_operation {
            ($with:ident) => {
                $with! { $($name($request) -> $reply;)* }
            };
        }
    };
}

async fn call<Q, R, F>(request: Value, operation: impl FnOnce(Q) -> F) -> Result<Value, ApiError>
where
    Q: DeserializeOwned,
    R: Serialize,
    F: Future<Output = Result<R, ApiError>>,
{
    let request = serde_json::from_value(request).map_err(|error| {
        ApiError::bad_request(
            "body_invalid",
            format!("the request's fields can't be used ({error}); nothing was done; correct them"),
        )
    })?;
    let reply = operation(request).await?;
    serde_json::to_value(reply).map_err(|error| {
        ApiError::internal(
            "internal",
            format!("the reply could not be written ({error}); what was done is recorded"),
        )
    })
}

app_operations! {
    /// RS-18: the projection as it is.
    get_runtime_state_snapshot(Nothing) -> RuntimeStateProjection;
    /// RS-20: verifies every remote connection first.
    sync_runtime_state(Nothing) -> RuntimeStateProjection;
    /// TR-40.
    get_tool_recovery_for_tab(Tab) -> ToolRecoverySnapshot;
    /// TR-40.
    resolve_tool_recovery_for_tab(TabRecovery) -> ToolRecoverySnapshot;
    /// Tabs, drafts and the active tab, as they were left.
    get_layout(Nothing) -> Layout;
    /// A new session in a project, in a new tab.
    new_session(NewSession) -> TabView;
    /// An existing session in a tab; its tab when it has one.
    open_session(OpenSession) -> TabView;
    /// Closes a tab; the session goes on.
    close_tab(Tab) -> Layout;
    /// Remembers the active tab.
    select_tab(ActiveTab) -> Nothing;
    /// Keeps a draft over restarts.
    save_draft(Draft) -> Nothing;
    /// Projects with their sessions.
    list_projects(Nothing) -> ProjectList;
    /// Adds a folder as a project.
    open_project(ProjectFolder) -> ProjectList;
    /// Takes a project off the list; nothing of it is touched.
    remove_project(ProjectFolder) -> ProjectList;
    /// Makes the demo's sample project and opens a session in it.
    start_demo(Nothing) -> TabView;
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
    /// A running command goes on as a job, and its turn without it.
    background_job(TabAttempt) -> Job;
    /// Models on offer.
    list_models(Nothing) -> ModelList;
    /// Settings of the app.
    get_settings(Nothing) -> Settings;
    /// Stores settings of the app.
    save_settings(Settings) -> Settings;
    /// Providers as configured, without keys.
    list_providers(Nothing) -> ProviderList;
    /// Adds or changes a provider; a key goes to the keychain and is never shown again.
    save_provider(ProviderChange) -> ProviderList;
    /// Asks a provider for one short answer and says what is wrong.
    test_provider(ProviderChange) -> ProviderCheck;
    /// Other machines, with how their connections stand.
    list_hosts(Nothing) -> HostList;
    /// Adds or changes a machine; a token goes to the keychain and is never shown again.
    save_host(HostChange) -> HostList;
    /// Forgets a machine, its token and its tabs; its sessions go on there.
    remove_host(HostRef) -> HostList;
    /// Asks a machine whether it lets us in, and says what is wrong.
    test_host(HostChange) -> HostCheck;
    /// Tries a connection again now.
    retry_host(HostRef) -> Nothing;
}
