//! Hosts killed around commands in the background: they outlive the host, are found again, and what
//! became of them is the truth on every surface (TR-18, TR-50, C22).

use holdfast_testkit::model_server::Call;
use holdfast_testkit::wait::{SOON, until};
use serde_json::{Value, json};

use super::commands::{gated, only_attempt, open};
use super::requests::{checked, said, told};
use super::stage::{Stage, calls, shell, signal, text, until_there};
use super::surfaces::Expected;

fn background(id: &str, command: &str) -> Call {
    let arguments = json!({ "command": command, "background": true });
    Call::new(id, "shell", &arguments.to_string())
}

const RUNNING: Expected<'static> = Expected {
    calls: &[("c1", "in_flight")],
    pending: false,
    jobs: 1,
    turn: "completed",
};

/// A gated command in the background, begun, behind a turn that has ended.
async fn started() -> Stage {
    let stage = Stage::new("full", vec![]).await;
    stage.model.push(calls([background("c1", &gated(&stage))]));
    stage.turn("start it").await;
    until_there(&stage.beside("began")).await;
    stage.check_surfaces(&RUNNING).await;
    stage
}

fn check_told(stage: &Stage, answer: &str) {
    let messages = checked(&stage.model);
    assert_eq!(told(&messages, "c1"), answer, "what was sent stays");
    let said = said(&messages);
    let note = &said[said.len() - 2];
    assert!(note.contains("What became of jobs"), "{note}");
    assert!(note.contains("exit status 7"), "{note}");
    assert!(!note.contains("effect-gate"), "no arguments: {note}");
}

#[tokio::test]
async fn c22_tr_18_a_background_command_outlives_a_killed_host_and_is_a_job_again() {
    let mut stage = started().await;
    let answer = told(&checked(&stage.model), "c1");
    stage.kill();
    stage.restart();
    stage.check_surfaces(&RUNNING).await;
    assert_eq!(stage.get("/jobs").await[0]["kind"], "reattached");
    open(stage.beside("effect-gate"));
    until_there(&stage.beside("happened")).await;
    open(stage.beside("end-gate"));
    stage.until_no_jobs().await;
    let tool = stage.until_tool("c1", "failed").await;
    assert_eq!(
        (
            &tool["resultSource"],
            &tool["exitCode"],
            &tool["background"]
        ),
        (&json!("recovered"), &json!(7), &json!("model"))
    );
    let ended = Expected {
        calls: &[("c1", "failed")],
        jobs: 0,
        ..RUNNING
    };
    stage.check_surfaces(&ended).await;
    stage.turn("continue").await;
    check_told(&stage, &answer);
    stage.check_command_line(&ended);
    assert_eq!(stage.ledger.lines(), ["effect"]);
    for kind in ["tool_started", "job_started", "tool_result"] {
        assert_eq!(stage.count(kind), 1, "{kind}");
    }
}

#[tokio::test]
async fn c22_tr_18_a_background_command_that_ends_without_a_host_has_its_real_end() {
    let mut stage = started().await;
    let answer = told(&checked(&stage.model), "c1");
    let attempt = only_attempt(&stage);
    stage.kill();
    open(stage.beside("effect-gate"));
    open(stage.beside("end-gate"));
    until_there(&stage.effect_folder(&attempt).join("exit")).await;
    stage.restart();
    stage.until_no_jobs().await;
    let ended = Expected {
        calls: &[("c1", "failed")],
        jobs: 0,
        ..RUNNING
    };
    stage.check_surfaces(&ended).await;
    stage.turn("continue").await;
    check_told(&stage, &answer);
    assert_eq!(stage.ledger.lines(), ["effect"]);
    assert!(!stage.effect_folder(&attempt).exists());
}

/// TR-50: if it ends as unknown, it holds the barrier.
#[tokio::test]
async fn tr_50_a_job_whose_supervisor_is_killed_is_unknown_and_blocks() {
    let stage = started().await;
    let answer = told(&checked(&stage.model), "c1");
    let attempt = only_attempt(&stage);
    signal(stage.supervisor_of(&attempt), "KILL");
    // The command goes with it, so that nothing of it is left; what it starts comes and goes.
    until("the end of the command", SOON, || {
        let pids = command_pids(&attempt);
        for pid in &pids {
            end(*pid);
        }
        pids.is_empty().then_some(())
    })
    .await;
    stage.until_no_jobs().await;
    let unknown = Expected {
        calls: &[("c1", "unknown")],
        jobs: 0,
        ..RUNNING
    };
    stage.check_surfaces(&unknown).await;
    stage.model.push(calls([shell("c2", "echo more")]));
    stage.turn("more").await;
    let messages = checked(&stage.model);
    assert!(
        told(&messages, "c2").starts_with("blocked: recovery_required"),
        "{messages:#?}"
    );
    assert_eq!(told(&messages, "c1"), answer);
    let said = said(&messages);
    assert!(said[1].contains("its outcome is unknown"), "{said:?}");
    assert_eq!(stage.unresolved().await, attempt);
    let (status, body) = stage.resolve("dismiss", &attempt, "").await;
    assert_eq!(status, 200, "{body}");
    stage.model.push(calls([shell("c3", "echo more")]));
    stage.turn("again").await;
    assert_eq!(stage.tool("c3").await["state"], "completed");
    assert_eq!(stage.ledger.count("effect"), 0);
}

/// Ends a process that may have ended already.
fn end(pid: u32) {
    let pid = i32::try_from(pid).unwrap();
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// Processes of an attempt besides its supervisor, by the id in their environment.
fn command_pids(attempt: &str) -> Vec<u32> {
    let wanted = format!("HOLDFAST_ATTEMPT_ID={attempt}");
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
        .filter(|pid| {
            let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
            environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == wanted.as_bytes())
        })
        .collect()
}

#[tokio::test]
async fn tr_50_a_command_that_a_person_moved_outlives_a_killed_host() {
    let mut stage = Stage::new("full", vec![]).await;
    stage.model.push(calls([shell("c1", &gated(&stage))]));
    stage.submit("do it").await;
    until_there(&stage.beside("began")).await;
    let attempt = only_attempt(&stage);
    let (status, body) = stage
        .post("/jobs/background", &json!({ "attemptId": attempt }))
        .await;
    assert_eq!(status, 200, "{body}");
    // What was answered is durable: the host dies at once.
    stage.kill();
    stage.restart();
    let tool = stage.tool("c1").await;
    assert_eq!(
        (&tool["state"], &tool["background"]),
        (&json!("in_flight"), &json!("person"))
    );
    open(stage.beside("effect-gate"));
    open(stage.beside("end-gate"));
    stage.until_no_jobs().await;
    assert_eq!(stage.until_tool("c1", "failed").await["exitCode"], 7);
    stage.turn("continue").await;
    let messages = checked(&stage.model);
    let answer = told(&messages, "c1");
    assert!(answer.contains("the person moved this command"), "{answer}");
    assert_eq!(stage.ledger.lines(), ["effect"]);
}

/// A stop of a job is no uncertain effect: the job itself says what became of it.
#[tokio::test]
async fn tr_14_a_host_killed_while_a_job_is_stopped_leaves_nothing_unresolved() {
    let mut stage = Stage::new("full", vec![]).await;
    let (up, asked) = (stage.beside("up"), stage.beside("asked"));
    // It stays for the whole grace.
    let command = format!(
        "trap ': > {}' TERM; touch {}; while :; do sleep 0.02; done",
        asked.display(),
        up.display()
    );
    stage.model.push(calls([background("c1", &command)]));
    stage.turn("start it").await;
    until_there(&up).await;
    let job = text(&stage.tool("c1").await["attemptId"]);
    let stop = Call::new("c2", "job_stop", &json!({ "id": job }).to_string());
    stage.model.push(calls([stop]));
    stage.submit("stop it").await;
    until_there(&asked).await;
    stage.kill();
    stage.restart();
    stage.until_no_jobs().await;
    let stopped = stage.tool("c2").await;
    assert_eq!(stopped["resultSource"], "recovered", "{stopped}");
    assert!(
        matches!(stopped["state"].as_str(), Some("completed" | "failed")),
        "{stopped}"
    );
    assert_eq!(
        stage.until_tool("c1", "interrupted").await["exitCode"],
        Value::Null
    );
    assert_eq!(stage.status().await["runtimeState"]["unresolved"], 0);
    stage.turn("continue").await;
    checked(&stage.model);
}
