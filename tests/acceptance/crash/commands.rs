//! A host killed around a shell command: before its effect, after it, at each step of its start.

use std::path::PathBuf;

use holdfast_testkit::Step;
use holdfast_testkit::wait::{SOON, until, until_asked};
use serde_json::{Value, json};

use super::requests::{checked, said, told};
use super::stage::{Stage, calls, shell, signal, text, until_there, wait_for_file};
use super::surfaces::Expected;

/// `began`, then a gate, then the effect, then another gate, then an end with a status of its own.
pub(crate) fn gated(stage: &Stage) -> String {
    let file = |name: &str| stage.beside(name);
    format!(
        "echo begun; touch {}; {}; {}; echo effect; touch {}; {}; echo ended; exit 7",
        file("began").display(),
        wait_for_file(&file("effect-gate")),
        stage.ledger.append("effect"),
        file("happened").display(),
        wait_for_file(&file("end-gate")),
    )
}

pub(crate) fn open(gate: PathBuf) {
    std::fs::write(gate, "").unwrap();
}

/// The real end of [`gated`].
fn check_real_end(tool: &Value) {
    assert_eq!(tool["resultSource"], "recovered", "{tool}");
    assert_eq!(tool["exitCode"], 7, "{tool}");
    let output = tool["output"].as_str().unwrap();
    assert!(
        output.starts_with("begun\neffect\nended\n"),
        "the output: {output:?}"
    );
}

async fn until_receipt(stage: &Stage, attempt: &str) {
    until_there(&stage.folder().join("effects").join(attempt).join("exit")).await;
}

/// The attempt of the only receipt in the log.
pub(crate) fn only_attempt(stage: &Stage) -> String {
    let receipts: Vec<Value> = stage
        .records()
        .into_iter()
        .filter(|(kind, _)| kind == "receipt")
        .map(|(_, payload)| payload)
        .collect();
    assert_eq!(receipts.len(), 1);
    text(&receipts[0]["identity"]["attempt_id"])
}

#[tokio::test]
async fn tr_18_a_command_killed_before_its_effect_goes_on_and_its_real_end_is_the_result() {
    let mut stage = Stage::new("full", vec![]).await;
    let command = gated(&stage);
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("do it").await;
    until_there(&stage.beside("began")).await;
    stage.kill();
    assert_eq!(stage.ledger.count("effect"), 0);
    stage.restart();

    let running = Expected {
        calls: &[("c1", "in_flight")],
        pending: false,
        jobs: 1,
        turn: "interrupted",
    };
    stage.check_surfaces(&running).await;
    open(stage.beside("effect-gate"));
    until_there(&stage.beside("happened")).await;
    open(stage.beside("end-gate"));
    stage.until_no_jobs().await;

    let tool = stage.until_tool("c1", "failed").await;
    check_real_end(&tool);
    let ended = Expected {
        calls: &[("c1", "failed")],
        jobs: 0,
        ..running
    };
    stage.check_surfaces(&ended).await;
    stage.turn("continue").await;
    let messages = checked(&stage.model);
    assert!(told(&messages, "c1").starts_with("begun\neffect\nended\n"));
    assert_eq!(said(&messages), ["do it", "continue"]);
    stage.check_command_line(&ended);
    assert_eq!(stage.ledger.lines(), ["effect"]);
    assert_eq!(stage.count("tool_started"), 1);
    assert_eq!(stage.count("tool_result"), 1);
}

#[tokio::test]
async fn c02_a_command_killed_after_its_effect_is_adopted_and_continue_runs_nothing() {
    let mut stage = Stage::new("full", vec![]).await;
    let command = gated(&stage);
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("do it").await;
    open(stage.beside("effect-gate"));
    until_there(&stage.beside("happened")).await;
    stage.kill();
    assert_eq!(stage.ledger.count("effect"), 1);
    open(stage.beside("end-gate"));
    until_receipt(&stage, &only_attempt(&stage)).await;
    stage.restart();

    let expected = Expected {
        calls: &[("c1", "failed")],
        pending: false,
        jobs: 0,
        turn: "interrupted",
    };
    stage.until_no_jobs().await;
    stage.check_surfaces(&expected).await;
    check_real_end(&stage.tool("c1").await);
    stage.turn("continue").await;
    let messages = checked(&stage.model);
    assert!(told(&messages, "c1").starts_with("begun\neffect\nended\n"));
    stage.check_command_line(&Expected {
        turn: "completed",
        ..expected
    });
    assert_eq!(stage.ledger.lines(), ["effect"]);
    assert_eq!(stage.count("tool_started"), 1);
    assert_eq!(stage.count("tool_result"), 1);
    // The folder has served; nothing is left to be looked at again.
    assert!(
        !stage
            .folder()
            .join("effects")
            .join(only_attempt(&stage))
            .exists()
    );
}

#[tokio::test]
async fn tr_15_what_is_learnt_after_the_model_was_told_unknown_comes_as_a_note() {
    let mut stage = Stage::new("full", vec![]).await;
    let command = gated(&stage);
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("do it").await;
    until_there(&stage.beside("began")).await;
    stage.kill();
    stage.restart();
    stage.turn("what happened?").await;
    let messages = checked(&stage.model);
    let synthetic = told(&messages, "c1");
    assert!(synthetic.contains("unknown"), "{synthetic}");
    assert!(!synthetic.contains(&command));

    open(stage.beside("effect-gate"));
    open(stage.beside("end-gate"));
    stage.until_no_jobs().await;
    check_real_end(&stage.until_tool("c1", "failed").await);
    stage.turn("and now?").await;
    let messages = checked(&stage.model);
    assert_eq!(told(&messages, "c1"), synthetic, "what was sent stays");
    let said = said(&messages);
    assert_eq!(said.len(), 4, "{said:?}");
    let note = &said[2];
    assert!(note.contains("exit status 7"), "{note}");
    assert!(!note.contains("effect-gate"), "no arguments: {note}");
    // Told once.
    stage.turn("once more").await;
    let messages = checked(&stage.model);
    assert_eq!(
        messages.last().unwrap()["content"],
        "once more",
        "nothing is behind the message"
    );
    assert_eq!(stage.count("host_note"), 1);
    assert_eq!(stage.ledger.lines(), ["effect"]);
}

#[tokio::test]
async fn tr_15_what_is_learnt_of_several_calls_comes_in_one_note() {
    let mut stage = Stage::new("full", vec![]).await;
    let gate = stage.beside("gate");
    for call in ["c1", "c2"] {
        let began = stage.beside(call);
        let command = format!(
            "touch {}; {}; echo the end of {call}",
            began.display(),
            wait_for_file(&gate)
        );
        stage.model.push(calls([shell(call, &command)]));
        stage.submit(&format!("run {call}")).await;
        if call == "c2" {
            // The first command behind a restart (TR-46).
            let asked = stage.until_asked(call).await;
            assert_eq!(stage.allow(&asked).await.0, 204);
        }
        until_there(&began).await;
        stage.kill();
        stage.restart();
    }
    stage.turn("what happened?").await;
    let messages = checked(&stage.model);
    let synthetic = ["c1", "c2"].map(|call| told(&messages, call));
    for call in ["c1", "c2"] {
        let card = stage.tool(call).await;
        assert_eq!(card["state"], "in_flight", "{card}");
        assert_eq!(card["resultSource"], "synthetic", "{card}");
    }
    open(gate);
    stage.until_no_jobs().await;
    stage.turn("and now?").await;
    let messages = checked(&stage.model);
    assert_eq!(["c1", "c2"].map(|call| told(&messages, call)), synthetic);
    let said = said(&messages);
    let [.., note, last] = said.as_slice() else {
        panic!("{said:?}");
    };
    assert_eq!(last, "and now?");
    assert_eq!(note.matches("- shell started 20").count(), 2, "{note}");
    for part in ["exit status 0", "the end of c1", "the end of c2"] {
        assert!(note.contains(part), "{part} in {note}");
    }
    assert!(!note.contains("touch"), "no arguments: {note}");
    assert_eq!(stage.count("host_note"), 1);
}

#[tokio::test]
async fn c01_a_long_command_is_shown_as_running_and_can_be_stopped() {
    let mut stage = Stage::new("full", vec![]).await;
    let began = stage.beside("began");
    let command = format!(
        "touch {}; sleep 300; {}",
        began.display(),
        stage.ledger.append("x")
    );
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("wait, then write").await;
    until_there(&began).await;
    stage.kill();
    stage.restart();
    stage
        .check_surfaces(&Expected {
            calls: &[("c1", "in_flight")],
            pending: false,
            jobs: 1,
            turn: "interrupted",
        })
        .await;
    let jobs = stage.get("/jobs").await;
    assert_eq!(jobs[0]["kind"], "reattached");
    let attempt = stage.tool("c1").await["attemptId"].clone();
    assert_eq!(jobs[0]["id"], attempt);

    let (status, body) = stage.post("/jobs/cancel", &json!({ "id": attempt })).await;
    assert_eq!(status, 202, "{body}");
    stage.until_no_jobs().await;
    let tool = stage.until_tool("c1", "interrupted").await;
    assert_eq!(tool["resultSource"], "recovered");
    let stopped = Expected {
        calls: &[("c1", "interrupted")],
        pending: false,
        jobs: 0,
        turn: "interrupted",
    };
    stage.check_surfaces(&stopped).await;
    stage.turn("continue").await;
    let told = told(&checked(&stage.model), "c1");
    assert!(told.contains("effects may be partial"), "{told}");
    stage.check_command_line(&Expected {
        turn: "completed",
        ..stopped
    });
    assert_eq!(stage.ledger.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn c01_with_on_host_loss_stop_the_command_ends_with_its_host() {
    let mut stage = Stage::configured("full", "on_host_loss = \"stop\"", vec![]).await;
    let began = stage.beside("began");
    let command = format!(
        "touch {}; sleep 300; {}",
        began.display(),
        stage.ledger.append("x")
    );
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("wait, then write").await;
    until_there(&began).await;
    let attempt = only_attempt(&stage);
    stage.kill();
    until_receipt(&stage, &attempt).await;
    stage.restart();
    stage.until_no_jobs().await;
    let tool = stage.until_tool("c1", "interrupted").await;
    let output = text(&tool["output"]);
    assert!(
        output.contains("the program that ran it was lost"),
        "{output}"
    );
    let expected = Expected {
        calls: &[("c1", "interrupted")],
        pending: false,
        jobs: 0,
        turn: "interrupted",
    };
    stage.check_surfaces(&expected).await;
    stage.turn("continue").await;
    checked(&stage.model);
    stage.check_command_line(&Expected {
        turn: "completed",
        ..expected
    });
    assert_eq!(stage.ledger.lines(), Vec::<String>::new());
}

/// A session whose host was killed at this place around the command that writes `x`.
async fn killed_at(place: &str) -> Stage {
    let mut stage = Stage::new("full", vec![]).await;
    let command = stage.ledger.append("x");
    stage
        .model
        .push(calls([shell("c1", &format!("{command} && echo written"))]));
    stage.restart_stopping_at(place, 1);
    stage.submit("write it").await;
    stage.kill_where_it_parks().await;
    stage
}

/// The same end on all surfaces; then the next message, whose request tells `words` of the call.
async fn check_end(mut stage: Stage, state: &str, words: &str) -> Vec<String> {
    let expected = Expected {
        calls: &[("c1", state)],
        pending: false,
        jobs: 0,
        turn: "interrupted",
    };
    stage.until_no_jobs().await;
    stage.check_surfaces(&expected).await;
    // Nothing is blocked: another write runs, after a question where the host asks.
    let before = stage.ledger.lines();
    let command = stage.ledger.append("y");
    stage.model.push(calls([shell("c2", &command)]));
    stage.turn("continue").await;
    let messages = checked(&stage.model);
    let told = told(&messages, "c1");
    assert!(told.contains(words), "{told}");
    assert_eq!(stage.tool("c2").await["state"], "completed");
    assert_eq!(
        stage.ledger.lines(),
        [before, vec!["y".to_owned()]].concat()
    );
    stage.check_command_line(&Expected {
        calls: &[("c1", state), ("c2", "completed")],
        turn: "completed",
        ..expected
    });
    stage.ledger.lines()
}

#[tokio::test]
async fn c04_a_receipt_without_its_start_record_is_cancelled() {
    let mut stage = killed_at("start_durable").await;
    // A torn write: of the start record only a part is there.
    let log = std::fs::read(stage.log()).unwrap();
    let last = String::from_utf8(log.clone()).unwrap();
    let start = last.trim_end().rfind('\n').unwrap() + 1;
    assert!(last[start..].contains("\"tool_started\""), "{last}");
    std::fs::write(stage.log(), &log[..start + 40]).unwrap();
    stage.restart();
    stage.status().await;
    assert_eq!(stage.count("tool_started"), 0);
    let lines = check_end(stage, "cancelled", "never started").await;
    assert_eq!(lines, ["y"]);
}

#[tokio::test]
async fn c04_a_start_that_nobody_claimed_is_fenced_and_not_started() {
    let mut stage = killed_at("start_durable").await;
    stage.restart();
    let lines = check_end(stage, "not_started", "never ran").await;
    assert_eq!(lines, ["y"]);
}

#[tokio::test]
async fn c04_after_the_claim_the_real_outcome_counts() {
    let mut stage = Stage::new("full", vec![]).await;
    let go = stage.beside("go");
    let command = format!(
        "{}; {} && echo written",
        wait_for_file(&go),
        stage.ledger.append("x")
    );
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("write it").await;
    let effects = stage.folder().join("effects");
    until("the claim", SOON, || {
        let folder = std::fs::read_dir(&effects).ok()?.next()?.ok()?.path();
        folder.join("start").exists().then_some(())
    })
    .await;
    stage.kill();
    open(go);
    stage.restart();
    let lines = check_end(stage, "completed", "written\n").await;
    assert_eq!(lines, ["x", "y"]);
}

#[tokio::test]
async fn tr_08_a_result_that_was_not_stored_is_read_again() {
    let mut stage = killed_at("tool_ended").await;
    assert_eq!(stage.count("tool_result"), 0);
    assert_eq!(stage.ledger.count("x"), 1);
    stage.restart();
    assert_eq!(
        stage.until_tool("c1", "completed").await["resultSource"],
        "recovered"
    );
    let lines = check_end(stage, "completed", "written\n").await;
    assert_eq!(lines, ["x", "y"]);
}

#[tokio::test]
async fn tr_08_a_stored_result_that_nobody_heard_of_is_there() {
    let mut stage = killed_at("result_durable").await;
    assert_eq!(stage.count("tool_result"), 1);
    stage.restart();
    assert_eq!(
        stage.until_tool("c1", "completed").await["resultSource"],
        "live"
    );
    let lines = check_end(stage, "completed", "written\n").await;
    assert_eq!(lines, ["x", "y"]);
}

/// Writes another boot into the start record, sealed as the log seals its lines.
fn rewrite_boot(stage: &Stage, boot: &str) {
    let log = std::fs::read_to_string(stage.log()).unwrap();
    let lines: Vec<String> = log
        .lines()
        .map(|line| {
            let Some(at) = line
                .find("\"boot_id\":\"")
                .filter(|_| line.contains("\"tool_started\""))
            else {
                return line.to_owned();
            };
            let at = at + "\"boot_id\":\"".len();
            let end = at + line[at..].find('"').unwrap();
            let seal = line.rfind(",\"c\":\"").unwrap();
            let body = format!("{}{boot}{}", &line[..at], &line[end..seal]);
            let crc =
                crc32c::crc32c_append(crc32c::crc32c(stage.session.as_bytes()), body.as_bytes());
            format!("{body},\"c\":\"{crc:08x}\"}}")
        })
        .collect();
    assert_ne!(lines.join("\n"), log.trim_end());
    std::fs::write(stage.log(), lines.join("\n") + "\n").unwrap();
}

#[tokio::test]
async fn sv_10_after_another_boot_a_start_without_an_end_is_unknown() {
    let mut stage = killed_at("start_durable").await;
    rewrite_boot(&stage, "00000000-0000-4000-8000-000000000000");
    stage.restart();
    // The same files as in c04, and another truth: the start may have been lost with the machine.
    let expected = Expected {
        calls: &[("c1", "unknown")],
        pending: false,
        jobs: 0,
        turn: "interrupted",
    };
    stage.check_surfaces(&expected).await;
    stage.restart();
    stage.check_surfaces(&expected).await;
    stage
        .model
        .push(Step::default().with_call(shell("c2", "true")));
    stage.turn("continue").await;
    let messages = checked(&stage.model);
    assert!(told(&messages, "c1").contains("unknown"));
    assert!(told(&messages, "c2").starts_with("blocked: recovery_required"));
    assert_eq!(stage.ledger.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn c32_host_and_supervisor_killed_leave_an_unknown_that_can_be_resolved_when_all_has_ended() {
    let mut stage = Stage::new("full", vec![]).await;
    let command = gated(&stage);
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("do it").await;
    until_there(&stage.beside("began")).await;
    let attempt = only_attempt(&stage);
    let folder = stage.effect_folder(&attempt);
    let supervisor = stage.supervisor_of(&attempt);
    stage.kill();
    signal(supervisor, "KILL");
    stage.restart();
    let expected = Expected {
        calls: &[("c1", "unknown")],
        pending: false,
        jobs: 1,
        turn: "interrupted",
    };
    stage.check_surfaces(&expected).await;
    let record = stage.inspect(&attempt).await;
    assert_eq!(record["inspection_state"], "unknown");
    let process = &record["inspection_evidence"]["process"];
    assert_eq!(process["alive"], true, "{record}");
    // While something of it lives, nobody can say that it is over.
    let id = text(&record["inspection_id"]);
    for action in ["confirm", "dismiss"] {
        let (status, body) = stage.resolve(action, &attempt, &id).await;
        assert_eq!((status, &body["code"]), (409, &json!("executor_alive")));
    }
    open(stage.beside("effect-gate"));
    open(stage.beside("end-gate"));
    until("the effect", SOON, || {
        (stage.ledger.count("effect") == 1).then_some(())
    })
    .await;
    let dismissed = until_asked("the end of all of it", SOON, async || {
        let (status, body) = stage.resolve("dismiss", &attempt, "").await;
        (status == 200).then_some(body)
    })
    .await;
    assert_eq!(dismissed["statistics"]["dismissed"], 1);
    stage.until_no_jobs().await;
    stage.turn("continue").await;
    let messages = checked(&stage.model);
    assert!(told(&messages, "c1").contains("unknown"));
    stage.check_command_line(&Expected {
        calls: &[("c1", "user_dismissed")],
        jobs: 0,
        turn: "completed",
        ..expected
    });
    assert!(folder.exists(), "what is unknown keeps its evidence");
    assert_eq!(stage.ledger.lines(), ["effect"]);
}
