//! Questions to a person: TR-04, TR-51, C16.

use holdfast_api::host::SessionHost;
use holdfast_api::session::{Approve, PatchSession};
use holdfast_domain::transcript::record::Record;

use crate::bench::{Bench, ends};
use crate::script::{shell, write};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_51_a_waiting_call_is_proposed_and_has_no_receipt() {
    let bench = Bench::new();
    let session = bench.session("ask").await;
    bench.script.runs(&bench.ledger().append("once"));
    session.submit("go").await;
    let prompt = session.prompt().await;
    assert_eq!(prompt.approval.subject, bench.ledger().append("once"));
    let tool = session.tools().await.remove(0);
    assert_eq!(
        (tool.state.as_str(), tool.attempt_id.as_str()),
        ("proposed", "")
    );
    assert!(
        !session
            .log()
            .iter()
            .any(|record| matches!(record, Record::Receipt(_)))
    );
    let state = session.status().await.runtime_state.unwrap();
    assert!(state.pending_prompt && state.running && state.cancellable);
    session.answer(&prompt, true).await.unwrap();
    session.idle().await;
    assert_eq!(bench.ledger().lines(), ["once"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c16_of_many_answers_exactly_one_counts() {
    let bench = Bench::new();
    let mut session = bench.session("ask").await;
    bench.script.runs(&bench.ledger().append("once"));
    session.submit("go").await;
    let prompt = session.prompt().await;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (host, selector) = (session.host.clone(), session.selector.clone());
            let answer = Approve {
                id: prompt.prompt_id.clone(),
                generation: 1,
                allow: true,
                scope: None,
                reason: None,
            };
            tokio::spawn(async move { host.approve(&selector, answer).await })
        })
        .collect();
    let mut accepted = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(()) => accepted += 1,
            Err(error) => assert_eq!(error.code, "prompt_not_pending"),
        }
    }
    assert_eq!(accepted, 1);
    session.until_done().await;
    assert_eq!(bench.ledger().lines(), ["once"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_51_a_file_that_changed_is_asked_again() {
    let bench = Bench::new();
    let file = bench.workspace().join("f");
    std::fs::write(&file, "one\n").unwrap();
    let mut session = bench.session("ask").await;
    bench
        .script
        .calls(&[("write_file", &write("f", "three\n"))]);
    session.submit("go").await;
    let prompt = session.prompt().await;
    std::fs::write(&file, "two\n").unwrap();
    let stale = session.answer(&prompt, true).await.unwrap_err();
    assert_eq!((stale.status, stale.code.as_str()), (409, "prompt_stale"));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two\n");
    let again = session.prompt().await;
    assert_eq!(again.approval.generation, 2);
    assert!(again.approval.diff.as_ref().unwrap().contains("-two"));
    // An answer to what was shown first is no answer to this.
    assert_eq!(
        session.answer(&prompt, true).await.unwrap_err().code,
        "prompt_stale"
    );
    session.answer(&again, true).await.unwrap();
    session.until_done().await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "three\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_04_a_denial_is_an_ordinary_refusal_with_the_persons_words() {
    let bench = Bench::new();
    let mut session = bench.session("ask").await;
    bench.script.runs(&bench.ledger().append("never"));
    session.submit("go").await;
    let prompt = session.prompt().await;
    let answer = Approve {
        id: prompt.prompt_id,
        generation: 1,
        allow: false,
        scope: None,
        reason: Some("not on a Friday".to_owned()),
    };
    session
        .host
        .approve(&session.selector, answer)
        .await
        .unwrap();
    let frames = session.until_done().await;
    assert_eq!(ends(&frames)[0].0, "completed");
    assert!(bench.script.last_result().contains("not on a Friday"));
    assert_eq!(session.tools().await[0].code.as_deref(), Some("denied"));
    assert!(
        !session
            .log()
            .iter()
            .any(|record| matches!(record, Record::Receipt(_)))
    );
    assert!(bench.ledger().lines().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_allowance_for_the_session_is_for_the_tool_or_the_exact_command() {
    let bench = Bench::new();
    let mut session = bench.session("ask").await;
    let allow = |prompt: holdfast_api::session::PendingPrompt| Approve {
        id: prompt.prompt_id,
        generation: prompt.approval.generation,
        allow: true,
        scope: Some("session".to_owned()),
        reason: None,
    };
    bench.script.calls(&[
        ("write_file", &write("a", "1")),
        ("write_file", &write("b", "2")),
        ("shell", &shell("echo same")),
        ("shell", &shell("echo same")),
        ("shell", &shell("echo other")),
    ]);
    session.submit("go").await;
    let first = session.prompt().await;
    session
        .host
        .approve(&session.selector, allow(first.clone()))
        .await
        .unwrap();
    let second = session
        .when("the next question", |status| status.pending_prompt)
        .await;
    assert!(second.running);
    let command = session.prompt().await;
    assert_eq!(command.approval.subject, "echo same");
    session
        .host
        .approve(&session.selector, allow(command))
        .await
        .unwrap();
    session
        .when("the last question", |status| status.pending_prompt)
        .await;
    let other = session.prompt().await;
    assert_eq!(other.approval.subject, "echo other");
    session.answer(&other, false).await.unwrap();
    session.until_done().await;
    let states: Vec<String> = session
        .tools()
        .await
        .into_iter()
        .map(|tool| tool.state)
        .collect();
    assert_eq!(
        states,
        [
            "completed",
            "completed",
            "completed",
            "completed",
            "not_started"
        ]
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mode_or_a_scope_that_is_not_known_changes_nothing() {
    let bench = Bench::new();
    let mut session = bench.session("ask").await;
    let patch = PatchSession {
        mode: Some("yolo".to_owned()),
        ..PatchSession::default()
    };
    let refused = session
        .host
        .patch_session(&session.id, patch)
        .await
        .unwrap_err();
    assert_eq!(refused.code, "mode_unknown");
    assert_eq!(session.status().await.mode, "ask");
    bench.script.runs(&bench.ledger().append("never"));
    session.submit("go").await;
    let prompt = session.prompt().await;
    let answer = Approve {
        id: prompt.prompt_id,
        generation: 1,
        allow: true,
        scope: Some("always".to_owned()),
        reason: None,
    };
    let refused = session
        .host
        .approve(&session.selector, answer)
        .await
        .unwrap_err();
    assert_eq!(refused.code, "scope_unknown");
    assert!(session.status().await.pending_prompt);
    session.stop().await;
    session.until_done().await;
    assert!(bench.ledger().lines().is_empty());
}
