//! C05, C10: a host that died right behind each record of a task. What the records say is read here
//! by a model of its own, and every surface has to agree with it.

use std::collections::BTreeMap;

use holdfast_testkit::Step;
use holdfast_testkit::model_server::Call;
use serde_json::Value;

use super::requests::{bytes_of, checked_last, told};
use super::stage::{Stage, calls, read, text, write};
use super::surfaces::Expected;

/// A finished task with reads, an allowed, a denied and a refused write, and its log.
async fn finished() -> (Stage, Vec<String>) {
    let steps = vec![
        calls([read("r1", "one.txt"), read("r2", "two.txt")]),
        calls([
            write("w1", "new.txt", "new\n"),
            write("w2", "denied.txt", "denied\n"),
            Call::new("bad", "write_file", r#"{"path":"#),
        ]),
        Step::text("done"),
    ];
    let stage = Stage::new("ask", steps).await;
    for name in ["one.txt", "two.txt"] {
        std::fs::write(stage.in_workspace(name), name).unwrap();
    }
    stage.submit("a task").await;
    let first = stage.until_asked("w1").await;
    assert_eq!(stage.allow(&first).await.0, 204);
    let second = stage.until_asked("w2").await;
    assert_eq!(stage.answer(&second, false).await.0, 204);
    stage.idle().await;
    let log = std::fs::read_to_string(stage.log()).unwrap();
    let lines = log.lines().map(|line| format!("{line}\n")).collect();
    (stage, lines)
}

/// What the records say.
#[derive(Default)]
struct Told {
    calls: Vec<(String, &'static str)>,
    attempts: BTreeMap<String, (usize, bool)>,
    pending: bool,
    turn: &'static str,
    /// Model requests that were sent for certain.
    requests: usize,
}

impl Told {
    fn read(lines: &[String]) -> Self {
        let mut told = Self::default();
        for line in lines {
            let line: Value = serde_json::from_str(line).unwrap();
            told.add(line["kind"].as_str().unwrap(), &line["payload"]);
        }
        // A host that starts closes what its records leave open.
        let started = told.attempts.values().copied();
        for (index, read_only) in started.collect::<Vec<_>>() {
            let state = &mut told.calls[index].1;
            *state = match *state {
                // Nothing claimed its publication, and the host that comes after rules it out.
                "started" if !read_only => "not_started",
                "started" | "pending" => "cancelled",
                settled => settled,
            };
        }
        told
    }

    fn add(&mut self, kind: &str, payload: &Value) {
        match kind {
            "user_message" => self.turn = "interrupted",
            "turn_ended" => self.turn = "completed",
            "assistant_message" => {
                self.requests += 1;
                let proposed = payload["calls"].as_array().unwrap();
                self.calls.extend(
                    proposed
                        .iter()
                        .map(|call| (text(&call["call_id"]), "proposed")),
                );
            }
            "prompt_asked" => self.pending = true,
            // TR-51: allowed and not started is asked again, so it stays open until the receipt.
            "prompt_answered" => self.pending = payload["allow"] == true,
            "call_refused" => {
                let call = text(&payload["call_id"]);
                let index = self.calls.iter().position(|own| own.0 == call).unwrap();
                self.calls[index].1 = "not_started";
            }
            "receipt" => {
                self.pending = false;
                let call = text(&payload["identity"]["call_id"]);
                let index = self.calls.iter().position(|own| own.0 == call).unwrap();
                self.calls[index].1 = "pending";
                let attempt = text(&payload["identity"]["attempt_id"]);
                let read_only = payload["read_only"] == true;
                self.attempts.insert(attempt, (index, read_only));
            }
            "tool_started" | "tool_result" => {
                let (index, _) = self.attempts[&text(&payload["attempt_id"])];
                self.calls[index].1 = if kind == "tool_started" {
                    "started"
                } else {
                    "completed"
                };
            }
            "session_created" | "system_prompt" | "turn_started" | "file_checkpoint" => {}
            other => panic!("a record that this task should not have: {other}"),
        }
    }
}

#[tokio::test]
async fn c05_a_host_that_died_behind_any_record_is_followed_by_the_truth() {
    let (mut stage, lines) = finished().await;
    let originals = stage.model.requests();
    assert_eq!(originals.len(), 3);
    let mut seen: Vec<&str> = Vec::new();
    for count in 1..=lines.len() {
        let told_by_log = Told::read(&lines[..count]);
        stage.kill();
        std::fs::write(stage.log(), lines[..count].concat()).unwrap();
        let _ = std::fs::remove_file(stage.in_workspace("new.txt"));
        stage.restart();

        let calls: Vec<(&str, &str)> = told_by_log
            .calls
            .iter()
            .map(|(call, state)| (call.as_str(), *state))
            .collect();
        seen.extend(calls.iter().map(|(_, state)| *state));
        stage
            .check_surfaces(&Expected {
                calls: &calls,
                pending: told_by_log.pending,
                jobs: 0,
                turn: told_by_log.turn,
            })
            .await;

        // The session goes on, from the very bytes that were sent, and repeats nothing.
        stage.turn("continue").await;
        let messages = checked_last(&stage.model);
        for (call, _) in &calls {
            told(&messages, call);
        }
        let now = bytes_of(stage.model.requests().last().unwrap());
        if let Some(sent) = told_by_log.requests.checked_sub(1) {
            assert!(now.starts_with(&bytes_of(&originals[sent])), "{now:#?}");
        }
        assert!(!stage.in_workspace("new.txt").exists());
    }
    seen.sort_unstable();
    seen.dedup();
    assert_eq!(
        seen,
        ["cancelled", "completed", "not_started", "proposed"],
        "the task leads through all of them"
    );
}
