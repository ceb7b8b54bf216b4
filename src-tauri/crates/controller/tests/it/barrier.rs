//! The barrier, and the ways out of it: TR-19, TR-20, TR-24, TR-34.

use holdfast_api::host::SessionHost;
use holdfast_domain::recovery::admission::Action;
use holdfast_domain::transcript::record::Record;

use crate::bench::{Bench, Session, ends, eventually, request};
use crate::script::{finished, shell, write};

/// A session with one command of unknown outcome: it had its effect and killed its supervisor.
pub(crate) async fn with_unknown(bench: &Bench, mode: &str) -> (Session, String) {
    let mut session = bench.session(mode).await;
    let command = format!("{}; kill -9 $PPID", bench.ledger().append("effect"));
    bench.script.runs(&command).says("its outcome is unknown");
    let frames = session.turn("go").await;
    assert_eq!(ends(&frames)[0].0, "completed");
    assert_eq!(bench.ledger().count("effect"), 1);
    let attempt = session.open_attempt().await;
    // The shell itself may outlive its supervisor by a moment.
    eventually("the end of the shell", || {
        holdfast_supervisor::stragglers(&attempt)
            .unwrap()
            .is_empty()
            .then_some(())
    })
    .await;
    (session, attempt)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_18_a_folder_that_was_taken_away_does_not_prove_that_nothing_was_started() {
    let bench = Bench::new();
    let (session, attempt) = with_unknown(&bench, "full").await;
    session.host.close().await;
    std::fs::remove_dir_all(session.folder.join("effects")).unwrap();
    let again = bench.of(bench.host(), &session.id);
    assert_eq!(again.open_attempt().await, attempt);
    assert_eq!(bench.ledger().count("effect"), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_19_no_new_call_turn_or_client_gets_around_the_barrier() {
    let bench = Bench::new();
    let (mut session, attempt) = with_unknown(&bench, "full").await;
    let again = bench.ledger().append("effect");
    let other = bench.host().hub().reader(true, None, None);
    drop(other);
    for (name, arguments) in [
        ("shell", shell(&again)),
        ("shell", shell("true")),
        ("write_file", write("f", "x")),
        (
            "edit_file",
            r#"{"path":"f","edits":[{"old_text":"a","new_text":"b"}]}"#.to_owned(),
        ),
    ] {
        if name == "edit_file" {
            std::fs::write(bench.workspace().join("f"), "a").unwrap();
        }
        bench.script.calls(&[(name, &arguments)]);
        session.turn("once more").await;
        let text = bench.script.last_result();
        let (first, rest) = text.split_once('\n').unwrap();
        assert_eq!(
            first,
            "blocked: recovery_required: inspect and resolve the previous uncertain tool effect \
             before another write"
        );
        assert!(
            rest.contains(&attempt) && rest.contains("confirm or dismiss"),
            "{rest}"
        );
    }
    assert_eq!(bench.ledger().lines(), ["effect"]);
    let snapshot = session.recovery().await;
    assert_eq!(
        (snapshot.statistics.unknown, snapshot.statistics.blocked),
        (1, 4)
    );
    // Each of the five calls has an id of its own.
    let mut ids: Vec<String> = session
        .tools()
        .await
        .into_iter()
        .map(|tool| tool.id)
        .collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_19_a_barrier_is_checked_before_a_person_is_asked() {
    let bench = Bench::new();
    let (mut session, _) = with_unknown(&bench, "full").await;
    session
        .host
        .patch_session(
            &session.id,
            holdfast_api::session::PatchSession {
                mode: Some("ask".to_owned()),
                ..Default::default()
            },
        )
        .await
        .unwrap();
    bench.script.runs("true");
    session.turn("go").await;
    assert!(
        !session
            .log()
            .iter()
            .any(|record| matches!(record, Record::PromptAsked(_)))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_20_reading_goes_on_behind_the_barrier() {
    let bench = Bench::new();
    std::fs::write(bench.workspace().join("f"), "to be found").unwrap();
    let (mut session, _) = with_unknown(&bench, "full").await;
    bench.script.calls(&[
        ("read_file", r#"{"path":"f"}"#),
        ("list_dir", r#"{"path":"."}"#),
        ("glob", r#"{"pattern":"*"}"#),
        ("grep", r#"{"pattern":"found"}"#),
    ]);
    session.turn("look").await;
    let tools = session.tools().await;
    let states: Vec<&str> = tools[1..].iter().map(|tool| tool.state.as_str()).collect();
    assert_eq!(states, ["completed"; 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_24_confirm_and_dismiss_lead_out_and_reject_does_not() {
    for action in [Action::Confirm, Action::Dismiss] {
        let bench = Bench::new();
        let (mut session, attempt) = with_unknown(&bench, "full").await;
        let (inspection, _) = session.inspect(&attempt).await;
        // TR-33: a refused retry proves nothing and lifts nothing.
        let snapshot = session
            .act(Action::Reject, &attempt, &inspection)
            .await
            .unwrap();
        assert_eq!(
            (snapshot.statistics.unknown, snapshot.statistics.rejected),
            (1, 1)
        );
        bench.script.runs("true");
        session.turn("still blocked").await;
        assert!(
            bench
                .script
                .last_result()
                .starts_with("blocked: recovery_required")
        );
        let snapshot = session.act(action, &attempt, &inspection).await.unwrap();
        assert!(snapshot.calls.is_empty());
        bench.script.runs(&bench.ledger().append("next"));
        session.turn("go on").await;
        assert_eq!(bench.ledger().lines(), ["effect", "next"]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_34_a_dismissal_is_admitted_during_a_turn_and_sets_no_result() {
    let bench = Bench::new();
    let (mut session, attempt) = with_unknown(&bench, "full").await;
    let seen = session.recovery().await;
    let model = bench.script.live();
    session.submit("go").await;
    // A blocked call changes the revision under the person's hands.
    model
        .send(finished(
            "",
            vec![holdfast_provider::ModelCall {
                provider_id: "x".to_owned(),
                name: "shell".to_owned(),
                arguments: shell("true"),
            }],
        ))
        .unwrap();
    let model = bench.script.live();
    drop(model);
    eventually("the blocked call", || {
        (bench.script.requests().len() >= 4).then_some(())
    })
    .await;
    let other = session.act(Action::Confirm, &attempt, "x").await;
    let dismissed = session
        .resolve(request(&seen, Action::Dismiss, &attempt, ""))
        .await
        .unwrap();
    assert!(dismissed.calls.is_empty());
    assert_eq!(dismissed.statistics.dismissed, 1);
    if let Err(error) = other {
        assert!(
            ["turn_running", "not_inspected"].contains(&error.code.as_str()),
            "{error:?}"
        );
    }
    session.idle().await;
    let tool = session.tools().await.remove(0);
    assert_eq!(tool.state, "user_dismissed");
    assert_ne!(tool.result_source.as_deref(), Some("live"));
    // The model is told that the outcome stays unknown, once.
    session.turn("and now").await;
    session.turn("and later").await;
    let notes: Vec<String> = session
        .items()
        .await
        .into_iter()
        .filter(|item| item.kind == "note")
        .filter_map(|item| item.text)
        .collect();
    assert_eq!(notes.len(), 1, "{notes:#?}");
    assert!(notes[0].contains("stays unknown"), "{notes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_34_what_still_runs_can_not_be_dismissed() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let command = format!(
        "{}; while :; do sleep 0.02; done",
        bench.ledger().append("began")
    );
    bench.script.runs(&command);
    session.submit("go").await;
    eventually("the command", || {
        (bench.ledger().count("began") == 1).then_some(())
    })
    .await;
    let attempt = session.tools().await[0].attempt_id.clone();
    let refused = session
        .act(Action::Dismiss, &attempt, "")
        .await
        .unwrap_err();
    assert_eq!(
        (refused.status, refused.code.as_str()),
        (409, "executor_alive")
    );
    assert!(refused.snapshot.unwrap().calls.is_empty());
    session.stop().await;
    session.until_done().await;
    let refused = session
        .act(Action::Dismiss, &attempt, "")
        .await
        .unwrap_err();
    assert_eq!(refused.code, "attempt_resolved");
}
