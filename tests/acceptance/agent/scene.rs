//! A host with one session, the scripted model that answers it, and its folders.
//!
//! Guarantees: all of it is a test's own and gone after it; a wait ends at a deadline with what
//! was waited for.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

pub(crate) use holdfast_testkit::host::holdfast_binary as binary;
use holdfast_testkit::host::{Host, HostOptions};
use holdfast_testkit::http::TestClient;
use holdfast_testkit::model_server::{ModelServer, RecordedRequest, Script, Step};
use holdfast_testkit::wait::SOON;
use serde_json::{Value, json};

/// What a scene starts with.
#[derive(Default)]
pub(crate) struct Plan {
    /// Permission mode; `full` when empty.
    pub(crate) mode: &'static str,
    /// Further lines of the provider's table.
    pub(crate) provider: String,
    /// Further lines of `[agent]`.
    pub(crate) agent: String,
    /// The host's environment besides the test's own.
    pub(crate) env: BTreeMap<String, String>,
    /// Another place for the data folder.
    pub(crate) data: Option<PathBuf>,
}

/// Everything of one test.
pub(crate) struct Scene {
    pub(crate) host: Host,
    pub(crate) client: TestClient,
    pub(crate) model: ModelServer,
    pub(crate) session: String,
    pub(crate) workspace: PathBuf,
    pub(crate) data: PathBuf,
    _folder: tempfile::TempDir,
}

/// Folders and a model, before there is a host.
pub(crate) struct Ground {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) workspace: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) model: ModelServer,
}

impl Ground {
    pub(crate) fn new(plan: &Plan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let workspace = folder.path().join("ws");
        let data = plan
            .data
            .clone()
            .unwrap_or_else(|| folder.path().join("data"));
        std::fs::create_dir_all(&workspace).unwrap();
        std::fs::create_dir_all(&data).unwrap();
        let model = ModelServer::start(Script::default().strict());
        let mode = if plan.mode.is_empty() {
            "full"
        } else {
            plan.mode
        };
        let config = format!(
            "default_model = \"scripted/m\"\n[providers.scripted]\nkind = \"openai\"\nbase_url = \
             \"{}\"\nmodels = [\"m\"]\n{}\n[agent]\nmode = \"{mode}\"\n{}\n",
            model.url(),
            plan.provider,
            plan.agent
        );
        std::fs::write(data.join("config.toml"), config).unwrap();
        Self {
            folder,
            workspace,
            data,
            model,
        }
    }

    /// How `holdfast serve` is started here.
    pub(crate) fn options(&self, env: &BTreeMap<String, String>) -> HostOptions {
        let mut options = HostOptions::serve(&self.data, &self.workspace);
        options.binary = binary();
        options.env = env.clone();
        options
    }
}

impl Scene {
    /// A host in mode `mode` with one session.
    pub(crate) async fn new(mode: &'static str) -> Self {
        Self::of(Plan {
            mode,
            ..Plan::default()
        })
        .await
    }

    pub(crate) async fn of(plan: Plan) -> Self {
        let ground = Ground::new(&plan);
        let host = Host::start(ground.options(&plan.env)).unwrap();
        let client = host.client();
        let created = client.post_ok("/sessions", &json!({})).await;
        Self {
            session: created["sessionId"].as_str().unwrap().to_owned(),
            host,
            client,
            model: ground.model,
            workspace: ground.workspace,
            data: ground.data,
            _folder: ground.folder,
        }
    }

    /// A file of the workspace.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.workspace.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.file(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.file(name)).unwrap()
    }

    /// The path of an operation on this scene's session.
    pub(crate) fn path(&self, path: &str) -> String {
        let joint = if path.contains('?') { '&' } else { '?' };
        format!("{path}{joint}session={}", self.session)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.client.get_ok(&self.path(path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.client.post(&self.path(path), &body).await
    }

    /// Sends a message; the turn's id.
    pub(crate) async fn submit(&self, input: &str) -> String {
        let (status, body) = self.post("/submit", json!({ "input": input })).await;
        assert_eq!(status, 202, "{body}");
        body["turnId"].as_str().unwrap().to_owned()
    }

    /// Waits for the end of a turn; the status then.
    pub(crate) async fn ended(&self, turn: &str) -> Value {
        self.ended_within(turn, SOON).await
    }

    pub(crate) async fn ended_within(&self, turn: &str, limit: Duration) -> Value {
        eventually("the turn to end", limit, async || {
            let status = self.get("/status").await;
            let state = &status["runtimeState"];
            let over = state["turnId"] == turn
                && state["phase"] == "idle"
                && status["running"] == false
                && state["turnStatus"] != "in_progress"
                && state["turnStatus"] != "";
            over.then_some(status)
        })
        .await
    }

    /// Sends a message and waits for the turn's end, which must be `completed`.
    pub(crate) async fn turn(&self, input: &str) {
        let turn = self.submit(input).await;
        let status = self.ended(&turn).await;
        assert_eq!(
            status["runtimeState"]["turnStatus"],
            "completed",
            "{status} {}",
            self.host.stderr()
        );
    }

    /// Waits for a question.
    pub(crate) async fn question(&self) -> Value {
        eventually("a question", SOON, async || {
            let prompts = self.get("/pending-prompts").await;
            prompts.as_array().unwrap().first().cloned()
        })
        .await
    }

    /// Waits for a question and answers it.
    pub(crate) async fn answer(&self, allow: bool, scope: &str) -> Value {
        let question = self.question().await;
        let (status, body) = self.approve(&question, allow, scope, None).await;
        assert_eq!(status, 204, "{body}");
        question
    }

    pub(crate) async fn approve(
        &self,
        question: &Value,
        allow: bool,
        scope: &str,
        reason: Option<&str>,
    ) -> (u16, Value) {
        let mut body = json!({
            "id": question["approval"]["id"],
            "generation": question["approval"]["generation"],
            "allow": allow,
            "scope": scope,
        });
        if let Some(reason) = reason {
            body["reason"] = json!(reason);
        }
        self.post("/approve", body).await
    }

    /// The transcript, oldest first.
    pub(crate) async fn items(&self) -> Vec<Value> {
        let page = self.get("/transcript/page?limit=500").await;
        assert_eq!(page["before"], Value::Null);
        let mut items = page["items"].as_array().unwrap().clone();
        items.reverse();
        items
    }

    /// The calls of the transcript, oldest first.
    pub(crate) async fn tools(&self) -> Vec<Value> {
        self.items()
            .await
            .iter()
            .filter(|item| item["kind"] == "tool")
            .map(|item| item["tool"].clone())
            .collect()
    }

    /// Waits until a call has that state; the call.
    pub(crate) async fn tool_in(&self, id: &str, state: &str) -> Value {
        eventually(&format!("{id} to be {state}"), SOON, async || {
            let tools = self.tools().await;
            tools
                .into_iter()
                .find(|tool| tool["id"] == id && tool["state"] == state)
        })
        .await
    }

    /// The lines of the session's log, each checked to be one JSON record.
    pub(crate) fn log(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.session_folder().join("log.jsonl")).unwrap();
        assert!(text.ends_with('\n'));
        text.split_terminator('\n')
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    /// The kinds of the log's records.
    pub(crate) fn kinds(&self) -> Vec<String> {
        self.log()
            .iter()
            .map(|record| record["kind"].as_str().unwrap().to_owned())
            .collect()
    }

    pub(crate) fn session_folder(&self) -> PathBuf {
        self.data.join("sessions").join(&self.session)
    }

    /// Ends the host as a person would and starts it again on the same folders.
    pub(crate) async fn restart(&mut self) {
        assert!(self.host.term().unwrap().success());
        self.restart_after_death().await;
    }

    /// Starts the host, which has ended, again.
    pub(crate) async fn restart_after_death(&mut self) {
        self.host = Host::start(self.host.options().clone()).unwrap();
        self.client = self.host.client();
        let (status, body) = self
            .client
            .post("/resume", &json!({ "sessionId": self.session }))
            .await;
        assert_eq!(status, 204, "{body}");
    }
}

/// The messages of a request to the model.
pub(crate) fn messages(request: &RecordedRequest) -> Vec<Value> {
    request.json["messages"]
        .as_array()
        .unwrap_or_else(|| panic!("no messages: {}", request.json))
        .clone()
}

/// The results of a request to the model: call id and text, in order.
pub(crate) fn results(request: &RecordedRequest) -> Vec<(String, String)> {
    messages(request)
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| {
            let text = |name: &str| message[name].as_str().unwrap().to_owned();
            (text("tool_call_id"), text("content"))
        })
        .collect()
}

/// A reply with one shell call.
pub(crate) fn shell(id: &str, command: &str) -> Step {
    Step::call(id, "shell", &json!({ "command": command }).to_string())
}

/// Asks again until there is an answer.
pub(crate) async fn eventually<T>(
    what: &str,
    limit: Duration,
    mut probe: impl AsyncFnMut() -> Option<T>,
) -> T {
    let deadline = Instant::now() + limit;
    let mut pace = tokio::time::interval(Duration::from_millis(10));
    pace.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        pace.tick().await;
        if let Some(found) = probe().await {
            return found;
        }
        assert!(
            Instant::now() < deadline,
            "waited {limit:?} in vain for: {what}"
        );
    }
}

/// Pids of processes whose environment or command line has this text.
#[cfg(target_os = "linux")]
pub(crate) fn processes_with(text: &str) -> Vec<i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &i32| {
            let part = |name: &str| {
                let file = std::path::Path::new("/proc")
                    .join(pid.to_string())
                    .join(name);
                std::fs::read(file).unwrap_or_default()
            };
            let all = [part("cmdline"), part("environ")].concat();
            all.windows(text.len())
                .any(|bytes| bytes == text.as_bytes())
        })
        .collect()
}
