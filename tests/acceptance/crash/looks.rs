//! Diagnosis while writes are blocked (TR-20, TR-21, C07): reading, a read-only command and a GET go on
//! after an unknown write, every new write is refused, and a person's word ends it. A read-only
//! command that a crash cuts short is cancelled.
//!
//! Where the sandbox can't be used, the command's refusal with its reason is proven instead.

use holdfast_testkit::model_server::Call;
use holdfast_testkit::{ModelServer, Step};
use serde_json::json;

use super::publication::unknown_write;
use super::requests::{checked, told};
use super::stage::{Stage, calls, read, shell, text, until_there, write};
use super::surfaces::Expected;

const BLOCKED: &str = "blocked: recovery_required: ";

/// A call of the shell in the sandbox.
pub(crate) fn look(id: &str, command: &str) -> Call {
    let arguments = json!({ "command": command, "read_only": true });
    Call::new(id, "shell", &arguments.to_string())
}

/// Whether the host finds a sandbox here, as `holdfast doctor` tells it.
fn sandbox_works(stage: &Stage) -> bool {
    let findings = stage.command(&["doctor", "--json"]);
    let finding = findings
        .as_array()
        .unwrap()
        .iter()
        .find(|finding| finding["name"] == "sandbox")
        .unwrap_or_else(|| panic!("the doctor says nothing of it: {findings}"));
    let message = text(&finding["message"]);
    match text(&finding["check"]).as_str() {
        "ok" => true,
        "warning" => {
            eprintln!("no sandbox here: {message}");
            assert!(message.contains("nothing was run"), "{message}");
            false
        }
        other => panic!("{other}: {message}"),
    }
}

fn git(stage: &Stage, arguments: &[&str]) {
    let done = std::process::Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=e@x", "-C"])
        .arg(stage.in_workspace(""))
        .args(arguments)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[tokio::test]
async fn c07_an_unknown_write_blocks_writes_and_no_diagnosis() {
    let stage = unknown_write().await;
    git(&stage, &["init", "-q"]);
    let works = sandbox_works(&stage);
    let attempt = stage.unresolved().await;
    let pages = ModelServer::start(Step::text("unused"));
    let page = json!({ "url": format!("{}/nothing-here", pages.url()) }).to_string();
    stage.model.push(calls([
        write("w1", "other.txt", "other\n"),
        read("r1", "notes.txt"),
        look("l1", "git status --short"),
        Call::new("f1", "fetch", &page),
        look("l2", "echo x > other.txt"),
    ]));
    // Under a new id, by another tool, and by one that only says that it reads.
    stage.model.push(calls([
        write("w2", "other.txt", "other\n"),
        shell("s1", "touch other.txt"),
    ]));
    stage.turn("look at what happened").await;
    let messages = checked(&stage.model);
    for call in ["w1", "w2", "s1"] {
        let text = told(&messages, call);
        assert!(text.starts_with(BLOCKED), "{call}: {text}");
        assert!(text.contains(&attempt), "the attempt is named: {text}");
        assert!(text.contains("shell with read_only still work"), "{text}");
    }
    assert!(told(&messages, "r1").contains("the new content"));
    assert!(told(&messages, "f1").contains("404"));
    let (status, writing) = (told(&messages, "l1"), told(&messages, "l2"));
    if works {
        assert!(status.contains("?? notes.txt"), "{status}");
        assert!(status.contains("exit status 0"), "{status}");
        assert!(writing.contains("Read-only file system"), "{writing}");
        let tools = stage.tools().await;
        for (call, state) in [("l1", "completed"), ("l2", "failed")] {
            assert_eq!(tools[call]["state"], state, "{}", tools[call]);
            assert_eq!(tools[call]["readOnly"], true, "{}", tools[call]);
        }
        let receipts: Vec<_> = stage
            .records()
            .into_iter()
            .filter(|(kind, payload)| {
                kind == "receipt" && payload["identity"]["canonical_tool"] == "shell"
            })
            .collect();
        assert_eq!(receipts.len(), 2, "the blocked one has none");
        assert!(
            receipts
                .iter()
                .all(|(_, payload)| payload["read_only"] == true)
        );
    } else {
        for text in [status, writing] {
            assert!(
                text.starts_with("refused: read-only commands need a sandbox"),
                "{text}"
            );
        }
    }
    assert!(!stage.in_workspace("other.txt").exists());
    assert_eq!(stage.unresolved().await, attempt);

    // A person resolves it over HTTP, and writing goes on.
    let inspection = text(&stage.inspect(&attempt).await["inspection_id"]);
    let (status, snapshot) = stage.resolve("confirm", &attempt, &inspection).await;
    assert_eq!(
        (status, snapshot["calls"].as_array().unwrap().len()),
        (200, 0)
    );
    stage
        .model
        .push(calls([write("w3", "other.txt", "other\n")]));
    stage.turn("go on").await;
    assert_eq!(
        std::fs::read_to_string(stage.in_workspace("other.txt")).unwrap(),
        "other\n"
    );
}

#[tokio::test]
async fn tr_21_a_read_only_command_runs_in_every_mode_unasked() {
    let stage = Stage::new("read-only", Vec::new()).await;
    let works = sandbox_works(&stage);
    stage.model.push(calls([
        look("l1", "echo looked"),
        shell("s1", "echo x > made"),
        look("l2", "echo looked again"),
    ]));
    stage.submit("look").await;
    stage.idle().await;
    let tools = stage.tools().await;
    assert_eq!(tools["s1"]["state"], "not_started", "{}", tools["s1"]);
    for call in ["l1", "l2"] {
        let expected = if works { "completed" } else { "not_started" };
        assert_eq!(tools[call]["state"], expected, "{}", tools[call]);
    }
    assert_eq!(stage.count("prompt_asked"), 0);
}

#[tokio::test]
async fn tr_49_read_only_commands_run_side_by_side() {
    let stage = Stage::new("ask", Vec::new()).await;
    if !sandbox_works(&stage) {
        return;
    }
    let gate = stage.in_workspace("gate");
    let wait = "until [ -e gate ]; do sleep 0.02; done; echo open";
    stage
        .model
        .push(calls([look("l1", wait), look("l2", wait)]));
    stage.submit("look twice").await;
    for call in ["l1", "l2"] {
        stage.until_tool(call, "in_flight").await;
    }
    // Both run before either may end.
    let tools = stage.tools().await;
    assert_eq!(tools["l1"]["state"], "in_flight");
    std::fs::write(gate, "").unwrap();
    stage.idle().await;
    for call in ["l1", "l2"] {
        assert_eq!(stage.tool(call).await["state"], "completed");
    }
}

#[tokio::test]
async fn tr_21_a_read_only_command_is_cancelled_by_a_crash() {
    let mut stage = Stage::new("full", Vec::new()).await;
    if !sandbox_works(&stage) {
        return;
    }
    // A file of outside tells that it runs: its output, in the effect folder.
    stage
        .model
        .push(calls([look("l1", "echo begun; sleep 600")]));
    stage.submit("look").await;
    stage.until_tool("l1", "in_flight").await;
    let attempt = text(&stage.tool("l1").await["attemptId"]);
    let folder = stage.folder().join("effects").join(&attempt);
    until_there(&folder.join("start")).await;
    stage.kill();
    stage.restart();
    let expected = Expected {
        calls: &[("l1", "cancelled")],
        pending: false,
        jobs: 0,
        turn: "interrupted",
    };
    stage.check_surfaces(&expected).await;
    stage.model.push(calls([write("w1", "a.txt", "a\n")]));
    stage.turn("continue").await;
    let messages = checked(&stage.model);
    assert!(told(&messages, "l1").starts_with("cancelled"));
    assert!(stage.in_workspace("a.txt").exists(), "nothing is blocked");
    // Nobody waits for it any more, so it ends with its host.
    holdfast_testkit::wait::until("its end", holdfast_testkit::wait::SOON, || {
        processes_of(&attempt).is_empty().then_some(())
    })
    .await;
}

/// Processes that carry an attempt's id in their environment.
fn processes_of(attempt: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let environment = std::fs::read(entry.path().join("environ")).ok()?;
            let carries = environment
                .windows(attempt.len())
                .any(|bytes| bytes == attempt.as_bytes());
            carries.then(|| entry.file_name().to_string_lossy().into_owned())
        })
        .collect()
}
