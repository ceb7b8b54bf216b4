//! The shell on Tauri's runtime for tests, with the program's own configuration and permissions,
//! over an app that remembers what it was asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use holdfast_api::app::*;
use holdfast_api::desktop::*;
use holdfast_api::history::{CompactionStarted, RewindReply};
use holdfast_api::hosts::{HostChange, HostCheck, HostList, HostRef};
use holdfast_api::inbox::{
    Enqueued, InboxReceipt, InboxView, TabEditItem, TabEnqueue, TabItem, TabKey, TabMoveItem,
};
use holdfast_api::recovery::ToolRecoverySnapshot;
use holdfast_api::session::{Job, PendingPrompt, SessionsPage, SessionsQuery, Submitted};
use holdfast_api::transcript::{DiffReply, OutputPage, TranscriptPage, TranscriptSnapshot};
use holdfast_api::{ApiError, App};
use holdfast_app::commands::SharedApp;
use serde_json::{Value, json};
use tauri::test::MockRuntime;
use tauri::{WebviewWindow, WebviewWindowBuilder};

/// Remembers every call, and answers what it was given for it or a refusal.
#[derive(Default)]
pub(crate) struct Recording {
    calls: Mutex<Vec<(String, Value)>>,
    replies: HashMap<&'static str, Value>,
}

impl Recording {
    pub(crate) fn answering(replies: &[(&'static str, Value)]) -> Arc<Self> {
        Arc::new(Self {
            calls: Mutex::default(),
            replies: replies.iter().cloned().collect(),
        })
    }

    /// What was asked, in order: the operation and its request.
    pub(crate) fn calls(&self) -> Vec<(String, Value)> {
        self.calls.lock().unwrap().clone()
    }
}

/// What [`Recording`] answers to an operation without a reply.
pub(crate) fn refusal() -> Value {
    json!({ "code": "not_now", "message": "the test refuses" })
}

macro_rules! record {
    ($($name:ident($request:ty) -> $reply:ty;)*) => {
        #[async_trait]
        impl App for Recording {
            $(async fn $name(&self, request: $request) -> Result<$reply, ApiError> {
                let name = stringify!($name);
                let request = serde_json::to_value(request).unwrap();
                self.calls.lock().unwrap().push((name.to_owned(), request));
                match self.replies.get(name) {
                    Some(reply) => Ok(serde_json::from_value(reply.clone()).unwrap()),
                    None => Err(ApiError::conflict("not_now", "the test refuses")),
                }
            })*
        }
    };
}
holdfast_api::for_each_app_operation!(record);

/// The shell; lives as long as its windows are used.
pub(crate) struct Shell {
    pub(crate) app: tauri::App<MockRuntime>,
}

impl Shell {
    pub(crate) fn over(app: Arc<Recording>) -> Self {
        let registry = holdfast_app::registry!(MockRuntime);
        let shared: SharedApp = app;
        let app = tauri::test::mock_builder()
            .plugin(tauri_plugin_dialog::init())
            .invoke_handler(registry.invoke_handler())
            .manage(shared)
            .build(holdfast_app::context())
            .unwrap();
        registry.mount_events(&app);
        Self { app }
    }

    pub(crate) fn window(&self, label: &str) -> WebviewWindow<MockRuntime> {
        WebviewWindowBuilder::new(&self.app, label, Default::default())
            .build()
            .unwrap()
    }
}

/// Calls a command as the page does.
pub(crate) fn invoke(
    window: &WebviewWindow<MockRuntime>,
    command: &str,
    arguments: Value,
) -> Result<Value, Value> {
    let url = if cfg!(windows) {
        "http://tauri.localhost"
    } else {
        "tauri://localhost"
    };
    let request = tauri::webview::InvokeRequest {
        cmd: command.to_owned(),
        callback: tauri::ipc::CallbackFn(0),
        error: tauri::ipc::CallbackFn(1),
        url: url.parse().unwrap(),
        body: tauri::ipc::InvokeBody::Json(arguments),
        headers: tauri::http::HeaderMap::default(),
        invoke_key: tauri::test::INVOKE_KEY.to_owned(),
    };
    tauri::test::get_ipc_response(window, request).map(|body| body.deserialize().unwrap())
}

/// A request that the operation accepts.
pub(crate) fn request(operation: &str) -> Value {
    match operation {
        "get_runtime_state_snapshot"
        | "sync_runtime_state"
        | "get_layout"
        | "list_projects"
        | "start_demo"
        | "list_models"
        | "get_settings"
        | "list_hosts"
        | "list_providers" => json!({}),
        "get_tool_recovery_for_tab"
        | "close_tab"
        | "select_tab"
        | "pending_prompts"
        | "transcript_snapshot"
        | "compact"
        | "inbox"
        | "pause_inbox"
        | "resume_inbox"
        | "jobs" => json!({ "tabId": "t1" }),
        "resolve_tool_recovery_for_tab" => json!({
            "tabId": "t1",
            "request": {
                "sessionPath": "session-id:00000000000000000000000000000001",
                "runtimeEpoch": "00000000000000000000000000000002",
                "revision": "r",
                "attemptId": "a1",
                "inspectionId": "",
                "action": "inspect",
            },
        }),
        "new_session" => {
            json!({ "workspaceRoot": "/w", "model": "demo/demo", "mode": "ask", "hostId": "h1" })
        }
        "open_session" | "delete_session" | "fork_session" => {
            json!({ "sessionId": "s1", "hostId": "" })
        }
        "save_draft" => json!({ "tabId": "t1", "text": "half a thought" }),
        "open_project" | "remove_project" => json!({ "path": "/w" }),
        "list_sessions" => serde_json::to_value(SessionsQuery::default()).unwrap(),
        "change_session" => {
            json!({ "sessionId": "s1", "hostId": "", "title": "New", "mode": null, "model": null, "archived": null })
        }
        "submit" => json!({ "tabId": "t1", "input": "go on", "submissionId": "k1" }),
        "inbox_receipt" => json!({ "tabId": "t1", "key": "k1" }),
        "enqueue" => json!({
            "tabId": "t1", "input": "next", "intent": "followup", "idempotencyKey": "k1",
        }),
        "edit_item" => json!({ "tabId": "t1", "itemId": "i1", "input": "other", "intent": null }),
        "delete_item" => json!({ "tabId": "t1", "itemId": "i1" }),
        "move_item" => json!({ "tabId": "t1", "itemId": "i1", "position": 1 }),
        "rewind" => json!({ "tabId": "t1", "seq": 7 }),
        "cancel" => json!({ "tabId": "t1", "turnId": "u1" }),
        "approve" => json!({
            "tabId": "t1", "id": "q1", "generation": 3, "allow": true, "scope": "once", "reason": "",
        }),
        "transcript_page" => json!({ "tabId": "t1", "before": 12, "limit": 50 }),
        "diff" | "output" | "background_job" => {
            json!({ "tabId": "t1", "attemptId": "a1", "offset": 0 })
        }
        "cancel_job" => json!({ "tabId": "t1", "id": "j1" }),
        "save_settings" => json!({
            "theme": "dark", "language": "en", "fontSize": 13, "mode": "ask", "model": "demo/demo",
            "dataFolder": "", "retryEnabled": false, "version": "",
        }),
        "save_provider" | "test_provider" => json!({
            "name": "p", "baseUrl": "http://127.0.0.1:1/v1", "models": ["m"], "apiKey": "",
        }),
        "save_host" | "test_host" => json!({
            "hostId": "", "name": "box", "token": "",
            "way": { "kind": "direct", "url": "http://127.0.0.1:1" },
        }),
        "remove_host" | "retry_host" => json!({ "hostId": "h1" }),
        other => panic!("no request is known for {other}"),
    }
}
