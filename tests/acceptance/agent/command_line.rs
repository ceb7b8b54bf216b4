//! `holdfast run` and the commands around it: what they print and how they exit.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};

use holdfast_testkit::host::Host;
#[cfg(target_os = "linux")]
use holdfast_testkit::model_server::Call;
use holdfast_testkit::model_server::Step;
use holdfast_testkit::wait::SOON;
#[cfg(target_os = "linux")]
use holdfast_testkit::wait::wait_until;
use serde_json::{Value, json};

use super::scene::{Ground, Plan, binary, eventually, shell};

/// What a command did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(self.stdout.trim()).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs `holdfast` on a ground's folders, without a terminal.
pub(crate) fn holdfast(ground: &Ground, arguments: &[&str]) -> Ran {
    let output = Command::new(binary())
        .args(arguments)
        .env("HOLDFAST_HOME", &ground.data)
        .current_dir(&ground.workspace)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Ran {
        code: output.status.code(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

#[test]
fn a_question_without_a_terminal_is_exit_2_and_stays_open() {
    let ground = Ground::new(&Plan {
        mode: "ask",
        ..Plan::default()
    });
    ground.model.push(shell("c1", "echo x > made"));
    let ran = holdfast(&ground, &["run", "make it", "--output", "json"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(ran.json()["pendingPrompt"], true);
    assert!(!ground.workspace.join("made").exists());
    let list = holdfast(&ground, &["sessions", "list", "--json"]).json();
    let rows = list
        .as_array()
        .or_else(|| list["items"].as_array())
        .unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["sessionId"], ran.json()["sessionId"]);
    assert_eq!(rows[0]["state"]["pendingPrompt"], true);
    assert_eq!(rows[0]["state"]["turnStatus"], "interrupted");
}

#[test]
fn a_question_without_a_terminal_is_told_in_text_too() {
    let ground = Ground::new(&Plan {
        mode: "ask",
        ..Plan::default()
    });
    ground.model.push(shell("c1", "echo x > made"));
    let ran = holdfast(&ground, &["run", "make it"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stdout.contains("waits for your answer"), "{ran:?}");
}

#[test]
fn a_provider_error_is_exit_1_with_its_code() {
    let ground = Ground::new(&Plan::default());
    ground
        .model
        .push(Step::status(401, r#"{"error":{"message":"bad key"}}"#));
    let ran = holdfast(&ground, &["run", "do it", "--output", "json"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert_eq!(ran.json()["status"], "failed");
    assert_eq!(ran.json()["code"], "provider_auth");
}

#[cfg(target_os = "linux")]
#[test]
fn an_unknown_outcome_is_exit_2_and_is_listed() {
    let ground = Ground::new(&Plan::default());
    // The command ends its own supervisor and itself, so that nobody can tell what it did.
    ground
        .model
        .push(shell("c1", "echo x > made; kill -9 $PPID; kill -9 $$"));
    ground.model.push(Step::text("I don't know"));
    let ran = holdfast(&ground, &["run", "break it", "--output", "json"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert_eq!(ran.json()["unresolved"], 1);
    let session = ran.json()["sessionId"].as_str().unwrap().to_owned();
    let listed = holdfast(
        &ground,
        &["recovery", "list", "--session", &session, "--json"],
    );
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert_eq!(listed.json()["calls"][0]["state"], "unknown");
    assert_eq!(listed.json()["statistics"]["unknown"], 1);
}

/// A command that has its effect and then runs out of time, proposed twice.
#[cfg(target_os = "linux")]
fn repeated_after_its_timeout(ground: &Ground) {
    for id in ["c1", "c2"] {
        let arguments = json!({ "command": "echo x >> made; sleep 300", "timeout_s": 1 });
        let call = Call::new(id, "shell", &arguments.to_string());
        ground.model.push(Step::default().with_call(call));
    }
    ground.model.push(Step::text("I leave it"));
}

#[cfg(target_os = "linux")]
#[test]
fn tr_46_without_a_terminal_a_repetition_is_refused_with_exit_2() {
    let ground = Ground::new(&Plan::default());
    repeated_after_its_timeout(&ground);
    let ran = holdfast(&ground, &["run", "make it", "--output", "json"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let outcome = ran.json();
    assert_eq!(outcome["repeatsRefused"], 1, "{outcome}");
    assert_eq!(outcome["pendingPrompt"], false, "{outcome}");
    assert_eq!(outcome["status"], "completed", "{outcome}");
    assert_eq!(outcome["text"], "I leave it", "the model was told");
    let made = std::fs::read_to_string(ground.workspace.join("made")).unwrap();
    assert_eq!(made, "x\n", "it ran once");
    let requests = ground.model.requests();
    let told = requests.last().unwrap().json["messages"].to_string();
    assert!(told.contains("refused: repeat_refused"), "{told}");
    assert!(told.contains("ran out of time"), "{told}");
}

#[cfg(target_os = "linux")]
#[test]
fn tr_46_a_refused_repetition_is_told_in_text_too() {
    let ground = Ground::new(&Plan::default());
    repeated_after_its_timeout(&ground);
    let ran = holdfast(&ground, &["run", "make it"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stdout.contains("repeated an earlier effect"), "{ran:?}");
}

#[test]
fn text_output_names_each_call_and_ends_with_the_answer() {
    let ground = Ground::new(&Plan::default());
    ground.model.push(shell("c1", "echo hello"));
    ground.model.push(Step::text("said hello"));
    let ran = holdfast(&ground, &["run", "say hello"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("shell echo hello"), "{ran:?}");
    assert!(ran.stdout.contains("shell completed"), "{ran:?}");
    assert!(ran.stdout.trim_end().ends_with("said hello"), "{ran:?}");
}

#[test]
fn a_workspace_that_is_none_is_exit_1() {
    let ground = Ground::new(&Plan::default());
    let ran = holdfast(&ground, &["run", "do it", "--workspace", "missing"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("no session was created"), "{ran:?}");
    assert_eq!(ground.model.request_count(), 0);
}

#[tokio::test]
async fn tr_51_a_question_of_run_is_answered_through_serve() {
    let ground = Ground::new(&Plan {
        mode: "ask",
        ..Plan::default()
    });
    ground.model.push(shell("c1", "echo x >> made"));
    let ran = holdfast(&ground, &["run", "make it", "--output", "json"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    let session = ran.json()["sessionId"].as_str().unwrap().to_owned();

    let host = Host::start(ground.options(&BTreeMap::new())).unwrap();
    let client = host.client();
    let path = |path: &str| format!("{path}?session={session}");
    let status = client.get_ok(&path("/status")).await;
    assert_eq!(status["running"], false);
    assert_eq!(status["pendingPrompt"], true);
    let prompts = client.get_ok(&path("/pending-prompts")).await;
    assert_eq!(prompts[0]["approval"]["subject"], "echo x >> made");
    ground.model.push(Step::text("made"));
    let answer = json!({
        "id": prompts[0]["approval"]["id"],
        "generation": prompts[0]["approval"]["generation"],
        "allow": true,
    });
    assert_eq!(client.post(&path("/approve"), &answer).await.0, 204);
    eventually("the turn to end", SOON, async || {
        let status = client.get_ok(&path("/status")).await;
        (status["runtimeState"]["turnStatus"] == "completed").then_some(())
    })
    .await;
    let made = std::fs::read_to_string(ground.workspace.join("made")).unwrap();
    assert_eq!(made, "x\n");
    assert_eq!(client.post(&path("/approve"), &answer).await.0, 409);
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_stops_the_task_and_its_command() {
    let ground = Ground::new(&Plan::default());
    ground.model.push(shell("c1", "touch begun; sleep 600"));
    let child = Command::new(binary())
        .args(["run", "wait", "--output", "json"])
        .env("HOLDFAST_HOME", &ground.data)
        .current_dir(&ground.workspace)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_until("the command", SOON, || {
        ground.workspace.join("begun").exists().then_some(())
    });
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let outcome: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(outcome["status"], "cancelled");
    assert_eq!(outcome["unresolved"], 0);
    let session = outcome["sessionId"].as_str().unwrap();
    let shown = holdfast(&ground, &["sessions", "show", session, "--json"]).json();
    let tool = shown
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["kind"] == "tool")
        .unwrap();
    assert_eq!(tool["tool"]["state"], "interrupted");
}
