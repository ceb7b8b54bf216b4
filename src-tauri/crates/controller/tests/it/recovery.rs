//! The recovery snapshot and a person's actions on it: TR-25…TR-34, TR-38.

use holdfast_api::host::SessionHost;
use holdfast_api::session::{CreateSession, Submit};
use holdfast_controller::store::Store;
use holdfast_domain::recovery::admission::Action;
use holdfast_domain::recovery::attempt::{EFFECT_UNKNOWN, Evidence, InspectionState};
use holdfast_domain::recovery::identity::Identity;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::transcript::record::{
    AssistantMessage, ProposedCall, Receipt, Record, ResultSource, SessionCreated, ToolResult,
    ToolStarted, TurnEnded, TurnStarted, UserMessage,
};
use holdfast_files::fault::{Fault, Plan};
use holdfast_journal::Holder;
use holdfast_tools::{Registry, RegistryConfig, Workspace};

use crate::barrier::with_unknown;
use crate::bench::{Bench, Session, request};
use crate::script::write;

/// A session whose host died behind the start record of this write, by a loss of power.
pub(crate) async fn with_open_write(bench: &Bench, path: &str, content: &str) -> (Session, String) {
    let arguments = write(path, content);
    let (session, mut attempts) =
        with_calls(bench, &[("write_file", &arguments)], Ending::Open).await;
    let attempt_id = attempts.remove(0);
    assert_eq!(session.open_attempt().await, attempt_id);
    (session, attempt_id)
}

/// What the log says of the calls behind their start records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// Nothing.
    Open,
    /// They failed, and their effect is open (TR-09).
    EffectUnknown,
}

/// A session whose log holds these calls of file tools, one turn each, and a host that has opened
/// it. Nothing was run. Answers the attempts' ids.
pub(crate) async fn with_calls(
    bench: &Bench,
    calls: &[(&str, &str)],
    ending: Ending,
) -> (Session, Vec<String>) {
    let id = "5e".repeat(16);
    let folder = bench.data().join("sessions").join(&id);
    let workspace = Workspace::open(&bench.workspace(), Vec::new()).unwrap();
    let registry = Registry::new(RegistryConfig::default()).unwrap();
    let header = SessionCreated {
        session_id: id.clone(),
        workspace: bench.workspace().to_string_lossy().into_owned(),
        model: "scripted/model".to_owned(),
        mode: "full".to_owned(),
        writes: Record::KINDS
            .iter()
            .map(|kind| (*kind).to_owned())
            .collect(),
        ..SessionCreated::default()
    };
    let holder = Holder {
        pid: 1,
        host: String::new(),
        since: 1,
        socket: None,
    };
    holdfast_files::create_private_folder(&bench.data().join("sessions")).unwrap();
    let mut store = Store::create(
        std::sync::Arc::new(holdfast_files::Disk),
        &folder,
        &id,
        &holder,
        1,
        header.into(),
    )
    .unwrap();
    let mut attempts = Vec::new();
    for (place, (name, arguments)) in calls.iter().enumerate() {
        let prepared = registry.prepare(name, arguments, &workspace).unwrap();
        let attempt_id = format!("{:032x}", 0xa7 + place);
        let turn_id = format!("turn{place}");
        let identity = Identity {
            session_id: id.clone(),
            turn_id: turn_id.clone(),
            step: 1,
            call_id: format!("call{place}"),
            canonical_tool: prepared.canonical_tool.clone(),
            argument_digest: prepared.argument_digest.clone(),
            attempt_id: attempt_id.clone(),
            resource_scope: prepared.resource_scope.clone().unwrap(),
        };
        let mut records: Vec<Record> = vec![
            UserMessage {
                turn_id: turn_id.clone(),
                text: "write".to_owned(),
                submission_id: String::new(),
                steer_item: String::new(),
            }
            .into(),
            TurnStarted {
                turn_id: turn_id.clone(),
                continuation: false,
            }
            .into(),
            AssistantMessage {
                turn_id: turn_id.clone(),
                step: 1,
                calls: vec![ProposedCall {
                    call_id: identity.call_id.clone(),
                    provider_id: "p0".to_owned(),
                    name: (*name).to_owned(),
                    arguments: (*arguments).to_owned(),
                }],
                ..AssistantMessage::default()
            }
            .into(),
            Receipt {
                idempotency_key: identity.idempotency_key(),
                identity,
                read_only: false,
                subject: prepared.subject.clone(),
                file: prepared.file.clone(),
                supervised: false,
            }
            .into(),
            ToolStarted {
                attempt_id: attempt_id.clone(),
                // In the same boot what is left would prove that it did not happen.
                boot_id: "another boot".to_owned(),
            }
            .into(),
        ];
        if ending == Ending::EffectUnknown {
            let text = "error: the write stopped unexpectedly".to_owned();
            records.push(
                ToolResult {
                    attempt_id: attempt_id.clone(),
                    state: AttemptState::Failed,
                    source: ResultSource::Live,
                    digest: holdfast_domain::canonical::sha256_hex(text.as_bytes()),
                    text,
                    effect_summary: EFFECT_UNKNOWN.to_owned(),
                    raw: None,
                    output: None,
                    truncated: false,
                    diff: None,
                    exit: None,
                    may_continue_elsewhere: false,
                    duration_ms: 1,
                }
                .into(),
            );
            let ended = TurnEnded {
                turn_id,
                status: "completed".to_owned(),
                ..TurnEnded::default()
            };
            records.push(ended.into());
        }
        store.commit(2, records, Vec::new()).await.unwrap();
        attempts.push(attempt_id);
    }
    store.close().await;
    let session = bench.of(bench.host(), &id);
    session.status().await;
    (session, attempts)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_25_a_snapshot_has_every_field_and_tr_27_no_arguments() {
    let bench = Bench::new();
    let (session, attempt) = with_unknown(&bench, "full").await;
    let snapshot = session.recovery().await;
    let value = serde_json::to_value(&snapshot).unwrap();
    let mut keys: Vec<&str> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "calls",
            "dismissEnabled",
            "retryEnabled",
            "revision",
            "runtimeEpoch",
            "sessionPath",
            "silent",
            "statistics"
        ]
    );
    assert_eq!(
        (
            snapshot.silent,
            snapshot.retry_enabled,
            snapshot.dismiss_enabled
        ),
        (false, false, true)
    );
    assert_eq!(snapshot.session_path, format!("session-id:{}", session.id));
    let state = session.status().await.runtime_state.unwrap();
    assert_eq!(snapshot.runtime_epoch, state.runtime_epoch);
    assert_eq!(state.unresolved, 1);
    let call = &value["calls"][0];
    for key in [
        "identity",
        "state",
        "read_only",
        "idempotency_key",
        "started_at",
        "finished_at",
        "resolved_at",
        "result_digest",
        "result_source",
        "effect_summary",
        "resolution",
        "resolution_source",
        "inspection_id",
        "inspection_state",
        "inspection_evidence",
        "superseded_by",
    ] {
        assert!(call.get(key).is_some(), "{key} is missing in {call:#}");
    }
    assert_eq!(call["identity"]["attempt_id"], attempt);
    assert!(call.get("arguments").is_none());
    assert!(
        !value.to_string().contains("PPID"),
        "a command's text is its arguments"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_26_reading_twice_is_identical_and_arguments_are_no_part_of_the_revision() {
    let bench = Bench::new();
    let (session, attempt) = with_unknown(&bench, "full").await;
    let before = session.recovery().await;
    assert_eq!(session.recovery().await, before);
    let (_, inspected) = session.inspect(&attempt).await;
    assert_ne!(inspected.revision, before.revision);
    assert!(inspected.calls[0].arguments.is_some());
    let after = session.recovery().await;
    assert_eq!(after.revision, inspected.revision);
    assert!(after.calls[0].arguments.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_27_arguments_enter_no_note_for_the_model() {
    let bench = Bench::new();
    let (mut session, attempt) = with_unknown(&bench, "full").await;
    let (inspection, _) = session.inspect(&attempt).await;
    session
        .act(Action::Confirm, &attempt, &inspection)
        .await
        .unwrap();
    session.turn("go on").await;
    let note = session
        .items()
        .await
        .into_iter()
        .find(|item| item.kind == "note")
        .and_then(|item| item.text)
        .unwrap();
    assert!(
        note.contains("the effect happened") && !note.contains("PPID"),
        "{note}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_28_statistics_say_what_is_true_now() {
    let bench = Bench::new();
    let (session, attempt) = with_unknown(&bench, "full").await;
    let counts = |snapshot: &holdfast_api::recovery::ToolRecoverySnapshot| {
        let all = snapshot.statistics;
        (all.unknown, all.confirmed, all.rejected, all.dismissed)
    };
    assert_eq!(counts(&session.recovery().await), (1, 0, 0, 0));
    let (inspection, _) = session.inspect(&attempt).await;
    let rejected = session
        .act(Action::Reject, &attempt, &inspection)
        .await
        .unwrap();
    assert_eq!(counts(&rejected), (1, 0, 1, 0));
    let confirmed = session
        .act(Action::Confirm, &attempt, &inspection)
        .await
        .unwrap();
    assert_eq!(counts(&confirmed), (0, 1, 0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_30_each_cause_has_its_code() {
    let bench = Bench::new();
    let (mut session, attempt) = with_unknown(&bench, "full").await;
    let snapshot = session.recovery().await;
    let code = async |request| {
        let error = session.resolve(request).await.unwrap_err();
        assert_eq!(error.status, 409);
        assert!(
            error.snapshot.is_some(),
            "a refusal carries the present snapshot"
        );
        error.code
    };
    let good = request(&snapshot, Action::Inspect, &attempt, "");
    let mut asked = good.clone();
    asked.session_path = "session-id:other".to_owned();
    assert_eq!(code(asked).await, "snapshot_changed");
    let mut asked = good.clone();
    asked.runtime_epoch.clear();
    assert_eq!(code(asked).await, "snapshot_changed");
    let mut asked = good.clone();
    asked.revision = "0".repeat(64);
    assert_eq!(code(asked).await, "snapshot_changed");
    let mut asked = good.clone();
    asked.attempt_id = "f".repeat(32);
    assert_eq!(code(asked).await, "attempt_unknown");
    for action in [Action::Confirm, Action::Reject] {
        assert_eq!(
            code(request(&snapshot, action, &attempt, "")).await,
            "not_inspected"
        );
        assert_eq!(
            code(request(&snapshot, action, &attempt, "made up")).await,
            "not_inspected"
        );
    }
    let (first, _) = session.inspect(&attempt).await;
    let (second, snapshot) = session.inspect(&attempt).await;
    assert_ne!(first, second);
    assert_eq!(
        code(request(&snapshot, Action::Confirm, &attempt, &first)).await,
        "not_inspected"
    );
    assert_eq!(
        code(request(&snapshot, Action::Retry, &attempt, &second)).await,
        "retry_disabled"
    );
    let model = bench.script.live();
    session.submit("go").await;
    assert_eq!(
        code(request(&snapshot, Action::Confirm, &attempt, &second)).await,
        "turn_running"
    );
    drop(model);
    session.until_done().await;
    session
        .act(Action::Confirm, &attempt, &second)
        .await
        .unwrap();
    let late = session
        .act(Action::Dismiss, &attempt, "")
        .await
        .unwrap_err();
    assert_eq!(late.code, "attempt_resolved");
    assert_eq!(bench.ledger().lines(), ["effect"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_31_what_is_not_durable_is_undone_and_said() {
    let bench = Bench::new();
    let (session, attempt) = with_unknown(&bench, "full").await;
    let (inspection, before) = session.inspect(&attempt).await;
    for action in [
        Action::Inspect,
        Action::Confirm,
        Action::Reject,
        Action::Dismiss,
    ] {
        bench.storage.inject(Plan {
            fault: Fault::Fail(std::io::ErrorKind::StorageFull),
            first: 1,
            last: u64::MAX,
            only: None,
        });
        let refused = session
            .act(action, &attempt, &inspection)
            .await
            .unwrap_err();
        assert_eq!(refused.code, "not_durable", "{action:?}");
        let shown = refused.snapshot.unwrap();
        assert_eq!(shown.calls[0].resolution, before.calls[0].resolution);
        assert_eq!(shown.calls[0].inspection_id, inspection);
        bench.storage.heal();
    }
    // Without a restart it is stored as soon as storage works.
    let confirmed = session
        .act(Action::Confirm, &attempt, &inspection)
        .await
        .unwrap();
    assert!(confirmed.calls.is_empty());
    let resolved = session
        .log()
        .iter()
        .filter(|record| matches!(record, Record::Resolved(_)))
        .count();
    assert_eq!(resolved, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_32_a_file_is_looked_at_as_it_is_now() {
    let bench = Bench::new();
    let file = bench.workspace().join("f");
    std::fs::write(&file, "before").unwrap();
    let (session, attempt) = with_open_write(&bench, "f", "after").await;
    let mut ids = Vec::new();
    let mut states = Vec::new();
    let mut now = Vec::new();
    for content in [Some("before"), Some("after"), Some("another"), None] {
        match content {
            Some(content) => std::fs::write(&file, content).unwrap(),
            None => std::fs::remove_file(&file).unwrap(),
        }
        let (id, snapshot) = session.inspect(&attempt).await;
        let call = &snapshot.calls[0];
        ids.push(id);
        states.push(call.inspection_state.unwrap());
        let Some(Evidence::File { now: seen, .. }) = &call.inspection_evidence else {
            panic!("no file evidence: {call:#?}");
        };
        now.push(seen.clone());
        assert_eq!(call.arguments.as_ref().unwrap()["content"], "after");
    }
    assert_eq!(
        states,
        [
            InspectionState::AbsentFenced,
            InspectionState::PostconditionSatisfied,
            InspectionState::Unknown,
            InspectionState::Unknown,
        ]
    );
    let digest = |text: &str| Some(holdfast_domain::canonical::sha256_hex(text.as_bytes()));
    assert_eq!(
        now,
        [
            digest("before"),
            digest("after"),
            digest("another"),
            Some(String::new())
        ]
    );
    ids.dedup();
    assert_eq!(ids.len(), 4);
    // A look runs nothing.
    assert!(!file.exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_32_what_can_not_be_read_is_unknown() {
    let bench = Bench::new();
    let file = bench.workspace().join("f");
    let (session, attempt) = with_open_write(&bench, "f", "after").await;
    std::fs::create_dir(&file).unwrap();
    let (_, snapshot) = session.inspect(&attempt).await;
    let call = &snapshot.calls[0];
    assert_eq!(call.inspection_state, Some(InspectionState::Unknown));
    let Some(Evidence::File { now, .. }) = &call.inspection_evidence else {
        panic!("no file evidence: {call:#?}");
    };
    assert_eq!(now, &None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_32_another_place_is_a_changed_sink() {
    let bench = Bench::new();
    let workspace = bench.workspace();
    std::fs::create_dir(workspace.join("one")).unwrap();
    std::fs::create_dir(workspace.join("two")).unwrap();
    let link = workspace.join("link");
    std::os::unix::fs::symlink("one", &link).unwrap();
    let (session, attempt) = with_open_write(&bench, "link/f", "after").await;
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("two", &link).unwrap();
    let refused = session
        .act(Action::Inspect, &attempt, "")
        .await
        .unwrap_err();
    assert_eq!(refused.code, "sink_changed");
    assert_eq!(refused.snapshot.unwrap().calls[0].inspection_id, "");
    // TR-24: there is still a way out.
    session.act(Action::Dismiss, &attempt, "").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_33_a_confirmation_is_no_tool_output() {
    let bench = Bench::new();
    let (mut session, attempt) = with_unknown(&bench, "full").await;
    let told = bench.script.last_result();
    let (inspection, _) = session.inspect(&attempt).await;
    session
        .act(Action::Confirm, &attempt, &inspection)
        .await
        .unwrap();
    let tool = session.tools().await.remove(0);
    assert_eq!(
        (tool.state.as_str(), tool.output.as_str()),
        ("user_confirmed", "")
    );
    session.turn("go on").await;
    // TR-15: what was once sent stays, byte for byte.
    assert_eq!(bench.script.results()[0].1, told);
    assert!(
        told.starts_with("[host] The outcome of this call is unknown"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_38_of_two_concurrent_confirmations_exactly_one_wins_also_across_a_restart() {
    let bench = Bench::new();
    let (mut session, attempt) = with_unknown(&bench, "full").await;
    let (inspection, _) = session.inspect(&attempt).await;
    let snapshot = session.recovery().await;
    let tasks: Vec<_> = (0..8)
        .map(|place| {
            let action = if place % 2 == 0 {
                Action::Confirm
            } else {
                Action::Dismiss
            };
            let asked = request(&snapshot, action, &attempt, &inspection);
            let (host, selector) = (session.host.clone(), session.selector.clone());
            tokio::spawn(async move { host.resolve_tool_recovery(&selector, asked, "test").await })
        })
        .collect();
    let mut won = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(_) => won += 1,
            Err(error) => assert!(
                ["snapshot_changed", "attempt_resolved"].contains(&error.code.as_str()),
                "{error:?}"
            ),
        }
    }
    assert_eq!(won, 1);
    let state = session.tools().await[0].state.clone();
    session.host.close().await;
    session = bench.of(bench.host(), &session.id);
    assert_eq!(session.tools().await[0].state, state);
    assert!(session.recovery().await.calls.is_empty());
    let late = session
        .resolve(request(&snapshot, Action::Confirm, &attempt, &inspection))
        .await;
    assert_eq!(late.unwrap_err().code, "snapshot_changed");
    let late = session.act(Action::Dismiss, &attempt, "").await;
    assert_eq!(late.unwrap_err().code, "attempt_resolved");
    let resolved = session
        .log()
        .iter()
        .filter(|record| matches!(record, Record::Resolved(_)))
        .count();
    assert_eq!(resolved, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_41_an_expected_session_must_be_the_one_that_answers() {
    let bench = Bench::new();
    let session = bench.session("full").await;
    let other = session
        .host
        .create_session(CreateSession::default())
        .await
        .unwrap();
    let mut selector = session.selector.clone();
    selector.expected_id = Some(other.session_id.clone());
    let submit = Submit {
        input: "to the wrong one".to_owned(),
        submission_id: None,
    };
    let refused = session.host.submit(&selector, submit).await.unwrap_err();
    assert_eq!(
        (refused.status, refused.code.as_str()),
        (409, "session_mismatch")
    );
    let refused = session
        .host
        .tool_recovery_snapshot(&selector)
        .await
        .unwrap_err();
    assert_eq!(refused.code, "session_mismatch");
    assert!(session.items().await.is_empty());
}
