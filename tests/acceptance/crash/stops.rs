//! Stop through the whole host: a tree that ignores TERM and leaves its session ends whole, live,
//! found again after a restart, and with its host (SV-03, TR-11, acceptance 9).

use std::time::Instant;

use holdfast_testkit::wait::{SOON, until};
use serde_json::json;

use super::commands::only_attempt;
use super::leftovers::carriers;
use super::stage::{Stage, calls, shell, signal, text, write};

const STUBBORN: &str = r#"bash -c 'trap "" TERM; sleep 600 & setsid sleep 600 & sleep 600'"#;

/// A session in which that command runs with all its processes; and the attempt's id.
async fn running(agent: &str) -> (Stage, String, String) {
    let stage = Stage::configured("full", agent, vec![]).await;
    stage.model.push(calls([shell("c1", STUBBORN)]));
    let turn = stage.submit("be stubborn").await;
    let attempt = until("the attempt", SOON, || {
        (stage.count("tool_started") == 1).then(|| only_attempt(&stage))
    })
    .await;
    until("three sleepers", SOON, || {
        let sleepers = carriers(&attempt);
        let count = sleepers.iter().filter(|(_, name)| name == "sleep").count();
        (count == 3).then_some(())
    })
    .await;
    (stage, turn, attempt)
}

/// Nothing is left, the state says so, and the next write is admitted.
async fn check_ended(stage: &Stage, attempt: &str, source: &str) {
    let tool = stage.until_tool("c1", "interrupted").await;
    assert_eq!(carriers(attempt), vec![], "{tool}");
    assert_eq!(tool["resultSource"], source);
    assert!(text(&tool["output"]).contains("effects may be partial"));
    let status = stage.status().await;
    assert_eq!(status["runtimeState"]["unresolved"], 0);
    assert_eq!(status["backgroundJobs"], 0);
    stage.model.push(calls([write("c2", "next.txt", "next")]));
    stage.turn("write").await;
    assert_eq!(stage.tool("c2").await["state"], "completed");
    assert_eq!(
        std::fs::read_to_string(stage.in_workspace("next.txt")).unwrap(),
        "next"
    );
}

#[tokio::test]
async fn sv_03_stop_ends_a_tree_that_ignores_term_and_the_next_write_is_admitted() {
    let (stage, turn, attempt) = running("").await;
    let asked = Instant::now();
    let (status, body) = stage.post("/cancel", &json!({ "turnId": turn })).await;
    assert_eq!(status, 202, "{body}");
    stage.idle().await;
    eprintln!("from Stop to idle: {:?} (promised: 5 s)", asked.elapsed());
    check_ended(&stage, &attempt, "live").await;
}

#[tokio::test]
async fn sv_03_stop_ends_such_a_tree_after_a_restart() {
    let (mut stage, _, attempt) = running("").await;
    stage.kill();
    stage.restart();
    assert_eq!(stage.tool("c1").await["state"], "in_flight");
    let asked = Instant::now();
    let (status, body) = stage.post("/jobs/cancel", &json!({ "id": attempt })).await;
    assert_eq!(status, 202, "{body}");
    stage.until_no_jobs().await;
    eprintln!(
        "from Stop to its end: {:?} (promised: 5 s)",
        asked.elapsed()
    );
    check_ended(&stage, &attempt, "recovered").await;
}

#[tokio::test]
async fn sv_09_such_a_tree_ends_with_its_host_when_that_is_configured() {
    let (mut stage, _, attempt) = running("on_host_loss = \"stop\"").await;
    let killed = Instant::now();
    stage.kill();
    until("the end of the tree", SOON, || {
        carriers(&attempt).is_empty().then_some(())
    })
    .await;
    eprintln!("from the kill to the end: {:?}", killed.elapsed());
    stage.restart();
    stage.until_no_jobs().await;
    let tool = stage.until_tool("c1", "interrupted").await;
    assert!(text(&tool["output"]).contains("the program that ran it was lost"));
    check_ended(&stage, &attempt, "recovered").await;
}

#[tokio::test]
async fn sv_09_sigterm_to_the_host_stops_what_runs_and_what_was_left() {
    let (mut stage, _, attempt) = running("").await;
    stage.kill();
    stage.restart();
    assert_eq!(stage.get("/jobs").await[0]["kind"], "reattached");
    stage.end();
    assert_eq!(carriers(&attempt), vec![]);
    stage.restart();
    check_ended(&stage, &attempt, "recovered").await;
}

#[tokio::test]
async fn sv_05_sigterm_to_the_supervisor_ends_the_tree_and_is_told_as_from_outside() {
    let (stage, _, attempt) = running("").await;
    signal(stage.supervisor_of(&attempt), "TERM");
    stage.idle().await;
    let tool = stage.until_tool("c1", "interrupted").await;
    assert!(
        text(&tool["output"]).contains("stopped from outside"),
        "{tool}"
    );
    check_ended(&stage, &attempt, "live").await;
}
