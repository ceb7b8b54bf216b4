//! What a new host makes of what the old one left: TR-15, TR-16, TR-18, TR-51, RS-08, TR-47.

use holdfast_api::event::Event;
use holdfast_api::host::SessionHost;
use holdfast_api::session::SessionsQuery;
use holdfast_domain::recovery::admission::Action;
use holdfast_domain::transcript::record::Record;
use holdfast_testkit::ledger::quoted;
use tokio::runtime::Runtime;

use crate::bench::{Bench, Session, eventually};
use crate::recovery::with_open_write;
use crate::script::shell;

/// A runtime whose end is a host's sudden end: its tasks stop where they are, and nothing is stored.
pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// A command runs, and its host ends without a word. Answers the session's id.
pub(crate) fn lose_host_during(bench: &Bench, command: &str) -> String {
    let runtime = runtime();
    let id = runtime.block_on(async {
        let session = bench.session("full").await;
        bench.script.runs(command);
        session.submit("go").await;
        eventually("the command's first line", || {
            (bench.ledger().count("effect") == 1).then_some(())
        })
        .await;
        session.id
    });
    drop(runtime);
    id
}

pub(crate) fn waits_for(bench: &Bench, then: &str) -> String {
    let file = quoted(&bench.outside("stay").to_string_lossy());
    std::fs::write(bench.outside("stay"), "").unwrap();
    format!(
        "{}; while test -e {file}; do sleep 0.02; done; {then}",
        bench.ledger().append("effect")
    )
}

#[test]
fn tr_18_a_running_command_is_in_flight_again_and_its_result_is_recovered() {
    let bench = Bench::new();
    let command = waits_for(&bench, "echo the end; exit 4");
    let id = lose_host_during(&bench, &command);
    runtime().block_on(async {
        let mut session = bench.of(bench.host(), &id);
        let status = session.status().await;
        assert_eq!((status.running, status.background_jobs), (false, 1));
        let state = status.runtime_state.unwrap();
        assert_eq!(state.unresolved, 0, "what runs is not uncertain");
        assert_eq!(session.tools().await[0].state, "in_flight");
        let jobs = session.host.jobs(&session.selector).await.unwrap();
        assert_eq!(jobs[0].kind, "reattached");
        std::fs::remove_file(bench.outside("stay")).unwrap();
        session
            .when("its end", |status| status.background_jobs == 0)
            .await;
        let tool = session.tools().await.remove(0);
        assert_eq!((tool.state.as_str(), tool.exit_code), ("failed", Some(4)));
        assert_eq!(tool.result_source.as_deref(), Some("recovered"));
        // TR-15: nothing was sent in its place, so the model gets the real one.
        session.turn("go on").await;
        assert!(bench.script.last_result().contains("the end"));
        assert_eq!(bench.ledger().lines(), ["effect"]);
        session.host.close().await;
    });
}

#[test]
fn tr_16_nothing_runs_again_by_itself() {
    let bench = Bench::new();
    let command = format!(
        "{}; kill -9 $PPID; exec sleep 600",
        bench.ledger().append("effect")
    );
    let id = lose_host_during(&bench, &command);
    for _ in 0..3 {
        let runtime = runtime();
        runtime.block_on(async {
            let mut session = bench.of(bench.host(), &id);
            session.host.recover_all().await;
            session.host.resume(&id).await.unwrap();
            session.turn("continue").await;
            let attempt = session.open_attempt().await;
            let refused = session.act(Action::Retry, &attempt, "").await.unwrap_err();
            assert_eq!(refused.code, "not_inspected");
        });
    }
    assert_eq!(bench.ledger().lines(), ["effect"]);
    let session_folder = bench.data().join("sessions").join(&id);
    let starts = crate::bench::records(&session_folder, &id)
        .iter()
        .filter(|record| matches!(record, Record::ToolStarted(_)))
        .count();
    assert_eq!(starts, 1);
    kill_stragglers(&session_folder, &id);
}

fn kill_stragglers(folder: &std::path::Path, id: &str) {
    for record in crate::bench::records(folder, id) {
        if let Record::Receipt(receipt) = record {
            for process in holdfast_supervisor::stragglers(&receipt.identity.attempt_id).unwrap() {
                let killed = std::process::Command::new("kill")
                    .args(["-9", &process.pid.to_string()])
                    .status();
                assert!(killed.is_ok());
            }
        }
    }
}

#[test]
fn sv_04_a_straggler_whose_supervisor_is_gone_blocks_a_confirmation() {
    let bench = Bench::new();
    let command = format!(
        "{}; kill -9 $PPID; exec sleep 600",
        bench.ledger().append("effect")
    );
    let id = lose_host_during(&bench, &command);
    runtime().block_on(async {
        let session = bench.of(bench.host(), &id);
        let attempt = session.open_attempt().await;
        let (inspection, snapshot) = session.inspect(&attempt).await;
        let refused = session
            .act(Action::Confirm, &attempt, &inspection)
            .await
            .unwrap_err();
        assert_eq!(refused.code, "executor_alive");
        let evidence = serde_json::to_value(&snapshot.calls[0].inspection_evidence).unwrap();
        assert!(
            evidence.to_string().contains("\"alive\":true"),
            "{evidence}"
        );
        kill_stragglers(&session.folder, &id);
        eventually("its end", || {
            holdfast_supervisor::stragglers(&attempt)
                .unwrap()
                .is_empty()
                .then_some(())
        })
        .await;
        session
            .act(Action::Confirm, &attempt, &inspection)
            .await
            .unwrap();
    });
}

#[test]
fn tr_15_what_was_sent_stays_and_what_is_learnt_comes_in_one_note() {
    let bench = Bench::new();
    let command = waits_for(&bench, "echo the real end");
    let id = lose_host_during(&bench, &command);
    let mut first_texts = Vec::new();
    // It still runs: the model is told that the outcome is unknown.
    runtime().block_on(async {
        let mut session = bench.of(bench.host(), &id);
        session.turn("go on").await;
        assert!(
            bench
                .script
                .last_result()
                .contains("outcome of this call is unknown")
        );
        first_texts = bench.script.requests().pop().unwrap().messages;
        session.host.release().await;
    });
    std::fs::remove_file(bench.outside("stay")).unwrap();
    runtime().block_on(async {
        let mut session = bench.of(bench.host(), &id);
        session
            .when("its end", |status| status.background_jobs == 0)
            .await;
        session.turn("and now").await;
        session.turn("and later").await;
        let messages = bench.script.requests().pop().unwrap().messages;
        assert_eq!(
            messages[..first_texts.len()],
            first_texts,
            "healthy requests keep their bytes"
        );
        let notes: Vec<String> = session
            .items()
            .await
            .into_iter()
            .filter(|item| item.kind == "note")
            .filter_map(|item| item.text)
            .collect();
        assert_eq!(notes.len(), 1, "{notes:#?}");
        assert!(notes[0].contains("exit status 0") && notes[0].contains("the real end"));
        assert!(
            !notes[0].contains("while test"),
            "no arguments: {}",
            notes[0]
        );
        let tool = session.tools().await.remove(0);
        assert_eq!(tool.state, "completed");
        session.host.close().await;
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_14_an_open_write_is_unknown_on_every_surface() {
    let bench = Bench::new();
    let (mut session, attempt) = with_open_write(&bench, "f", "x").await;
    let host = session.host.clone();
    host.resume(&session.id).await.unwrap();
    let tool = session.tools().await.remove(0);
    assert_eq!(
        (tool.state.as_str(), tool.attempt_id.as_str()),
        ("unknown", attempt.as_str())
    );
    let read = host.read_transcript(&session.id).unwrap();
    let beside: Vec<&str> = read
        .iter()
        .filter_map(|item| item.tool.as_ref())
        .map(|tool| tool.state.as_str())
        .collect();
    assert_eq!(beside, ["unknown"]);
    let row = host
        .list_sessions(&SessionsQuery::default())
        .await
        .unwrap()
        .items
        .remove(0);
    assert_eq!(
        (row.state.unresolved, row.state.turn_status.as_str()),
        (1, "interrupted")
    );
    assert_eq!(session.status().await.runtime_state.unwrap().unresolved, 1);
    assert_eq!(
        host.runtime_states().await.unwrap().sessions[0]
            .state
            .unresolved,
        1
    );
    session.turn("go on").await;
    assert!(bench.script.last_result().contains("unknown"));
    assert!(!bench.workspace().join("f").exists());
    // And in a list that reads the log alone.
    host.close().await;
    let row = bench
        .host()
        .list_sessions(&SessionsQuery::default())
        .await
        .unwrap()
        .items
        .remove(0);
    assert_eq!((row.state.open, row.state.unresolved), (false, 1));
}

#[test]
fn tr_51_a_question_survives_and_its_answer_continues_the_turn() {
    let bench = Bench::new();
    std::fs::write(bench.workspace().join("f"), "content").unwrap();
    let asking = runtime();
    let (id, turn_id) = asking.block_on(async {
        let session = bench.session("ask").await;
        let (first, second) = (
            bench.ledger().append("first"),
            bench.ledger().append("second"),
        );
        bench.script.calls(&[
            ("read_file", r#"{"path":"f"}"#),
            ("shell", &shell(&first)),
            ("shell", &shell(&second)),
        ]);
        let turn_id = session.submit("go").await;
        session.prompt().await;
        (session.id, turn_id)
    });
    drop(asking);
    runtime().block_on(async {
        let mut session = bench.of(bench.host(), &id);
        let status = session.status().await;
        assert_eq!(
            (status.running, status.pending_prompt, status.cancellable),
            (false, true, true)
        );
        let state = status.runtime_state.unwrap();
        assert_eq!(
            serde_json::to_value(state.turn_status).unwrap(),
            "interrupted"
        );
        let prompt = session.prompt().await;
        assert_eq!(prompt.turn_id, turn_id);
        assert!(
            !session
                .log()
                .iter()
                .any(|record| matches!(record, Record::Receipt(receipt) if !receipt.read_only))
        );
        session.answer(&prompt, true).await.unwrap();
        // Its later sibling is asked, whatever the first answer was.
        let second = session.prompt().await;
        assert_ne!(second.prompt_id, prompt.prompt_id);
        assert_eq!(bench.ledger().lines(), ["first"]);
        session.answer(&second, true).await.unwrap();
        let frames = session.until_done().await;
        assert!(
            frames
                .iter()
                .any(|frame| matches!(frame.event, Event::TurnStarted { continuation: true }))
        );
        assert!(
            frames
                .iter()
                .all(|frame| frame.turn_id.is_empty() || frame.turn_id == turn_id)
        );
        assert_eq!(bench.ledger().lines(), ["first", "second"]);
        let once = session.answer(&prompt, true).await.unwrap_err();
        assert_eq!(once.code, "prompt_not_pending");
        assert_eq!(bench.ledger().lines(), ["first", "second"]);
    });
}

#[test]
fn tr_51_a_stop_closes_a_question_that_outlived_its_host() {
    let bench = Bench::new();
    let asking = runtime();
    let id = asking.block_on(async {
        let session = bench.session("ask").await;
        bench.script.runs(&bench.ledger().append("never"));
        session.submit("go").await;
        session.prompt().await;
        session.id
    });
    drop(asking);
    runtime().block_on(async {
        let mut session = bench.of(bench.host(), &id);
        session.prompt().await;
        session.stop().await;
        session
            .when("no question", |status| !status.pending_prompt)
            .await;
        assert_eq!(
            session.tools().await[0].code.as_deref(),
            Some("not_started")
        );
        assert!(!session.status().await.cancellable);
        session.turn("go on").await;
        assert!(bench.ledger().lines().is_empty());
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_51_a_new_message_closes_the_question_and_its_siblings() {
    let bench = Bench::new();
    let mut session = bench.session("ask").await;
    let command = bench.ledger().append("never");
    bench
        .script
        .calls(&[("shell", &shell(&command)), ("shell", &shell("true"))]);
    session.submit("go").await;
    session.prompt().await;
    session.host.close().await;
    session = bench.of(bench.host(), &session.id);
    let prompt = session.prompt().await;
    session.turn("something else").await;
    let tools = session.tools().await;
    let codes: Vec<Option<&str>> = tools.iter().map(|tool| tool.code.as_deref()).collect();
    assert_eq!(codes, [Some("not_started"), Some("not_started")]);
    assert_eq!(
        session.answer(&prompt, true).await.unwrap_err().code,
        "prompt_not_pending"
    );
    assert!(bench.ledger().lines().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_08_a_session_that_is_opened_again_has_a_new_epoch() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    session.turn("go").await;
    let epoch = async |session: &Session| {
        let state = session.status().await.runtime_state.unwrap();
        (state.runtime_epoch, state.revision)
    };
    let (first, revision) = epoch(&session).await;
    assert!(revision > 1);
    session.host.close().await;
    session = bench.of(bench.host(), &session.id);
    let (second, revision) = epoch(&session).await;
    assert_ne!(first, second);
    assert!(second.len() == 32 && revision <= 2, "{second} {revision}");
}
