//! A full disk, and a supervisor that is killed. A small file system of its own needs root; without
//! it these tests say so on standard error and prove nothing.
#![cfg(target_os = "linux")]

use std::path::{Path, PathBuf};
use std::process::Command;

use holdfast_testkit::model_server::Step;
use holdfast_testkit::wait::SOON;
use serde_json::{Value, json};

use super::scene::{Plan, Scene, eventually, processes_with, shell};

/// A file system in memory, gone after the test.
struct Small {
    folder: tempfile::TempDir,
}

impl Small {
    /// `None` where it can't be mounted.
    fn mount(size: &str) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount")
            .args([
                "-t",
                "tmpfs",
                "-o",
                &format!("size={size},mode=700"),
                "tmpfs",
            ])
            .arg(folder.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self { folder }),
            _ => {
                #[allow(clippy::print_stderr, reason = "a skipped test must say so")]
                {
                    eprintln!("skipped: a tmpfs can't be mounted here; this needs root");
                }
                None
            }
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Takes all that is left.
    fn fill(&self) -> PathBuf {
        fill(&self.folder.path().join("filler"))
    }
}

fn fill(file: &Path) -> PathBuf {
    use std::io::Write;
    let mut filler = std::fs::File::create(file).unwrap();
    for size in [64 * 1024, 4096, 1] {
        let block = vec![b'.'; size];
        while filler.write_all(&block).is_ok() {}
    }
    file.to_path_buf()
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount")
            .arg("-l")
            .arg(self.folder.path())
            .output();
    }
}

async fn on(small: &Small) -> Scene {
    Scene::of(Plan {
        data: Some(small.data()),
        ..Plan::default()
    })
    .await
}

#[tokio::test]
async fn c12_without_its_receipt_a_tool_does_not_start() {
    let Some(small) = Small::mount("1m") else {
        return;
    };
    let scene = on(&small).await;
    let write = |name: &str, size: usize| {
        let arguments = json!({ "path": name, "content": "x".repeat(size) });
        Step::call(name, "write_file", &arguments.to_string())
    };
    scene.model.push(write("before", 10));
    scene.model.push(Step::text("written"));
    scene.turn("write before").await;

    // Larger than what is left of the log's last block.
    scene.model.push(write("during", 64 * 1024).held("reply"));
    let events = scene.client.events(&scene.path("/events"), None).await;
    let turn = scene.submit("write during").await;
    scene.model.wait_for_requests(3).await;
    let filler = small.fill();
    scene.model.release("reply");
    let done = events
        .wait_for_frame("the end", SOON, |frame| frame.kind() == "turn_done")
        .await;
    assert_eq!(done.data["status"], "failed", "{:?}", done.data);
    let code = done.data["code"].as_str().unwrap().to_owned();
    assert!(
        ["write_failed", "storage_failed"].contains(&code.as_str()),
        "{:?}",
        done.data
    );
    assert!(!scene.file("during").exists(), "it did not start");
    let status = scene.ended(&turn).await;
    assert_eq!(status["lastError"]["code"], code.as_str());
    assert_eq!(status["runtimeState"]["unresolved"], 0, "{status}");
    events
        .wait_for_frame("the notice", SOON, |frame| {
            frame.kind() == "notice" && frame.data["code"] == code.as_str()
        })
        .await;
    // A message that is too large for the disk is refused and not half stored.
    let large = json!({ "input": "y".repeat(64 * 1024) });
    let (refused, body) = scene.post("/submit", large).await;
    assert_eq!(refused, 507, "{body}");
    assert!(body["code"].is_string());

    std::fs::remove_file(filler).unwrap();
    scene.model.push(write("after", 10));
    scene.model.push(Step::text("written too"));
    scene.turn("write after").await;
    assert_eq!(scene.read("after"), "x".repeat(10));
    assert!(!scene.file("during").exists());
    let said: Vec<Value> = scene
        .items()
        .await
        .into_iter()
        .filter(|item| item["kind"] == "user")
        .map(|item| item["text"].clone())
        .collect();
    assert_eq!(said, ["write before", "write during", "write after"]);
    assert_eq!(scene.tools().await[0]["state"], "completed");
}

#[tokio::test]
async fn c12_acknowledged_data_outlives_the_full_disk_and_a_restart() {
    let Some(small) = Small::mount("1m") else {
        return;
    };
    let mut scene = on(&small).await;
    scene.model.push(Step::text("kept"));
    scene.turn("keep this").await;
    let before = scene.items().await;
    let filler = small.fill();
    let mut acknowledged = 0;
    // Messages until the disk takes no more; each that was answered 202 must be found again.
    let refused = loop {
        scene.model.push(Step::status(401, "{}"));
        let input = format!("{acknowledged} {}", "z".repeat(1500));
        let (status, body) = scene.post("/submit", json!({ "input": input })).await;
        if status != 202 {
            break (status, body);
        }
        acknowledged += 1;
        scene.ended(body["turnId"].as_str().unwrap()).await;
        assert!(acknowledged < 50, "the disk is full");
    };
    assert_eq!(refused.0, 507, "{}", refused.1);
    std::fs::remove_file(filler).unwrap();
    scene.host.kill9();
    scene.restart_after_death().await;
    let after = scene.items().await;
    assert_eq!(after[..before.len()], before);
    let said = after
        .iter()
        .filter(|item| item["kind"] == "user")
        .skip(1)
        .map(|item| item["text"].as_str().unwrap());
    let numbers: Vec<String> = said
        .map(|text| text.split(' ').next().unwrap().to_owned())
        .collect();
    let expected: Vec<String> = (0..acknowledged).map(|number| number.to_string()).collect();
    assert_eq!(numbers, expected);
}

#[tokio::test]
async fn c32_a_command_goes_on_when_the_disk_is_full() {
    let Some(small) = Small::mount("4m") else {
        return;
    };
    let scene = on(&small).await;
    // Prints three times what there is, then tells the workspace, which is on another disk.
    let command = "touch begun; until [ -e go ]; do sleep 0.02; done; \
                   head -c 12000000 /dev/zero | tr '\\0' x; touch printed; exit 3";
    scene.model.push(shell("s", command));
    scene.model.push(Step::text("it exited with 3"));
    let turn = scene.submit("print").await;
    eventually("the command", SOON, async || {
        scene.file("begun").exists().then_some(())
    })
    .await;
    let filler = fill(&small.folder.path().join("filler"));
    // Leaves room for the log, which the output then takes.
    let length = std::fs::metadata(&filler).unwrap().len();
    std::fs::OpenOptions::new()
        .write(true)
        .open(&filler)
        .unwrap()
        .set_len(length / 2)
        .unwrap();
    scene.write("go", "");
    eventually("the command's end", SOON, async || {
        scene.file("printed").exists().then_some(())
    })
    .await;
    let status = scene.ended(&turn).await;
    std::fs::remove_file(filler).unwrap();
    if status["runtimeState"]["turnStatus"] == "failed" {
        // The result did not fit into the log; the receipt kept it until there was room.
        scene.model.push(Step::text("go on then"));
        scene.turn("go on").await;
    }
    let tool = scene.tool_in("s", "failed").await;
    assert_eq!(tool["exitCode"], 3, "{tool}");
    assert_eq!(tool["truncated"], true, "{tool}");
    let output = tool["output"].as_str().unwrap();
    assert!(
        output.starts_with("xxx"),
        "{}",
        &output[..output.len().min(200)]
    );
    assert!(
        output.contains("[more output was discarded]"),
        "no word of it"
    );
    assert!(output.contains("[exit status 3]"));
    assert_eq!(scene.get("/status").await["runtimeState"]["unresolved"], 0);
}

#[tokio::test]
async fn c32_a_killed_supervisor_leaves_an_unknown_with_its_straggler_named() {
    let scene = Scene::new("full").await;
    let sleep = format!("sleep 8{}", std::process::id());
    scene.model.push(shell(
        "s",
        &format!("echo x >> f; kill -9 $PPID; exec {sleep}"),
    ));
    scene.model.push(shell("t", "echo y >> f"));
    scene.model.push(Step::text("I can't tell"));
    let turn = scene.submit("go").await;
    let status = scene.ended(&turn).await;
    let found = processes_with(&format!("{}\0", sleep.replace(' ', "\0")));
    assert_eq!(found.len(), 1, "it lives on");
    assert_eq!(status["runtimeState"]["unresolved"], 1);
    let tools = scene.tools().await;
    assert_eq!(tools[0]["state"], "unknown", "{}", tools[0]);
    assert_eq!(tools[1]["code"], "recovery_required", "{}", tools[1]);
    assert_eq!(scene.read("f"), "x\n");
    let snapshot = scene.get("/tool-recovery").await;
    assert_eq!(snapshot["statistics"]["unknown"], 1);
    let record = snapshot["calls"][0].clone();
    assert_eq!(record["state"], "unknown");
    let named = |value: &Value| value.to_string().contains(&found[0].to_string());
    let inspect = |snapshot: &Value| {
        json!({
            "sessionPath": snapshot["sessionPath"],
            "runtimeEpoch": snapshot["runtimeEpoch"],
            "revision": snapshot["revision"],
            "attemptId": snapshot["calls"][0]["identity"]["attempt_id"],
            "inspectionId": "",
            "action": "inspect",
        })
    };
    let (status, inspected) = scene.post("/tool-recovery", inspect(&snapshot)).await;
    assert_eq!(status, 200, "{inspected}");
    assert!(
        named(&tools[0]) || named(&record) || named(&inspected),
        "the straggler {} is named nowhere: {inspected} {}",
        found[0],
        tools[0]
    );
    // Only this test's own sleeper, by its id.
    let pid = rustix::process::Pid::from_raw(found[0]).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
