//! C05, at seeded random moments: a task of ten steps whose host is killed again and again.
//!
//! Guarantee: the model below never proposes a step again unless it was told that the step did not
//! start; so every line of the ledger stands there exactly once, whenever the host died.

use holdfast_testkit::wait::{SOON, scaled, until_asked};
use holdfast_testkit::{Ledger, Step};
use serde_json::{Value, json};

use super::requests::checked;
use super::stage::{Stage, calls, shell, text, write};

const STEPS: usize = 10;
const KILLS_OF_ONE_TASK: usize = 6;

/// Every third step writes a file, the others a line of the ledger.
fn is_write(step: usize) -> bool {
    step % 3 == 2
}

fn line(step: usize) -> String {
    format!("step {step}")
}

/// A small generator with a fixed period, so that a failing seed can be run again.
struct Moments(u64);

impl Moments {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % limit
    }
}

/// The model: the first step that it has not proposed, or was told to be undone.
fn next_step(request: &Value, ledger: &Ledger) -> Step {
    let messages = request["messages"].as_array().unwrap();
    for step in 0..STEPS {
        let mut tries = 0;
        let mut again = true;
        for message in messages {
            let content = message["content"].as_str().unwrap_or_default();
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if id.split('-').next() == Some(&format!("s{step}")) {
                tries += 1;
                again = did_not_start(content);
            } else if tries > 0 && content.contains(&format!("[undone s{step}-{}]", tries - 1)) {
                again = true;
            }
        }
        if !again {
            continue;
        }
        let id = format!("s{step}-{tries}");
        return calls([if is_write(step) {
            write(&id, &format!("{step}.txt"), &line(step))
        } else {
            let effect = ledger.append(&line(step));
            shell(&id, &format!("echo out; sleep 0.05; {effect}; sleep 0.05"))
        }]);
    }
    Step::text("all done")
}

fn did_not_start(result: &str) -> bool {
    ["not started", "blocked: ", "never ran", "never started"]
        .iter()
        .any(|words| result.contains(words))
}

#[tokio::test]
async fn c05_random_kills() {
    let mut moments = Moments(20_261_130);
    let mut left = scaled(6);
    while left > 0 {
        let kills = left.min(KILLS_OF_ONE_TASK);
        left -= kills;
        one_task(kills, &mut moments).await;
    }
}

async fn one_task(kills: usize, moments: &mut Moments) {
    let mut stage = Stage::new("full", vec![]).await;
    for _ in 0..(STEPS + kills) * 4 {
        let ledger = stage.ledger.clone();
        stage
            .model
            .push_fn(move |request| next_step(request, &ledger));
    }
    let mut input = "ten steps".to_owned();
    for kill in 1..=kills {
        stage.submit(&input).await;
        // Somewhere in the next records, measured by the log's own growth, and a little later.
        let moment = length(&stage) + 200 + moments.below(2000);
        let passed = until_asked("the moment", SOON, async || {
            let state = stage.status().await["runtimeState"].clone();
            if state["pendingPrompt"] == true {
                let asked = stage.prompt().await;
                stage.allow(&asked).await;
                return None;
            }
            if state["phase"] == "idle" && state["turnStatus"] != "in_progress" {
                return Some(false);
            }
            (length(&stage) >= moment).then_some(true)
        })
        .await;
        assert!(passed || kill > 3, "ten steps are longer than that");
        for _ in 0..moments.below(40) {
            stage.status().await;
        }
        stage.kill();
        stage.restart();
        let words = settle(&stage).await;
        check_truth(&stage).await;
        input = format!("continue {kill}{words}");
    }
    stage.submit(&input).await;
    stage.allow_all().await;

    // The session was usable to its end.
    checked(&stage.model);
    let items = stage.transcript_of_all_pages().await;
    assert_eq!(items.last().unwrap()["text"], "all done");
    check_truth(&stage).await;
    for step in 0..STEPS {
        if is_write(step) {
            let file = stage.in_workspace(&format!("{step}.txt"));
            assert_eq!(std::fs::read_to_string(file).ok(), Some(line(step)));
        } else {
            assert_eq!(stage.ledger.count(&line(step)), 1, "step {step}");
        }
    }
    assert_eq!(
        stage.ledger.lines().len(),
        (0..STEPS).filter(|step| !is_write(*step)).count()
    );
}

fn length(stage: &Stage) -> u64 {
    std::fs::metadata(stage.log()).unwrap().len()
}

/// Jobs come to their end; what is unknown is looked at and resolved as a person would. Answers
/// what the model is to be told of calls that had no effect.
async fn settle(stage: &Stage) -> String {
    let mut words = String::new();
    stage.until_no_jobs().await;
    let snapshot = stage.recovery().await;
    for call in snapshot["calls"].as_array().unwrap() {
        let attempt = text(&call["identity"]["attempt_id"]);
        assert_eq!(
            call["identity"]["canonical_tool"], "write_file",
            "a supervised command has its real end: {call}"
        );
        let record = stage.inspect(&attempt).await;
        let file = stage.in_workspace(record["arguments"]["path"].as_str().unwrap());
        let there = std::fs::read_to_string(file).ok();
        let id = text(&record["inspection_id"]);
        let (status, body) = match record["inspection_state"].as_str().unwrap() {
            "postcondition_satisfied" => {
                assert_eq!(there.as_deref(), record["arguments"]["content"].as_str());
                stage.resolve("confirm", &attempt, &id).await
            }
            "absent_fenced" => {
                assert_eq!(there, None);
                words += &format!(" [undone {}]", text(&call["identity"]["call_id"]));
                stage.resolve("dismiss", &attempt, "").await
            }
            other => panic!("{other}: {record}"),
        };
        assert_eq!(status, 200, "{body}");
    }
    words
}

/// The cards against the world: each completed call's line is there, and there is no other.
async fn check_truth(stage: &Stage) {
    let mut done = [0; STEPS];
    for item in stage.transcript_of_all_pages().await {
        let tool = &item["tool"];
        let Some(id) = tool["id"].as_str() else {
            continue;
        };
        let step: usize = id[1..].split('-').next().unwrap().parse().unwrap();
        match tool["state"].as_str().unwrap() {
            "completed" => done[step] += 1,
            "not_started" | "cancelled" | "proposed" => {}
            "user_confirmed" | "user_dismissed" if is_write(step) => {}
            other => panic!("{id} is {other}: {tool}"),
        }
    }
    for step in (0..STEPS).filter(|step| !is_write(*step)) {
        assert_eq!(stage.ledger.count(&line(step)), done[step], "step {step}");
        assert!(done[step] <= 1, "step {step} ran twice");
    }
}

impl Stage {
    /// The whole transcript, oldest first.
    async fn transcript_of_all_pages(&self) -> Vec<Value> {
        let mut items = Vec::new();
        let mut before = json!(null);
        loop {
            let mut route = self.route("/transcript/page");
            if let Some(place) = before.as_u64() {
                route = format!("{route}&before={place}");
            }
            let page = self.client().get_ok(&route).await;
            items.extend(page["items"].as_array().unwrap().clone());
            before = page["before"].clone();
            if before.is_null() {
                break;
            }
        }
        items.reverse();
        items
    }
}
