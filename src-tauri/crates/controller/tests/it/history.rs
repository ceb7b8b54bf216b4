//! Compaction, rewind and copies: TR-06, TR-22, C08, and restarts at every point of them.

use holdfast_api::ApiError;
use holdfast_api::event::Event;
use holdfast_api::history::{Rewind, RewindReply};
use holdfast_api::host::SessionHost;
use holdfast_api::session::{Cancel, Cancelled};
use holdfast_controller::store::fold;
use holdfast_domain::recovery::admission::Action;
use holdfast_domain::recovery::barrier::InFlight;
use holdfast_domain::runtime::snapshot::{Activity, Phase, TurnStatus};
use holdfast_domain::transcript::outbound::OutboundMessage;
use holdfast_domain::transcript::session::Session as Fold;
use holdfast_domain::transcript::view::{SUMMARY_REQUEST, check_pairing};
use holdfast_files::fault::{Fault, Plan};
use holdfast_provider::{ModelEvent, ModelReply};
use holdfast_testkit::wait::scaled;

use crate::barrier::with_unknown;
use crate::bench::{Bench, Session, ends, eventually};
use crate::restart::runtime;
use crate::script::{finished, write};

impl Session {
    async fn compact(&mut self) -> Vec<(String, String)> {
        self.host.compact(&self.selector).await.unwrap();
        ends(&self.until_done().await)
    }

    async fn rewind(&self, seq: u64) -> Result<RewindReply, ApiError> {
        self.host.rewind(&self.selector, Rewind { seq }).await
    }

    /// The place of a message of the person.
    async fn message(&self, text: &str) -> u64 {
        let items = self.items().await;
        let found = items
            .iter()
            .find(|item| item.kind == "user" && item.text.as_deref() == Some(text));
        found.unwrap().seq
    }

    async fn kinds(&self) -> Vec<String> {
        self.items()
            .await
            .into_iter()
            .map(|item| item.kind)
            .collect()
    }

    fn fold(&self) -> Fold {
        fold(
            &holdfast_journal::read_only(&self.folder, &self.id)
                .unwrap()
                .entries,
        )
    }
}

/// The latest request's messages of a person or the host.
fn told(bench: &Bench) -> Vec<String> {
    let request = bench.script.requests().pop().unwrap();
    assert_eq!(check_pairing(&request.messages), Ok(()));
    request
        .messages
        .into_iter()
        .filter_map(|message| match message {
            OutboundMessage::User { text } => Some(text),
            _ => None,
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c08_tr_22_a_compaction_with_an_unresolved_receipt_repeats_nothing_and_keeps_it() {
    let bench = Bench::new();
    let (mut session, attempt) = with_unknown(&bench, "full").await;
    let before = (session.log_bytes(), session.recovery().await);
    bench
        .script
        .says("we made a line in the ledger; its outcome is unknown");
    assert_eq!(
        session.compact().await,
        [("completed".to_owned(), String::new())]
    );
    let asked = bench.script.requests().pop().unwrap();
    assert_eq!(asked.tools.len(), 0);
    assert_eq!(told(&bench), ["go", SUMMARY_REQUEST]);
    assert!(
        session.log_bytes().starts_with(&before.0),
        "nothing was rewritten"
    );
    let recovery = session.recovery().await;
    assert_eq!(recovery, before.1, "the same snapshot, the same revision");
    assert_eq!(
        session.kinds().await,
        ["user", "tool", "assistant", "compacted"]
    );
    // The barrier stands.
    bench.script.runs(&bench.ledger().append("effect"));
    session.turn("once more").await;
    assert!(
        bench
            .script
            .last_result()
            .starts_with("blocked: recovery_required")
    );
    let said = told(&bench);
    assert!(said[0].contains("made a line in the ledger"), "{said:?}");
    assert_eq!(said[1..], ["once more"]);
    // What the person says is told once, beside no call.
    let (inspection, _) = session.inspect(&attempt).await;
    session
        .act(Action::Confirm, &attempt, &inspection)
        .await
        .unwrap();
    session.turn("and now").await;
    let said = told(&bench);
    assert!(said[2].contains("the effect happened"), "{said:#?}");
    session.turn("and then").await;
    assert_eq!(told(&bench).join("\n").matches("[host note]").count(), 1);
    assert_eq!(bench.ledger().lines(), ["effect"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_22_a_rewind_keeps_the_receipt_and_says_what_it_does_not_undo() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    bench
        .script
        .calls(&[("write_file", &write("notes.txt", "one"))])
        .says("written");
    session.turn("write it").await;
    let command = format!("{}; kill -9 $PPID", bench.ledger().append("effect"));
    bench.script.runs(&command).says("its outcome is unknown");
    session.turn("run it").await;
    let attempt = session.open_attempt().await;
    let (log, recovery) = (session.log_bytes(), session.recovery().await);

    let reply = session
        .rewind(session.message("run it").await)
        .await
        .unwrap();
    assert_eq!(reply.text, "run it");
    assert_eq!(reply.kept.len(), 1);
    assert_eq!(
        (reply.kept[0].tool.as_str(), reply.kept[0].state.as_str()),
        ("shell", "unknown")
    );
    assert_eq!(reply.kept[0].attempt_id, attempt);
    assert!(session.log_bytes().starts_with(&log));
    assert_eq!(session.recovery().await, recovery);
    assert_eq!(
        session.kinds().await,
        ["user", "tool", "assistant", "rewound"]
    );
    let frames = session
        .until(
            "the rewind",
            |event| matches!(event, Event::Message { item } if item.kind == "rewound"),
        )
        .await;
    assert!(
        frames
            .iter()
            .any(|frame| matches!(frame.event, Event::Rewound { .. }))
    );

    bench.script.runs("true");
    session.turn("something else").await;
    assert!(
        bench
            .script
            .last_result()
            .starts_with("blocked: recovery_required")
    );
    assert_eq!(told(&bench), ["write it", "something else"]);
    session.act(Action::Dismiss, &attempt, "").await.unwrap();
    session.turn("go on").await;
    assert!(
        told(&bench)[2].contains("go on without knowing"),
        "{:#?}",
        told(&bench)
    );

    // Everything back: the message is offered again and the file stays.
    let first = session.message("write it").await;
    let reply = session.rewind(first).await.unwrap();
    let subjects: Vec<&str> = reply.kept.iter().map(|kept| kept.tool.as_str()).collect();
    assert_eq!(
        (reply.text.as_str(), subjects),
        ("write it", vec!["write_file", "shell"])
    );
    assert!(reply.kept[0].subject.contains("notes.txt"));
    let items = session.items().await;
    assert_eq!((items.len(), items[0].kept.len()), (1, 2));
    assert_eq!(
        std::fs::read_to_string(bench.workspace().join("notes.txt")).unwrap(),
        "one"
    );
    assert_eq!(
        session.rewind(first).await.unwrap_err().code,
        "rewind_target_unknown"
    );
    session.turn("anew").await;
    assert_eq!(told(&bench).last().unwrap(), "anew");
    assert_eq!(bench.ledger().lines(), ["effect"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_06_a_providers_id_that_was_taken_back_is_not_used_again() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    bench.script.calls(&[("list_dir", r#"{"path":"."}"#)]);
    session.turn("look").await;
    let first = session.tools().await.remove(0).id;
    session.rewind(session.message("look").await).await.unwrap();
    bench.script.calls(&[("list_dir", r#"{"path":"."}"#)]);
    session.turn("look").await;
    let second = session.tools().await.remove(0).id;
    assert_ne!(first, second);
    let results = bench.script.results();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0].0, second);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_is_refused_with_a_code_while_anything_runs_or_waits() {
    let bench = Bench::new();
    let session = bench.session("ask").await;
    let refused = async |session: &Session| {
        let compact = session.host.compact(&session.selector).await.unwrap_err();
        let rewind = session.rewind(2).await.unwrap_err();
        let fork = session.host.fork(&session.selector).await.unwrap_err();
        (compact.code, rewind.code, fork.code)
    };
    let same = |code: &str| (code.to_owned(), code.to_owned(), code.to_owned());
    let empty = session.host.compact(&session.selector).await.unwrap_err();
    assert_eq!(empty.code, "nothing_to_compact");
    bench.script.runs("true");
    session.submit("go").await;
    let prompt = session.prompt().await;
    assert_eq!(refused(&session).await, same("session_busy"));
    // The same question, after its turn: it outlived the host.
    session.host.close().await;
    let mut session = bench.of(bench.host(), &session.id);
    session.prompt().await;
    let log = session.log_bytes();
    assert_eq!(refused(&session).await, same("prompt_pending"));
    assert_eq!(session.log_bytes(), log);
    session
        .answer(&session.prompts().await[0], false)
        .await
        .unwrap();
    session.idle().await;
    let model = bench.script.live();
    session.host.compact(&session.selector).await.unwrap();
    assert_eq!(refused(&session).await, same("session_busy"));
    assert_eq!(
        session.try_submit("x").await.unwrap_err().code,
        "session_busy"
    );
    model.send(finished("the summary", Vec::new())).unwrap();
    let done = session
        .until(
            "its end",
            |event| matches!(event, Event::TurnDone { status, .. } if status == "completed"),
        )
        .await;
    assert!(!done.is_empty());
    assert_eq!(
        session
            .host
            .compact(&session.selector)
            .await
            .unwrap_err()
            .code,
        "nothing_to_compact"
    );
    drop(prompt);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_13_a_compaction_shows_as_thinking_and_stop_ends_it_without_a_trace() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    session.turn("go").await;
    let before = session.status().await.runtime_state.unwrap();
    let log = session.log_bytes();
    let model = bench.script.live();
    let started = session.host.compact(&session.selector).await.unwrap();
    let state = session.status().await.runtime_state.unwrap();
    assert_eq!(
        (state.phase, state.activity),
        (Phase::Executing, Activity::Thinking)
    );
    assert_eq!(
        (state.turn_id.as_str(), state.turn_status),
        (started.turn_id.as_str(), TurnStatus::InProgress)
    );
    assert!(state.cancellable);
    model
        .send(Ok(ModelEvent::Text("half a".to_owned())))
        .unwrap();
    let late = Cancel {
        turn_id: Some(before.turn_id.clone()),
    };
    let late = session.host.cancel(&session.selector, late).await.unwrap();
    assert_eq!(late, Cancelled::AlreadyEnded, "that turn is over");
    session.stop().await;
    let ended = session.until_done().await;
    assert_eq!(ends(&ended)[0].0, "cancelled");
    assert_eq!(ended.last().unwrap().turn_id, started.turn_id);
    let _ = model.send(finished("too late", Vec::new()));
    let after = session.idle().await.runtime_state.unwrap();
    assert_eq!(
        (after.turn_id, after.turn_status),
        (before.turn_id, before.turn_status)
    );
    assert_eq!(session.log_bytes(), log);
    assert_eq!(session.compact().await[0].0, "completed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_summary_that_is_none_changes_nothing() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    session.turn("go").await;
    let log = session.log_bytes();
    let cut_short = ModelReply {
        text: "we began to".to_owned(),
        finish_reason: "length".to_owned(),
        ..ModelReply::default()
    };
    let replies = [
        (vec![finished(" \n", Vec::new())], "summary_empty"),
        (
            vec![Ok(ModelEvent::Finished(cut_short))],
            "summary_cut_short",
        ),
        (
            vec![Ok(ModelEvent::Text("we".to_owned()))],
            "provider_incomplete",
        ),
    ];
    for (items, code) in replies {
        bench.script.step(crate::script::Step::Items(items));
        assert_eq!(
            session.compact().await,
            [("failed".to_owned(), code.to_owned())]
        );
        assert_eq!(session.status().await.last_error.unwrap().code, code);
        assert_eq!(session.log_bytes(), log);
    }
    session.turn("go on").await;
    assert_eq!(told(&bench), ["go", "go on"]);
}

#[test]
fn tr_22_a_host_that_dies_while_the_model_is_asked_has_changed_nothing() {
    let bench = Bench::new();
    let first = runtime();
    let (id, log) = first.block_on(async {
        let (session, _) = with_unknown(&bench, "full").await;
        let log = session.log_bytes();
        let model = bench.script.live();
        session.host.compact(&session.selector).await.unwrap();
        model
            .send(Ok(ModelEvent::Text("half a summary".to_owned())))
            .unwrap();
        std::mem::forget(model);
        (session.id, log)
    });
    drop(first);
    runtime().block_on(async {
        let mut session = bench.of(bench.host(), &id);
        session.open_attempt().await;
        assert!(session.log_bytes().starts_with(&log));
        assert_eq!(session.kinds().await, ["user", "tool", "assistant"]);
        assert_eq!(session.compact().await[0].0, "completed");
        session.open_attempt().await;
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_22_c11_a_torn_record_is_as_if_it_had_not_been_asked_for() {
    for rewind in [true, false] {
        let bench = Bench::new();
        let (mut session, _) = with_unknown(&bench, "full").await;
        let whole = session.fold();
        let seen = session.kinds().await;
        let from = session.log_bytes().len();
        if rewind {
            session.rewind(session.message("go").await).await.unwrap();
        } else {
            session.compact().await;
        }
        let changed = session.kinds().await;
        let bytes = session.log_bytes();
        session.host.close().await;
        let step = (bytes.len() - from).div_ceil(scaled(8)).max(1);
        for length in (from..=bytes.len())
            .step_by(step)
            .chain([bytes.len() - 1, bytes.len()])
        {
            std::fs::write(session.folder.join("log.jsonl"), &bytes[..length]).unwrap();
            let again = bench.of(bench.host(), &session.id);
            again.open_attempt().await;
            let expected = if length == bytes.len() {
                &changed
            } else {
                &seen
            };
            assert_eq!(
                &again.kinds().await,
                expected,
                "{length} of {}",
                bytes.len()
            );
            let now = again.fold();
            assert!(
                whole.attempts().eq(now.attempts()),
                "rewind {rewind}, {length}"
            );
            assert_eq!(now.unresolved(&InFlight::new()), 1);
            again.host.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_48_tr_22_what_cannot_be_stored_is_refused_and_changes_nothing() {
    let bench = Bench::new();
    let (mut session, attempt) = with_unknown(&bench, "full").await;
    let seq = session.message("go").await;
    let seen = session.kinds().await;
    let broken = || Plan {
        fault: Fault::Fail(std::io::ErrorKind::StorageFull),
        first: 1,
        last: u64::MAX,
        only: None,
    };
    bench.storage.inject(broken());
    assert_eq!(session.rewind(seq).await.unwrap_err().status, 507);
    assert_eq!(session.kinds().await, seen);
    bench.storage.heal();
    let model = bench.script.live();
    session.host.compact(&session.selector).await.unwrap();
    bench.storage.inject(broken());
    model.send(finished("the summary", Vec::new())).unwrap();
    assert_eq!(ends(&session.until_done().await)[0].0, "failed");
    assert_eq!(session.kinds().await, seen);
    bench.storage.heal();
    assert_eq!(session.compact().await[0].0, "completed");
    assert_eq!(session.rewind(seq).await.unwrap().text, "go");
    assert_eq!(session.open_attempt().await, attempt);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_22_tr_18_a_command_that_runs_on_is_adopted_after_its_call_was_taken_back() {
    let bench = Bench::new();
    let stay = bench.outside("stay");
    std::fs::write(&stay, "").unwrap();
    let command = format!(
        "{}; while test -e {}; do sleep 0.02; done; echo the end",
        bench.ledger().append("effect"),
        holdfast_testkit::ledger::quoted(&stay.to_string_lossy())
    );
    let first = std::thread::scope(|scope| {
        scope
            .spawn(|| {
                let runtime = runtime();
                let id = runtime.block_on(async {
                    let session = bench.session("full").await;
                    bench.script.runs(&command);
                    session.submit("run it").await;
                    eventually("the effect", || {
                        (bench.ledger().count("effect") == 1).then_some(())
                    })
                    .await;
                    session.id
                });
                drop(runtime);
                id
            })
            .join()
            .unwrap()
    });
    let mut session = bench.of(bench.host(), &first);
    assert_eq!(session.status().await.background_jobs, 1);
    let reply = session
        .rewind(session.message("run it").await)
        .await
        .unwrap();
    assert_eq!(reply.kept[0].state, "in_flight");
    assert_eq!(session.host.jobs(&session.selector).await.unwrap().len(), 1);
    std::fs::remove_file(&stay).unwrap();
    session
        .when("its end", |status| status.background_jobs == 0)
        .await;
    assert_eq!(session.items().await[0].kept[0].state, "completed");
    session.turn("what now").await;
    let said = told(&bench);
    assert!(
        said[0].contains("the end") && said[0].contains("[host note]"),
        "{said:#?}"
    );
    session.turn("and now").await;
    assert_eq!(told(&bench).join("\n").matches("[host note]").count(), 1);
    assert_eq!(bench.ledger().lines(), ["effect"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_01_the_sessions_own_log_alone_carries_the_evidence() {
    let bench = Bench::new();
    let (session, attempt) = with_unknown(&bench, "full").await;
    let (inspection, _) = session.inspect(&attempt).await;
    session
        .act(Action::Reject, &attempt, &inspection)
        .await
        .unwrap();
    let before = session.recovery().await;
    session.host.close().await;
    for entry in std::fs::read_dir(&session.folder).unwrap() {
        let path = entry.unwrap().path();
        match path.file_name().and_then(|name| name.to_str()) {
            // The effect folders are the commands' own traces, which are looked at.
            Some("log.jsonl" | "lock" | "effects") => {}
            _ if path.is_dir() => std::fs::remove_dir_all(&path).unwrap(),
            _ => std::fs::remove_file(&path).unwrap(),
        }
    }
    let again = bench.of(bench.host(), &session.id);
    assert_eq!(again.open_attempt().await, attempt);
    let after = again.recovery().await;
    assert_eq!(after.calls, before.calls);
    assert_eq!(after.statistics, before.statistics);
}
