//! TR-47: every state of an attempt on every surface: session list, transcript, recovery snapshot,
//! status and runtime state, SSE, command line (with the host and without), and the model's next
//! request, result and notes.

use std::collections::BTreeSet;

use holdfast_testkit::Step;
use serde_json::json;

use super::requests::{checked, said, told};
use super::stage::{Stage, calls, shell, text, until_there, wait_for_file};
use super::surfaces::Expected;

/// One state, and how it is told.
struct Told<'a> {
    state: &'a str,
    /// Of the turn before the next message.
    turn: &'a str,
    pending: bool,
    jobs: usize,
    /// The state once the next message was sent; a question is closed by it.
    after: &'a str,
    /// In the call's result in the next request.
    result: &'a str,
    /// In a host note of that request.
    note: Option<&'a str>,
}

impl Told<'_> {
    async fn check(&self, stage: &mut Stage) {
        let before = Expected {
            calls: &[("c1", self.state)],
            pending: self.pending,
            jobs: self.jobs,
            turn: self.turn,
        };
        stage.check_surfaces(&before).await;
        stage.model.push(Step::text("I see"));
        stage.turn("continue").await;
        let messages = checked(&stage.model);
        let result = told(&messages, "c1");
        assert!(result.contains(self.result), "{}: {result}", self.state);
        let notes: Vec<String> = said(&messages)
            .into_iter()
            .filter(|text| text.starts_with("[host note]"))
            .collect();
        match self.note {
            Some(words) => {
                assert_eq!(notes.len(), 1, "{}: {notes:?}", self.state);
                assert!(notes[0].contains(words), "{}: {notes:?}", self.state);
                assert!(!notes[0].contains("sleep"), "no arguments: {notes:?}");
            }
            None => assert_eq!(notes, Vec::<String>::new(), "{}", self.state),
        }
        let after = Expected {
            calls: &[("c1", self.after)],
            pending: false,
            turn: "completed",
            ..before
        };
        stage.check_surfaces(&after).await;
        if self.jobs == 0 {
            stage.check_command_line(&after);
        } else {
            // Nothing of this test outlives it: a clean end stops what runs.
            stage.end();
        }
    }
}

/// A turn with this one command, waited for.
async fn after(command: &str) -> Stage {
    let stage = Stage::new("full", Vec::new()).await;
    stage.model.push(calls([shell("c1", command)]));
    stage.model.push(Step::text("done"));
    stage.turn("do it").await;
    stage
}

/// A host killed while this command runs; the command says `began` first and waits for `gate`.
async fn killed_in_command(end: &str) -> Stage {
    let mut stage = Stage::new("full", Vec::new()).await;
    let command = format!(
        "touch {}; {}; {end}",
        stage.beside("began").display(),
        wait_for_file(&stage.beside("gate"))
    );
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("do it").await;
    until_there(&stage.beside("began")).await;
    stage.kill();
    stage
}

#[tokio::test]
async fn tr_47_each_state_is_the_same_on_every_surface() {
    let quiet = Told {
        state: "",
        turn: "completed",
        pending: false,
        jobs: 0,
        after: "",
        result: "",
        note: None,
    };
    let mut walked = BTreeSet::new();
    let mut walk = |told: &Told<'_>| {
        walked.insert(told.state.to_owned());
    };

    let told = Told {
        state: "completed",
        after: "completed",
        result: "fine",
        ..quiet
    };
    told.check(&mut after("echo fine").await).await;
    walk(&told);

    let told = Told {
        state: "failed",
        after: "failed",
        result: "bad",
        ..quiet
    };
    told.check(&mut after("echo bad; exit 3").await).await;
    walk(&told);

    let told = Told {
        state: "proposed",
        turn: "in_progress",
        pending: true,
        after: "not_started",
        result: "not started",
        ..quiet
    };
    walk(&told);
    let mut stage = Stage::new("ask", Vec::new()).await;
    stage.model.push(calls([shell("c1", "echo never")]));
    stage.submit("ask me").await;
    stage.until_asked("c1").await;
    // While the turn waits a message is refused, so this one is continued over a restart.
    stage.kill();
    stage.restart();
    let interrupted = Told {
        turn: "interrupted",
        ..told
    };
    interrupted.check(&mut stage).await;

    let told = Told {
        state: "interrupted",
        turn: "cancelled",
        after: "interrupted",
        result: "effects may be partial",
        ..quiet
    };
    walk(&told);
    let mut stage = Stage::new("full", Vec::new()).await;
    let began = stage.beside("began");
    let command = format!("touch {}; sleep 600", began.display());
    stage.model.push(calls([shell("c1", &command)]));
    let turn = stage.submit("do it").await;
    until_there(&began).await;
    let (status, _) = stage.post("/cancel", &json!({ "turnId": turn })).await;
    assert_eq!(status, 202);
    stage.idle().await;
    told.check(&mut stage).await;

    let told = Told {
        state: "in_flight",
        turn: "interrupted",
        jobs: 1,
        after: "in_flight",
        result: "is unknown",
        ..quiet
    };
    walk(&told);
    let mut stage = killed_in_command("sleep 600").await;
    stage.restart();
    told.check(&mut stage).await;

    // Recovered: the real result, since no other was told before.
    let told = Told {
        state: "failed",
        turn: "interrupted",
        after: "failed",
        result: "late",
        ..quiet
    };
    let mut stage = killed_in_command("echo late; exit 5").await;
    std::fs::write(stage.beside("gate"), "").unwrap();
    stage.restart();
    stage.until_no_jobs().await;
    let tool = stage.until_tool("c1", "failed").await;
    assert_eq!(tool["resultSource"], "recovered");
    told.check(&mut stage).await;

    let lost = Told {
        state: "unknown",
        after: "unknown",
        result: "is unknown",
        ..quiet
    };
    walk(&lost);
    lost.check(&mut Stage::with_lost_command().await).await;

    for (action, state, words) in [
        ("confirm", "user_confirmed", "says that the effect happened"),
        ("dismiss", "user_dismissed", "go on without knowing"),
    ] {
        let mut stage = Stage::with_lost_command().await;
        let attempt = stage.unresolved().await;
        let inspection = text(&stage.inspect(&attempt).await["inspection_id"]);
        let (status, body) = stage.resolve(action, &attempt, &inspection).await;
        assert_eq!(status, 200, "{body}");
        let told = Told {
            state,
            after: state,
            note: Some(words),
            ..lost
        };
        walk(&told);
        told.check(&mut stage).await;
    }
    // `not_started` is what "proposed" became; `cancelled` is a read-only call's, and has a test of
    // its own (tr_21_a_read_only_command_is_cancelled_by_a_crash); `pending`, `started` and
    // `running` are never shown of what this host accounts for.
    assert_eq!(walked.len(), 8, "{walked:?}");
}
