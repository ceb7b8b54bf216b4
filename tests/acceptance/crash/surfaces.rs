//! TR-47: all surfaces agree on a session's calls and on what waits for a person.
//!
//! The expectation is written by the test; each surface is read by itself, so that no surface
//! vouches for another.

use std::collections::BTreeMap;

use holdfast_testkit::wait::SOON;
use serde_json::{Value, json};

use super::stage::{Stage, text};

/// What every surface has to say.
pub(crate) struct Expected<'a> {
    /// Call id and state, in the transcript's order.
    pub(crate) calls: &'a [(&'a str, &'a str)],
    /// A question waits.
    pub(crate) pending: bool,
    /// Jobs that have not ended.
    pub(crate) jobs: usize,
    /// `completed`, `interrupted`, …
    pub(crate) turn: &'a str,
}

impl Expected<'_> {
    fn unresolved(&self) -> Vec<&str> {
        self.calls
            .iter()
            .filter(|(_, state)| *state == "unknown")
            .map(|(call, _)| *call)
            .collect()
    }
}

impl Stage {
    /// Reads the surfaces of the running host.
    pub(crate) async fn check_surfaces(&self, expected: &Expected<'_>) {
        let unresolved = expected.unresolved();
        let status = self.status().await;
        let state = status["runtimeState"].clone();
        let facts = json!({
            "phase": "idle",
            "turnStatus": expected.turn,
            "pendingPrompt": expected.pending,
            "backgroundJobs": expected.jobs,
            "unresolved": unresolved.len(),
        });
        assert_eq!(facts_of(&state), facts, "status");
        for field in ["running", "pendingPrompt", "backgroundJobs"] {
            assert_eq!(status[field], state[field], "status, {field}");
        }

        let states = self.client().get_ok("/runtime-states").await;
        let path = format!("session-id:{}", self.session);
        assert_eq!(
            row_of(&states["sessions"], &path)["state"],
            state,
            "runtime-states"
        );

        let stream = self.client().events(&self.route("/events"), None).await;
        let frame = stream
            .wait_for_frame("the state", SOON, |frame| frame.kind() == "runtime_state")
            .await;
        assert_eq!(frame.data["sessionPath"], path, "SSE");
        assert_eq!(frame.data["runtimeState"], state, "SSE");

        let list = self.client().get_ok("/sessions").await;
        assert_eq!(
            facts_of(&row_of(&list["items"], &path)["state"]),
            facts,
            "session list"
        );

        let items = self.transcript().await;
        check_calls(&items, expected, "transcript page");
        let whole = self.get("/transcript/snapshot").await;
        let mut whole = whole["items"].as_array().unwrap().clone();
        whole.reverse();
        assert_eq!(whole, items, "transcript snapshot");

        check_recovery(&self.recovery().await, &items, expected, "tool-recovery");
        assert_eq!(self.recovery().await, self.recovery().await, "TR-26");

        let prompts = self.get("/pending-prompts").await;
        assert_eq!(
            prompts.as_array().unwrap().len(),
            usize::from(expected.pending)
        );
        let jobs = self.get("/jobs").await;
        assert_eq!(jobs.as_array().unwrap().len(), expected.jobs, "jobs");

        // The command line beside the host, through its socket.
        let shown = self.command(&["sessions", "show", &self.session, "--json"]);
        check_calls(shown.as_array().unwrap(), expected, "sessions show");
        let listed = self.command(&["recovery", "list", "--session", &self.session, "--json"]);
        assert_eq!(listed, self.recovery().await, "recovery list");
        let listed = self.command(&["jobs", "list", "--session", &self.session, "--json"]);
        assert_eq!(listed, jobs, "jobs list");
    }

    /// Ends the host and reads what the command line says. For sessions without a job: a clean end
    /// stops those.
    pub(crate) fn check_command_line(&mut self, expected: &Expected<'_>) {
        self.end();
        let shown = self.command(&["sessions", "show", &self.session, "--json"]);
        let items = shown.as_array().unwrap();
        check_calls(items, expected, "sessions show");
        let list = self.command(&["sessions", "list", "--json"]);
        let path = format!("session-id:{}", self.session);
        let row = row_of(&list["items"], &path);
        assert_eq!(
            row["state"]["unresolved"],
            json!(expected.unresolved().len())
        );
        assert_eq!(row["state"]["pendingPrompt"], json!(expected.pending));
        let recovery = self.command(&["recovery", "list", "--session", &self.session, "--json"]);
        check_recovery(&recovery, items, expected, "recovery list");
    }
}

/// The row of a session in a list.
fn row_of(rows: &Value, path: &str) -> Value {
    let rows = rows.as_array().unwrap();
    let found: Vec<&Value> = rows
        .iter()
        .filter(|row| row["sessionPath"] == path)
        .collect();
    assert_eq!(found.len(), 1, "{path} in {rows:?}");
    found[0].clone()
}

fn facts_of(state: &Value) -> Value {
    let fields = [
        "phase",
        "turnStatus",
        "pendingPrompt",
        "backgroundJobs",
        "unresolved",
    ];
    let facts = fields.map(|field| (field.to_owned(), state[field].clone()));
    Value::Object(facts.into_iter().collect())
}

fn check_calls(items: &[Value], expected: &Expected<'_>, surface: &str) {
    let shown: Vec<(String, String)> = items
        .iter()
        .filter(|item| item["kind"] == "tool")
        .map(|item| (text(&item["tool"]["id"]), text(&item["tool"]["state"])))
        .collect();
    let wanted: Vec<(String, String)> = expected
        .calls
        .iter()
        .map(|(call, state)| ((*call).to_owned(), (*state).to_owned()))
        .collect();
    assert_eq!(shown, wanted, "{surface}");
    for item in items.iter().filter(|item| item["kind"] == "tool") {
        let tool = &item["tool"];
        let source = tool["resultSource"].as_str().unwrap_or_default();
        match tool["state"].as_str().unwrap() {
            "completed" | "failed" | "interrupted" => {
                assert!(matches!(source, "live" | "recovered"), "{surface}: {tool}");
            }
            // Nothing may look like a result.
            _ => assert!(matches!(source, "" | "synthetic"), "{surface}: {tool}"),
        }
    }
}

fn check_recovery(snapshot: &Value, items: &[Value], expected: &Expected<'_>, surface: &str) {
    let attempts: BTreeMap<String, String> = items
        .iter()
        .filter(|item| item["kind"] == "tool" && item["tool"]["attemptId"] != "")
        .map(|item| {
            let tool = &item["tool"];
            (text(&tool["id"]), text(&tool["attemptId"]))
        })
        .collect();
    let mut shown: Vec<(String, String, String)> = snapshot["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|call| {
            assert_eq!(call.get("arguments"), None, "TR-27, {surface}");
            (
                text(&call["identity"]["call_id"]),
                text(&call["identity"]["attempt_id"]),
                text(&call["state"]),
            )
        })
        .collect();
    // Newest first there, oldest first here.
    shown.reverse();
    let wanted: Vec<(String, String, String)> = expected
        .unresolved()
        .into_iter()
        .map(|call| {
            (
                call.to_owned(),
                attempts[call].clone(),
                "unknown".to_owned(),
            )
        })
        .collect();
    assert_eq!(shown, wanted, "{surface}");
    assert_eq!(
        snapshot["statistics"]["unknown"],
        json!(wanted.len()),
        "{surface}"
    );
}
