//! The set-up that these tests share: a data folder, a workspace, a ledger outside of both, a
//! scripted model, and a host that is killed and started again.
//!
//! Guarantee: what a client asks goes over HTTP; files are only read, or changed while no host runs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use holdfast_testkit::model_server::Call;
use holdfast_testkit::wait::{SOON, until, until_asked};
use holdfast_testkit::{Host, HostOptions, Ledger, ModelServer, Step, TestClient};
use serde_json::{Value, json};

/// One session, its host, and the world around it.
pub(crate) struct Stage {
    root: tempfile::TempDir,
    pub(crate) model: ModelServer,
    pub(crate) ledger: Ledger,
    pub(crate) session: String,
    host: Host,
    parks: u32,
}

impl Stage {
    /// A host without a stop point, and a session in that mode.
    pub(crate) async fn new(mode: &str, steps: Vec<Step>) -> Self {
        Self::configured(mode, "", steps).await
    }

    /// The same, with lines for `[agent]`.
    pub(crate) async fn configured(mode: &str, agent: &str, steps: Vec<Step>) -> Self {
        Self::prepared(mode, agent, steps, serve).await
    }

    /// The same, with a host that is started in another way: a function of the root folder, once all
    /// is there.
    pub(crate) async fn prepared(
        mode: &str,
        agent: &str,
        steps: Vec<Step>,
        options: impl FnOnce(&Path) -> HostOptions,
    ) -> Self {
        let root = tempfile::tempdir().unwrap();
        let model = ModelServer::start(steps);
        for folder in ["data", "workspace"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        let config = format!(
            "default_model = \"scripted/m\"\n\
             [providers.scripted]\nkind = \"openai\"\nbase_url = \"{}\"\nmodels = [\"m\"]\n\
             [agent]\n{agent}\n",
            model.url()
        );
        std::fs::write(root.path().join("data/config.toml"), config).unwrap();
        let host = Host::start(options(root.path())).unwrap();
        let created = host
            .client()
            .post_ok("/sessions", &json!({ "mode": mode }))
            .await;
        Self {
            ledger: Ledger::at(root.path().join("ledger")),
            session: text(&created["sessionId"]),
            root,
            model,
            host,
            parks: 0,
        }
    }

    /// A path beside data and workspace.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub(crate) fn in_workspace(&self, name: &str) -> PathBuf {
        self.root.path().join("workspace").join(name)
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.data().join("sessions").join(&self.session)
    }

    pub(crate) fn effect_folder(&self, attempt: &str) -> PathBuf {
        self.folder().join("effects").join(attempt)
    }

    /// The process that claimed an attempt's start.
    pub(crate) fn supervisor_of(&self, attempt: &str) -> u32 {
        let claim = std::fs::read(self.effect_folder(attempt).join("start")).unwrap();
        let claim: Value = serde_json::from_slice(&claim).unwrap();
        assert_eq!(claim["by"], "supervisor");
        u32::try_from(claim["pid"].as_u64().unwrap()).unwrap()
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder().join("log.jsonl")
    }

    /// The records of the log as it is now: kind and payload. A line that is being written is left
    /// out.
    pub(crate) fn records(&self) -> Vec<(String, Value)> {
        std::fs::read_to_string(self.log())
            .unwrap()
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .map(|line| (text(&line["kind"]), line["payload"].clone()))
            .collect()
    }

    /// How many records of that kind there are.
    pub(crate) fn count(&self, kind: &str) -> usize {
        self.records().iter().filter(|(own, _)| own == kind).count()
    }

    pub(crate) fn client(&self) -> TestClient {
        self.host.client()
    }

    /// SIGKILL.
    pub(crate) fn kill(&mut self) {
        self.host.kill9();
    }

    /// SIGTERM, and the wait for a clean end.
    pub(crate) fn end(&mut self) {
        assert_eq!(self.host.term().unwrap().code(), Some(0));
    }

    /// SIGKILL if it still runs, and another host on the same data.
    pub(crate) fn restart(&mut self) {
        let options = self.host.options().clone().without_stop();
        self.host.restart_with(options).unwrap();
    }

    /// As [`Self::restart`]; this host and those behind it offer a retry (TR-35).
    pub(crate) fn restart_with_retry(&mut self) {
        self.restart_with_variable("REASONIX_TOOL_RECOVERY_RETRY", Some("1"));
    }

    /// As [`Self::restart`], with this environment variable from now on, or without it.
    pub(crate) fn restart_with_variable(&mut self, name: &str, value: Option<&str>) {
        let mut options = self.host.options().clone().without_stop();
        options.env.remove(name);
        if let Some(value) = value {
            options = options.env(name, value);
        }
        self.host.restart_with(options).unwrap();
    }

    /// As [`Self::restart`], and the host will park at this place.
    pub(crate) fn restart_stopping_at(&mut self, place: &str, pass: u32) {
        self.parks += 1;
        let file = self.beside(&format!("parked-{}", self.parks));
        let options = self.host.options().clone().stop_at(place, pass, &file);
        self.host.restart_with(options).unwrap();
    }

    pub(crate) fn has_parked(&self) -> bool {
        self.beside(&format!("parked-{}", self.parks)).exists()
    }

    /// Waits until the host stands at its stop point, and kills it there.
    pub(crate) async fn kill_where_it_parks(&mut self) {
        until("the host to park at its stop point", SOON, || {
            self.has_parked().then_some(())
        })
        .await;
        self.kill();
    }

    /// A route with this session selected.
    pub(crate) fn route(&self, path: &str) -> String {
        format!("{path}?session={}", self.session)
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.client().get_ok(&self.route(path)).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.client().post(&self.route(path), body).await
    }

    /// `POST /submit`, accepted; answers the turn's id.
    pub(crate) async fn submit(&self, input: &str) -> String {
        let (status, body) = self.post("/submit", &json!({ "input": input })).await;
        assert_eq!(status, 202, "{body}");
        text(&body["turnId"])
    }

    /// `POST /submit` whose answer nobody waits for: the host may be killed before it.
    pub(crate) fn submit_unheard(&self, body: &Value) {
        self.post_unheard("/submit", body);
    }

    /// `POST /inbox/items` whose answer nobody waits for.
    pub(crate) fn enqueue_unheard(&self, input: &str, key: &str) {
        let body = json!({ "input": input, "idempotencyKey": key });
        self.post_unheard("/inbox/items", &body);
    }

    /// "Allow, once" whose answer nobody waits for.
    pub(crate) fn answer_unheard(&self, prompt: &Value) {
        self.post_unheard("/approve", &answer_to(prompt, true));
    }

    /// A recovery action whose answer nobody waits for.
    pub(crate) fn resolve_unheard(&self, body: &Value) {
        self.post_unheard("/tool-recovery", body);
    }

    fn post_unheard(&self, path: &str, body: &Value) {
        let client = self.client();
        let request = client.request("POST".parse().unwrap(), &self.route(path));
        tokio::spawn(TestClient::send(request.json(body)));
    }

    pub(crate) async fn status(&self) -> Value {
        self.get("/status").await
    }

    /// Waits until no turn runs, and answers the runtime state.
    pub(crate) async fn idle(&self) -> Value {
        self.until_status("the turn to end", |state| {
            state["phase"] == "idle" && state["turnStatus"] != "in_progress"
        })
        .await
    }

    /// Waits for a runtime state.
    pub(crate) async fn until_status(&self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        until_asked(what, SOON, async || {
            let state = self.status().await["runtimeState"].clone();
            wanted(&state).then_some(state)
        })
        .await
    }

    /// Waits until nothing runs behind the turns.
    pub(crate) async fn until_no_jobs(&self) {
        self.until_status("the jobs to end", |state| state["backgroundJobs"] == 0)
            .await;
    }

    /// Sends a message and waits for the end of its turn, allowing what is asked.
    pub(crate) async fn turn(&self, input: &str) {
        self.submit(input).await;
        self.allow_all().await;
    }

    /// Waits for the end of the turn; every question on the way is answered with "allow".
    pub(crate) async fn allow_all(&self) {
        loop {
            let state = self
                .until_status("the turn to end or to ask", |state| {
                    state["pendingPrompt"] == true
                        || (state["phase"] == "idle" && state["turnStatus"] != "in_progress")
                })
                .await;
            if state["pendingPrompt"] != true {
                return;
            }
            let asked = self.prompt().await;
            let (status, body) = self.allow(&asked).await;
            assert!(status == 204 || body["code"] == "prompt_stale", "{body}");
        }
    }

    /// The one pending question.
    pub(crate) async fn prompt(&self) -> Value {
        let prompts = self.get("/pending-prompts").await;
        assert_eq!(prompts.as_array().unwrap().len(), 1, "{prompts}");
        prompts[0].clone()
    }

    /// Waits for a question about that call.
    pub(crate) async fn until_asked(&self, call: &str) -> Value {
        until_asked(&format!("a question about {call}"), SOON, async || {
            let prompts = self.get("/pending-prompts").await;
            (prompts[0]["approval"]["callId"] == call).then(|| prompts[0].clone())
        })
        .await
    }

    /// Answers a question with "allow, once".
    pub(crate) async fn allow(&self, prompt: &Value) -> (u16, Value) {
        self.answer(prompt, true).await
    }

    pub(crate) async fn answer(&self, prompt: &Value, allow: bool) -> (u16, Value) {
        self.post("/approve", &answer_to(prompt, allow)).await
    }

    /// The transcript, oldest first.
    pub(crate) async fn transcript(&self) -> Vec<Value> {
        let page = self.get("/transcript/page").await;
        assert_eq!(page["before"], Value::Null, "more than one page");
        let mut items = page["items"].as_array().unwrap().clone();
        items.reverse();
        items
    }

    /// The cards of the transcript by call id.
    pub(crate) async fn tools(&self) -> BTreeMap<String, Value> {
        self.transcript()
            .await
            .iter()
            .filter(|item| item["kind"] == "tool")
            .map(|item| (text(&item["tool"]["id"]), item["tool"].clone()))
            .collect()
    }

    /// The card of one call.
    pub(crate) async fn tool(&self, call: &str) -> Value {
        let mut tools = self.tools().await;
        tools
            .remove(call)
            .unwrap_or_else(|| panic!("no card of {call} in {tools:?}"))
    }

    /// Waits until the card of a call is in this state.
    pub(crate) async fn until_tool(&self, call: &str, state: &str) -> Value {
        until_asked(&format!("{call} to be {state}"), SOON, async || {
            let tool = self.tools().await.remove(call)?;
            (tool["state"] == state).then_some(tool)
        })
        .await
    }

    pub(crate) async fn recovery(&self) -> Value {
        self.get("/tool-recovery").await
    }

    /// The one unresolved attempt's id.
    pub(crate) async fn unresolved(&self) -> String {
        let snapshot = self.recovery().await;
        assert_eq!(snapshot["calls"].as_array().unwrap().len(), 1, "{snapshot}");
        text(&snapshot["calls"][0]["identity"]["attempt_id"])
    }

    /// `POST /tool-recovery` on the present snapshot.
    pub(crate) async fn resolve(
        &self,
        action: &str,
        attempt: &str,
        inspection: &str,
    ) -> (u16, Value) {
        let body = action_on(&self.recovery().await, action, attempt, inspection);
        self.post("/tool-recovery", &body).await
    }

    /// Inspects an attempt and answers its record.
    pub(crate) async fn inspect(&self, attempt: &str) -> Value {
        let (status, snapshot) = self.resolve("inspect", attempt, "").await;
        assert_eq!(status, 200, "{snapshot}");
        record_of(&snapshot, attempt)
    }

    /// Runs `holdfast` on the data folder, beside or without a host, and reads its JSON.
    pub(crate) fn command(&self, arguments: &[&str]) -> Value {
        let output = self.try_command(arguments);
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The same, whatever becomes of it.
    pub(crate) fn try_command(&self, arguments: &[&str]) -> std::process::Output {
        let options = self.host.options();
        // What stands before `serve` makes the host another user's.
        let before = options.arguments.iter().take_while(|word| *word != "serve");
        std::process::Command::new(&options.binary)
            .args(before)
            .arg("--data")
            .arg(self.data())
            .args(arguments)
            .envs(&options.env)
            .output()
            .unwrap()
    }
}

pub(crate) fn serve(root: &Path) -> HostOptions {
    HostOptions::serve(&root.join("data"), &root.join("workspace"))
}

fn answer_to(prompt: &Value, allow: bool) -> Value {
    json!({
        "id": prompt["approval"]["id"],
        "generation": prompt["approval"]["generation"],
        "allow": allow,
        "scope": "once",
    })
}

/// The request for an action, seen on this snapshot.
pub(crate) fn action_on(snapshot: &Value, action: &str, attempt: &str, inspection: &str) -> Value {
    json!({
        "sessionPath": snapshot["sessionPath"],
        "runtimeEpoch": snapshot["runtimeEpoch"],
        "revision": snapshot["revision"],
        "attemptId": attempt,
        "inspectionId": inspection,
        "action": action,
    })
}

/// The record of an attempt in a snapshot.
pub(crate) fn record_of(snapshot: &Value, attempt: &str) -> Value {
    snapshot["calls"]
        .as_array()
        .unwrap()
        .iter()
        .find(|call| call["identity"]["attempt_id"] == attempt)
        .unwrap_or_else(|| panic!("no record of {attempt} in {snapshot}"))
        .clone()
}

/// A call of the shell.
pub(crate) fn shell(id: &str, command: &str) -> Call {
    Call::new(id, "shell", &json!({ "command": command }).to_string())
}

/// A call that writes a whole file.
pub(crate) fn write(id: &str, path: &str, content: &str) -> Call {
    let arguments = json!({ "path": path, "content": content });
    Call::new(id, "write_file", &arguments.to_string())
}

/// A call that reads a file.
pub(crate) fn read(id: &str, path: &str) -> Call {
    Call::new(id, "read_file", &json!({ "path": path }).to_string())
}

/// A reply with these calls.
pub(crate) fn calls<const N: usize>(calls: [Call; N]) -> Step {
    calls.into_iter().fold(Step::default(), Step::with_call)
}

/// POSIX shell that waits until a file is there.
pub(crate) fn wait_for_file(path: &Path) -> String {
    let file = holdfast_testkit::ledger::quoted(&path.to_string_lossy());
    format!("while [ ! -e {file} ]; do sleep 0.02; done")
}

pub(crate) fn text(value: &Value) -> String {
    value
        .as_str()
        .unwrap_or_else(|| panic!("no text: {value}"))
        .to_owned()
}

/// Sends a signal by its name.
pub(crate) fn signal(pid: u32, name: &str) {
    let sent = std::process::Command::new("kill")
        .args([format!("-{name}"), pid.to_string()])
        .status()
        .unwrap();
    assert!(sent.success());
}

/// Waits until a file is there.
pub(crate) async fn until_there(path: &Path) {
    until(&format!("{}", path.display()), SOON, || {
        path.exists().then_some(())
    })
    .await;
}
