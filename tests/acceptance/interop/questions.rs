//! Questions to a person, and calls of unknown outcome.

use holdfast_api::Selector;
use holdfast_api::SessionHost;
use holdfast_api::session::Approve;
use holdfast_domain::recovery::admission::Action;
use holdfast_domain::recovery::admission::ActionRequest;
use holdfast_testkit::Step;
use holdfast_testkit::wait::SOON;
use holdfast_testkit::wait::until_asked;
use serde_json::json;

use super::serve::{Serve, path, proven};
use super::{code, eventually_shown, message, shown};

#[tokio::test]
async fn c16_a_question_of_a_reasonix_serve_is_answered_once() {
    let (serve, selector) = Serve::new().await;
    let write = |file: &str| json!({ "path": file, "content": "made\n" }).to_string();
    serve
        .model
        .push(Step::call("c1", "write_file", &write("made.txt")));
    serve
        .model
        .push(Step::call("c2", "write_file", &write("denied.txt")));
    serve
        .host
        .submit(&selector, message("make it", "k1"))
        .await
        .unwrap();
    let question = serve.question(&selector).await;
    assert_eq!(question.approval.tool, "write_file");
    assert_eq!(question.approval.subject, "made.txt");
    serve
        .until(&selector, "the question", |state, _| state.pending_prompt)
        .await;
    let snapshot = serve.host.transcript_snapshot(&selector).await.unwrap();
    assert_eq!(shown(&snapshot), ["user: make it", "write_file proposed"]);
    proven("a question is in the state, among the prompts, and its call is proposed");

    let answer = |allow: bool| Approve {
        id: question.approval.id.clone(),
        generation: question.approval.generation,
        allow,
        scope: Some("once".to_owned()),
        reason: None,
    };
    let unknown = Approve {
        id: "turn_of_another/1".to_owned(),
        ..answer(true)
    };
    assert_eq!(
        code(serve.host.approve(&selector, unknown).await),
        "prompt_not_pending"
    );
    let stale = Approve {
        generation: 99,
        ..answer(true)
    };
    assert_eq!(
        code(serve.host.approve(&selector, stale).await),
        "prompt_stale"
    );
    let words = Approve {
        reason: Some("no".to_owned()),
        ..answer(false)
    };
    assert_eq!(
        code(serve.host.approve(&selector, words).await),
        "host_unsupported"
    );
    let elsewhere = Selector::of("00000000000000000000000000000000");
    assert!(serve.host.approve(&elsewhere, answer(true)).await.is_err());
    assert_eq!(serve.network.count("POST /approve"), 0);
    proven("an answer to another question, an old one or another session's is never sent");

    serve.host.approve(&selector, answer(true)).await.unwrap();
    assert_eq!(serve.network.count("POST /approve"), 1);
    assert_eq!(
        code(serve.host.approve(&selector, answer(true)).await),
        "prompt_not_pending"
    );
    let next = until_asked("the next question", SOON, async || {
        let prompts = serve.host.pending_prompts(&selector).await.unwrap();
        prompts
            .into_iter()
            .find(|next| next.prompt_id != question.prompt_id)
    })
    .await;
    assert_eq!(
        std::fs::read_to_string(serve.work().join("made.txt")).unwrap(),
        "made\n"
    );
    let no = Approve {
        id: next.approval.id,
        generation: next.approval.generation,
        ..answer(false)
    };
    serve.host.approve(&selector, no).await.unwrap();
    serve.idle(&selector).await;
    assert!(!serve.work().join("denied.txt").exists());
    let snapshot = eventually_shown(&serve, &selector, "assistant: done").await;
    let states: Vec<String> = shown(&snapshot);
    assert!(
        states.contains(&"write_file completed".to_owned()),
        "{states:?}"
    );
    assert!(
        states.contains(&"write_file failed".to_owned()),
        "{states:?}"
    );
    proven("yes writes the file, no leaves it; a second answer is prompt_not_pending");
}

#[tokio::test]
async fn tr_42_the_retired_recovery_of_a_reasonix_serve() {
    let (serve, selector) = Serve::new().await;
    let snapshot = serve.host.tool_recovery_snapshot(&selector).await.unwrap();
    assert_eq!(snapshot.session_path, path(&selector));
    assert_eq!(
        (
            snapshot.calls.len(),
            snapshot.retry_enabled,
            snapshot.dismiss_enabled
        ),
        (0, false, false)
    );
    let other = Selector::of("00000000000000000000000000000000");
    assert_eq!(
        code(serve.host.tool_recovery_snapshot(&other).await),
        "session_mismatch"
    );
    let request = ActionRequest {
        session_path: snapshot.session_path,
        runtime_epoch: snapshot.runtime_epoch,
        revision: snapshot.revision,
        attempt_id: "a".to_owned(),
        inspection_id: String::new(),
        action: Action::Inspect,
    };
    let refused = serve
        .host
        .resolve_tool_recovery(&selector, request, "test")
        .await;
    assert_eq!(code(refused), "host_unsupported");
    assert_eq!(serve.network.count("POST /tool-recovery"), 0);
    proven("its retired recovery is shown for its own session; an action is never sent");
}
