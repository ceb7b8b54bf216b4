//! Stop, timeout, and what lives on: TR-05 (11), TR-10, TR-11, TR-50, RS-09.

use std::collections::BTreeMap;

use holdfast_api::event::Event;
use holdfast_api::host::SessionHost;
use holdfast_api::session::{Cancel, CancelJob, Cancelled};
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::ProcessEvidence;
use holdfast_domain::runtime::snapshot::Phase;
use holdfast_domain::transcript::record::Record;
use holdfast_files::fault::Operation;
use holdfast_testkit::ledger::quoted;

use crate::bench::{Bench, ends, eventually};
use crate::script::{Step, finished, shell};

/// A command that says that it runs, and then does not end.
fn endless(bench: &Bench) -> String {
    format!(
        "{}; while :; do sleep 0.05; done",
        bench.ledger().append("began")
    )
}

async fn began(bench: &Bench) {
    eventually("the command's first line", || {
        (bench.ledger().count("began") == 1).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_11_stop_ends_the_whole_tree_and_leaves_nothing_unresolved() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let command = format!("(while :; do sleep 0.05; done) & {}", endless(&bench));
    bench.script.runs(&command);
    let turn_id = session.submit("go").await;
    began(&bench).await;
    assert_eq!(session.stop().await, Cancelled::Requested);
    let frames = session.until_done().await;
    assert_eq!(ends(&frames), [("cancelled".to_owned(), String::new())]);
    let tool = session.tools().await.remove(0);
    assert_eq!(tool.state, "interrupted");
    assert!(
        tool.output.contains("effects may be partial"),
        "{}",
        tool.output
    );
    assert!(session.recovery().await.calls.is_empty());
    assert!(
        holdfast_supervisor::stragglers(&tool.attempt_id)
            .unwrap()
            .is_empty()
    );
    let status = session.status().await;
    assert_eq!(status.background_jobs, 0);
    assert_eq!(status.runtime_state.unwrap().turn_id, turn_id);
    // Without a barrier, the next command runs.
    bench.script.runs(&bench.ledger().append("next"));
    session.turn("go on").await;
    assert_eq!(bench.ledger().count("next"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_11_a_timeout_is_a_result_and_the_turn_goes_on() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let arguments = serde_json::json!({ "command": endless(&bench), "timeout_s": 1 }).to_string();
    bench.script.calls(&[("shell", &arguments)]);
    let frames = session.turn("go").await;
    assert_eq!(ends(&frames)[0].0, "completed");
    let tool = session.tools().await.remove(0);
    assert_eq!(tool.state, "interrupted");
    assert!(
        bench
            .script
            .last_result()
            .contains("stopped at its time limit")
    );
    assert!(session.recovery().await.calls.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_10_without_a_proven_end_the_outcome_stays_open_and_later_evidence_is_attached() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    // The supervisor stops itself in the middle, so that it can't answer the Stop in time.
    let command = format!(
        "kill -STOP $PPID; {}; sleep 600",
        bench.ledger().append("began")
    );
    bench.script.runs(&command);
    session.submit("go").await;
    began(&bench).await;
    let attempt_id = session.tools().await[0].attempt_id.clone();
    let folder = session.folder.join("effects").join(&attempt_id);
    let digest = session
        .log()
        .into_iter()
        .find_map(|record| match record {
            Record::Receipt(receipt) => Some(receipt.identity.argument_digest),
            _ => None,
        })
        .unwrap();
    let boot = holdfast_supervisor::boot_id().unwrap();
    let evidence = holdfast_supervisor::look(&folder, &attempt_id, &digest, &boot, false).unwrap();
    let ProcessEvidence::Running { pid } = evidence else {
        panic!("it does not run: {evidence:?}");
    };
    assert_eq!(session.stop().await, Cancelled::Requested);
    let frames = session.until_done().await;
    assert_eq!(ends(&frames)[0].0, "cancelled");
    // It has no result; it is known to run, so it is in flight as a job and not uncertain.
    let tool = session.tools().await.remove(0);
    assert_eq!(
        (tool.state.as_str(), tool.result_source),
        ("in_flight", None)
    );
    let status = session.status().await;
    assert_eq!(status.background_jobs, 1);
    let resumed = std::process::Command::new("kill")
        .args(["-CONT", &pid.to_string()])
        .status()
        .unwrap();
    assert!(resumed.success());
    session
        .when("the job's end", |status| status.background_jobs == 0)
        .await;
    let tool = session.tools().await.remove(0);
    assert_eq!(tool.state, "interrupted");
    assert!(session.recovery().await.calls.is_empty());
    assert_eq!(bench.ledger().count("began"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_05_a_stop_behind_the_durable_start_means_that_nothing_ran() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    session.turn("warm").await;
    let model = bench.script.live();
    session.submit("go").await;
    eventually("the request", || {
        (bench.script.requests().len() == 2).then_some(())
    })
    .await;
    let reads = bench.storage.count(Operation::Append);
    // The Stop arrives while the receipt is being written: the storage is asked to wait for it.
    let gate = bench.gate.close();
    model
        .send(finished(
            "",
            vec![shell_call(&bench.ledger().append("never"))],
        ))
        .unwrap();
    eventually("the write of the receipt", || {
        (bench.gate.waiting() > 0).then_some(())
    })
    .await;
    assert_eq!(session.stop().await, Cancelled::Requested);
    drop(gate);
    let frames = session.until_done().await;
    assert_eq!(ends(&frames)[0].0, "cancelled");
    assert!(bench.storage.count(Operation::Append) > reads);
    let tool = session.tools().await.remove(0);
    assert_eq!(tool.state, "not_started");
    let kinds: BTreeMap<String, usize> =
        session.log().iter().fold(BTreeMap::new(), |mut all, r| {
            *all.entry(r.kind().to_owned()).or_default() += 1;
            all
        });
    assert_eq!(kinds.get("tool_started"), Some(&1));
    assert_eq!(kinds.get("not_started"), Some(&1));
    assert!(bench.ledger().lines().is_empty());
    assert!(session.recovery().await.calls.is_empty());
    assert!(
        !session
            .folder
            .join("effects")
            .join(&tool.attempt_id)
            .exists()
    );
}

fn shell_call(command: &str) -> holdfast_provider::ModelCall {
    holdfast_provider::ModelCall {
        provider_id: "p".to_owned(),
        name: "shell".to_owned(),
        arguments: shell(command),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_05_a_stop_before_the_call_is_taken_up_leaves_no_receipt() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    session.turn("warm").await;
    let model = bench.script.live();
    session.submit("go").await;
    eventually("the request", || {
        (bench.script.requests().len() == 2).then_some(())
    })
    .await;
    session.stop().await;
    // Its sender may be gone already: the socket closes with the stop.
    let _ = model.send(finished(
        "",
        vec![shell_call(&bench.ledger().append("never"))],
    ));
    let frames = session.until_done().await;
    assert_eq!(ends(&frames)[0].0, "cancelled");
    assert!(
        !session
            .log()
            .iter()
            .any(|record| matches!(record, Record::Receipt(_)))
    );
    assert!(bench.ledger().lines().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c20_a_stopped_answer_is_kept_as_partial() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let model = bench.script.live();
    session.submit("go").await;
    let text = |text: &str| Ok(holdfast_provider::ModelEvent::Text(text.to_owned()));
    model.send(text("half an ")).unwrap();
    model.send(text("answer")).unwrap();
    session
        .until(
            "the second part",
            |event| matches!(event, Event::Text { text } if text == "answer"),
        )
        .await;
    session.stop().await;
    session.until_done().await;
    let item = session.items().await.pop().unwrap();
    assert_eq!(
        (item.text.as_deref(), item.partial),
        (Some("half an answer"), true)
    );
    assert!(model.is_closed(), "the request is closed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c37_a_late_stop_for_an_earlier_turn_does_nothing() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let first = session.submit("one").await;
    session.until_done().await;
    let model = bench.script.live();
    let second = session.submit("two").await;
    let stop = |turn: &str| Cancel {
        turn_id: Some(turn.to_owned()),
    };
    let late = session.host.cancel(&session.selector, stop(&first)).await;
    assert_eq!(late.unwrap(), Cancelled::AlreadyEnded);
    model.send(finished("whole", Vec::new())).unwrap();
    assert_eq!(ends(&session.until_done().await)[0].0, "completed");
    let late = session.host.cancel(&session.selector, stop(&second)).await;
    assert_eq!(late.unwrap(), Cancelled::AlreadyEnded);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_50_what_lives_on_is_a_job_until_its_real_exit() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let stay = bench.outside("stay");
    std::fs::write(&stay, "").unwrap();
    let file = quoted(&stay.to_string_lossy());
    bench.script.runs(&format!(
        "(while test -e {file}; do sleep 0.02; done) & echo left"
    ));
    let frames = session.turn("go").await;
    assert_eq!(ends(&frames)[0].0, "completed");
    assert!(
        bench
            .script
            .last_result()
            .contains("still running as a job")
    );
    let status = session.status().await;
    assert_eq!((status.background_jobs, status.running), (1, false));
    let jobs = session.host.jobs(&session.selector).await.unwrap();
    assert_eq!(
        (jobs[0].kind.as_str(), jobs[0].stopping),
        ("survivors", false)
    );
    // It holds no barrier while it is in flight.
    bench.script.runs(&bench.ledger().append("next"));
    session.turn("another").await;
    assert_eq!(bench.ledger().count("next"), 1);
    std::fs::remove_file(&stay).unwrap();
    session
        .when("the job's end", |status| status.background_jobs == 0)
        .await;
    assert!(
        session
            .log()
            .iter()
            .any(|record| matches!(record, Record::JobEnded(_)))
    );
    assert_eq!(session.tools().await[0].state, "completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_09_a_job_that_was_told_to_stop_still_counts() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    // Deaf to TERM, so that its end takes the whole grace.
    bench
        .script
        .runs("(trap '' TERM; while :; do sleep 0.02; done) & echo left");
    session.turn("go").await;
    let id = session.host.jobs(&session.selector).await.unwrap()[0]
        .id
        .clone();
    session
        .host
        .cancel_job(&session.selector, CancelJob { id: id.clone() })
        .await
        .unwrap();
    let jobs = session.host.jobs(&session.selector).await.unwrap();
    assert!(jobs[0].stopping);
    assert_eq!(session.status().await.background_jobs, 1);
    session
        .when("the job's end", |status| status.background_jobs == 0)
        .await;
    assert!(holdfast_supervisor::stragglers(&id).unwrap().is_empty());
    let again = session
        .host
        .cancel_job(&session.selector, CancelJob { id })
        .await;
    assert_eq!(again.unwrap_err().code, "job_unknown");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_09_closing_ends_what_runs_and_stores_it() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    bench
        .script
        .runs("(while :; do sleep 0.02; done) & echo left");
    session.turn("a job").await;
    let job = session.host.jobs(&session.selector).await.unwrap()[0]
        .id
        .clone();
    bench.script.runs(&endless(&bench));
    session.submit("a command").await;
    began(&bench).await;
    let attempt = session.tools().await[1].attempt_id.clone();
    session.host.close().await;
    for id in [&job, &attempt] {
        assert!(holdfast_supervisor::stragglers(id).unwrap().is_empty());
    }
    let log = session.log();
    let interrupted = log.iter().any(|record| {
        matches!(record, Record::ToolResult(result)
            if result.attempt_id == attempt && result.state == AttemptState::Interrupted)
    });
    assert!(interrupted, "{log:#?}");
    let ended = log.iter().rev().find_map(|record| match record {
        Record::TurnEnded(ended) => Some((ended.status.clone(), ended.code.clone())),
        _ => None,
    });
    assert_eq!(
        ended,
        Some(("interrupted".to_owned(), "host_closed".to_owned()))
    );
    // The last state that a reader gets is a closed one, with nothing that runs.
    session
        .until("the last state", |event| {
            matches!(event, Event::RuntimeState { runtime_state: last, .. }
                if last.phase == Phase::Closed && !last.running && last.background_jobs == 0)
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sv_09_release_leaves_jobs_to_their_supervisor() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let stay = bench.outside("stay");
    std::fs::write(&stay, "").unwrap();
    let file = quoted(&stay.to_string_lossy());
    bench.script.runs(&format!(
        "(while test -e {file}; do sleep 0.02; done) & echo left"
    ));
    session.turn("go").await;
    let job = session.host.jobs(&session.selector).await.unwrap()[0]
        .id
        .clone();
    session.host.release().await;
    assert!(!holdfast_supervisor::stragglers(&job).unwrap().is_empty());
    let session = bench.of(bench.host(), &session.id);
    assert_eq!(session.status().await.background_jobs, 1);
    std::fs::remove_file(&stay).unwrap();
    session
        .when("the job's end", |status| status.background_jobs == 0)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_between_two_steps_ends_the_turn_once() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    for n in 0..20 {
        bench.script.step(Step::Items(vec![finished(
            "",
            vec![shell_call(&format!("echo {n}"))],
        )]));
        session.submit("go").await;
        session.stop().await;
        let frames = session.until_done().await;
        assert_eq!(ends(&frames).len(), 1);
        let status = session.status().await;
        assert!(!status.running && !status.cancel_requested, "{status:#?}");
        assert!(session.recovery().await.calls.is_empty());
    }
}
