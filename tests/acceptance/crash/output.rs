//! A command's output while it runs, over the death of its host (TR-18).

use holdfast_testkit::wait::{SOON, until_asked};
use serde_json::{Value, json};

use super::stage::{Stage, calls, shell, text, until_there, wait_for_file};

/// What the snapshot says that the one running call has printed so far; empty without one.
async fn so_far(stage: &Stage) -> String {
    let snapshot = stage.get("/transcript/snapshot").await;
    let progress = snapshot["progress"].as_array().unwrap();
    assert!(progress.len() <= 1, "{snapshot}");
    let Some(of_call) = progress.first() else {
        return String::new();
    };
    assert_eq!(of_call["id"], "c1");
    text(&of_call["text"])
}

async fn until_printed(stage: &Stage, wanted: &str) {
    until_asked(&format!("{wanted:?} so far"), SOON, async || {
        (so_far(stage).await == wanted).then_some(())
    })
    .await;
}

#[tokio::test]
async fn tr_18_what_a_command_prints_is_live_before_and_after_the_death_of_its_host() {
    let mut stage = Stage::new("full", vec![]).await;
    let (first, second) = (stage.beside("first"), stage.beside("second"));
    let command = format!(
        "echo one; {}; echo two; {}; echo three",
        wait_for_file(&first),
        wait_for_file(&second)
    );
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("count").await;
    until_printed(&stage, "one\n").await;
    stage.kill();
    stage.restart();
    until_printed(&stage, "one\n").await;

    let events = stage.client().events(&stage.route("/events"), None).await;
    std::fs::write(first, "").unwrap();
    let frame = events
        .wait_for_frame("the second line", SOON, |frame| {
            frame.kind() == "tool_progress"
        })
        .await;
    assert_eq!(frame.data["id"], "c1");
    assert_eq!(frame.data["text"], "two\n");
    until_printed(&stage, "one\ntwo\n").await;
    assert_eq!(stage.tool("c1").await["state"], "in_flight");

    std::fs::write(second, "").unwrap();
    let tool = stage.until_tool("c1", "completed").await;
    assert!(text(&tool["output"]).starts_with("one\ntwo\nthree\n"));
    assert_eq!(so_far(&stage).await, "", "what has a result is not live");
}

#[tokio::test]
async fn tr_18_of_a_large_output_the_end_is_live_after_a_restart() {
    let mut stage = Stage::new("full", vec![]).await;
    let (began, gate) = (stage.beside("began"), stage.beside("gate"));
    let command = format!(
        "seq 1 100000; echo here; touch {}; {}; echo end",
        began.display(),
        wait_for_file(&gate)
    );
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("print").await;
    until_there(&began).await;
    stage.kill();
    stage.restart();
    let printed = until_asked("the end of the output", SOON, async || {
        let printed = so_far(&stage).await;
        printed.ends_with("\nhere\n").then_some(printed)
    })
    .await;
    assert!(printed.len() <= 64 * 1024, "{}", printed.len());
    assert!(printed.ends_with("\n99999\n100000\nhere\n"));
    std::fs::write(gate, "").unwrap();
    let tool = stage.until_tool("c1", "completed").await;
    assert_eq!(tool["truncated"], true);

    // The whole is kept.
    let attempt = text(&tool["attemptId"]);
    let mut whole = String::new();
    loop {
        let path = format!(
            "/output?session={}&attempt={attempt}&offset={}",
            stage.session,
            whole.len()
        );
        let page: Value = stage.client().get_ok(&path).await;
        whole.push_str(&text(&page["text"]));
        if page["more"] == json!(false) {
            break;
        }
    }
    let expected: String = (1..=100_000).map(|n| format!("{n}\n")).collect();
    assert!(whole == format!("{expected}here\nend\n"), "{}", whole.len());
}
