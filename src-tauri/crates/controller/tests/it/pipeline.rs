//! From a proposal to a stored result: TR-03…TR-09, TR-49.

use holdfast_api::event::Event;
use holdfast_domain::canonical::sha256_hex;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::transcript::outbound::OutboundMessage;
use holdfast_domain::transcript::record::{Receipt, Record, ResultSource, ToolResult};
use holdfast_files::fault::Operation;
use holdfast_testkit::ledger::quoted;

use crate::bench::{Bench, ends};
use crate::script::{shell, write};

fn receipts(log: &[Record]) -> Vec<&Receipt> {
    log.iter()
        .filter_map(|record| match record {
            Record::Receipt(receipt) => Some(receipt),
            _ => None,
        })
        .collect()
}

fn results(log: &[Record]) -> Vec<&ToolResult> {
    log.iter()
        .filter_map(|record| match record {
            Record::ToolResult(result) => Some(result),
            _ => None,
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_03_the_arguments_are_kept_byte_for_byte() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let texts = [
        "{\"command\" :\t\"true\",\n \"timeout_s\": 5 }",
        "{\"command\":\"printf '\\u00e9\\ud83e\\udd80'\"}",
        "{ not json at all \u{1F980} \\",
        "",
        "{\"command\":\"true\",\"command\":\"false\"}",
    ];
    for text in texts {
        bench.script.calls(&[("shell", text)]);
        session.turn("go").await;
    }
    let kept: Vec<String> = session
        .log()
        .into_iter()
        .filter_map(|record| match record {
            Record::AssistantMessage(message) => message.calls.first().cloned(),
            _ => None,
        })
        .map(|call| call.arguments)
        .collect();
    assert_eq!(kept, texts);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_04_what_is_refused_has_no_receipt_and_keeps_raw_text_and_error() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let deep = format!("{{\"command\":{}1{}}}", "[".repeat(70), "]".repeat(70));
    let refused: Vec<(&str, String, &str)> = vec![
        ("shell", "{".to_owned(), "arguments_invalid"),
        ("shell", "[]".to_owned(), "arguments_not_object"),
        (
            "shell",
            r#"{"command":"true","command":"true"}"#.to_owned(),
            "arguments_duplicate_key",
        ),
        (
            "shell",
            r#"{"command":9007199254740993}"#.to_owned(),
            "arguments_unsafe_integer",
        ),
        (
            "shell",
            r#"{"command":"\ud800"}"#.to_owned(),
            "arguments_lone_surrogate",
        ),
        ("shell", deep, "arguments_too_deep"),
        (
            "shell",
            r#"{"command":"true","cwd":"/"}"#.to_owned(),
            "arguments_wrong",
        ),
        ("shell", r#"{"command":" "}"#.to_owned(), "arguments_wrong"),
        ("write_file", write("../escape", "x"), "path_outside"),
        ("no_such_tool", "{}".to_owned(), "unknown_tool"),
    ];
    let mut codes = Vec::new();
    for (name, text, _) in &refused {
        bench.script.calls(&[(name, text)]);
        assert_eq!(
            ends(&session.turn("go").await),
            [("completed".to_owned(), String::new())]
        );
        assert!(
            bench.script.last_result().starts_with("refused: "),
            "{text}"
        );
    }
    for (tool, (_, text, _)) in session.tools().await.iter().zip(&refused) {
        assert_eq!(tool.state, "not_started", "{text}");
        assert_eq!(tool.attempt_id, "", "{text}");
        assert!(!tool.output.is_empty());
        codes.push(tool.code.clone().unwrap());
    }
    let wanted: Vec<&str> = refused.iter().map(|(_, _, code)| *code).collect();
    assert_eq!(codes, wanted);
    let log = session.log();
    assert!(receipts(&log).is_empty());
    assert!(session.recovery().await.calls.is_empty());
    assert!(!bench.outside("escape").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_04_read_only_mode_refuses_before_a_receipt() {
    let bench = Bench::new();
    let mut session = bench.session("read-only").await;
    let ledger = bench.ledger();
    bench.script.runs(&ledger.append("never"));
    session.turn("go").await;
    assert_eq!(
        session.tools().await[0].code.as_deref(),
        Some("mode_read_only")
    );
    assert!(receipts(&session.log()).is_empty());
    assert!(ledger.lines().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_05_a_command_finds_its_receipt_and_start_in_the_log() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let log = quoted(&session.folder.join("log.jsonl").to_string_lossy());
    let ledger = bench.ledger();
    let command = format!(
        "for kind in tool_started {}; do grep -c \"\\\"kind\\\":\\\"$kind\\\"\" {log}; done >> {}",
        "receipt",
        quoted(&ledger.path().to_string_lossy())
    );
    bench.script.runs(&command);
    session.turn("go").await;
    assert_eq!(ledger.lines(), ["1", "1"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_05_receipt_and_start_come_before_the_announcement_and_the_result() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    bench.script.runs("true");
    let frames = session.turn("go").await;
    let kinds: Vec<String> = session
        .log()
        .iter()
        .map(|record| record.kind().to_owned())
        .collect();
    let place = |kind: &str| kinds.iter().position(|have| have == kind).unwrap();
    assert_eq!(place("tool_started"), place("receipt") + 1);
    assert!(place("tool_started") < place("tool_result"));
    // Nothing on the way shows a call that this host runs as uncertain.
    for frame in &frames {
        if let Event::ToolDispatch { tool } | Event::ToolStarted { tool } = &frame.event {
            assert_eq!(tool.state, "in_flight");
        }
        if let Event::RuntimeState { runtime_state, .. } = &frame.event {
            assert_eq!(runtime_state.unresolved, 0);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_05_a_tool_call_waits_for_two_syncs_at_most() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let mut counts = Vec::new();
    for calls in [0, 1, 2, 3] {
        let before = bench.storage.count(Operation::Sync);
        for n in 0..calls {
            bench.script.runs(&format!("echo {n}-{calls}"));
        }
        bench.script.says("that was it");
        session.turn("go").await;
        counts.push(bench.storage.count(Operation::Sync) - before);
    }
    // The first turn stores the system prompt in the same write as the message, so it is no more.
    for (calls, count) in counts.iter().enumerate() {
        // One for the whole output beside the log, which is no sync of the log.
        let most = counts[0] + 3 * calls as u64;
        assert!(
            *count <= most,
            "{calls} calls: {count} syncs, without calls {}",
            counts[0]
        );
    }
    let log_syncs_of_a_call = session
        .log()
        .iter()
        .filter(|record| matches!(record, Record::Receipt(_) | Record::ToolResult(_)))
        .count();
    assert_eq!(log_syncs_of_a_call, 12);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_05_an_edit_waits_for_two_syncs_of_the_log() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    session.turn("warm").await;
    let before = bench.storage.count(Operation::Sync);
    session.turn("no call").await;
    let without = bench.storage.count(Operation::Sync) - before;
    bench.script.calls(&[("write_file", &write("a", "1"))]);
    let before = bench.storage.count(Operation::Sync);
    session.turn("one call").await;
    assert_eq!(bench.storage.count(Operation::Sync) - before, without + 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_06_identity_and_call_ids_are_ours() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    // The same provider id in every reply, as some servers do.
    bench
        .script
        .runs("echo 1")
        .runs("echo 2")
        .calls(&[("write_file", &write("f", "x"))]);
    let turn_id = session.submit("go").await;
    session.until_done().await;
    let log = session.log();
    let receipts = receipts(&log);
    let mut ids: Vec<&str> = receipts
        .iter()
        .map(|r| r.identity.call_id.as_str())
        .collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), 3);
    for (place, receipt) in receipts.iter().enumerate() {
        assert_eq!(receipt.identity.session_id, session.id);
        assert_eq!(receipt.identity.turn_id, turn_id);
        assert_eq!(receipt.identity.step as usize, place + 1);
        assert_eq!(receipt.identity.attempt_id.len(), 32);
        assert_eq!(receipt.idempotency_key, receipt.identity.idempotency_key());
    }
    assert_eq!(
        receipts[0].identity.resource_scope,
        format!("session:{}", session.id)
    );
    assert_eq!(
        receipts[2].identity.resource_scope,
        format!("file:{}", bench.workspace().join("f").display())
    );
    assert_eq!(
        receipts[0].identity.argument_digest,
        sha256_hex(br#"{"command":"echo 1"}"#)
    );
    // The same id goes out in the call and in its result.
    let request = bench.script.requests().pop().unwrap();
    let called: Vec<String> = request
        .messages
        .iter()
        .filter_map(|message| match message {
            OutboundMessage::Assistant { calls, .. } => calls.first().map(|call| call.id.clone()),
            _ => None,
        })
        .collect();
    let answered: Vec<String> = bench
        .script
        .results()
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    assert_eq!(called, answered);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_07_a_command_gets_its_key() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let ledger = bench.ledger();
    let file = quoted(&ledger.path().to_string_lossy());
    bench
        .script
        .runs(&format!("echo \"$HOLDFAST_IDEMPOTENCY_KEY\" >> {file}"));
    session.turn("go").await;
    let log = session.log();
    assert_eq!(ledger.lines(), [receipts(&log)[0].idempotency_key.clone()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_08_a_result_is_durable_with_its_digest_before_it_is_told() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    bench.script.runs("echo out; exit 3");
    session.submit("go").await;
    session
        .until("a result", |event| {
            matches!(event, Event::ToolResult { .. })
        })
        .await;
    let log = session.log();
    let result = results(&log)[0].clone();
    assert_eq!(result.source, ResultSource::Live);
    assert_eq!(result.digest, sha256_hex(result.text.as_bytes()));
    session.until_done().await;
    assert_eq!(bench.script.last_result(), result.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_09_failed_means_that_it_ran_and_returned_an_error() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    bench
        .script
        .runs("echo broken >&2; exit 7")
        .calls(&[("read_file", r#"{"path":"none"}"#)]);
    session.turn("go").await;
    let tools = session.tools().await;
    assert_eq!(
        (tools[0].state.as_str(), tools[0].exit_code),
        ("failed", Some(7))
    );
    assert!(tools[0].output.contains("broken"));
    assert_eq!(tools[1].state, "failed");
    let log = session.log();
    assert!(
        results(&log)
            .iter()
            .all(|result| result.state == AttemptState::Failed)
    );
    assert!(session.recovery().await.calls.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn results_of_several_tools_stay_with_their_calls() {
    let bench = Bench::new();
    std::fs::write(bench.workspace().join("slow"), "slow content").unwrap();
    std::fs::write(bench.workspace().join("fast"), "fast content").unwrap();
    let mut session = bench.session("full").await;
    bench.script.calls(&[
        ("read_file", r#"{"path":"slow"}"#),
        ("shell", &shell("echo first")),
        ("read_file", r#"{"path":"fast"}"#),
        ("shell", &shell("echo second")),
    ]);
    session.turn("go").await;
    let texts: Vec<String> = bench
        .script
        .results()
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(texts.len(), 4);
    for (text, part) in texts
        .iter()
        .zip(["slow content", "first", "fast content", "second"])
    {
        assert!(text.contains(part), "{part} is not in {text:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_49_calls_with_effects_run_one_after_the_other_in_order() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let file = quoted(&bench.ledger().path().to_string_lossy());
    let commands: Vec<String> = (0..4)
        .map(|n| {
            shell(&format!(
                "echo begin {n} >> {file}; read line < /dev/null; echo end {n} >> {file}"
            ))
        })
        .collect();
    let calls: Vec<(&str, &str)> = commands
        .iter()
        .map(|text| ("shell", text.as_str()))
        .collect();
    bench.script.calls(&calls);
    session.turn("go").await;
    let wanted: Vec<String> = (0..4)
        .flat_map(|n| [format!("begin {n}"), format!("end {n}")])
        .collect();
    assert_eq!(bench.ledger().lines(), wanted);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_49_siblings_behind_an_unresolved_call_are_blocked() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let ledger = bench.ledger();
    bench.script.calls(&[
        ("shell", &shell("kill -9 $PPID")),
        ("read_file", r#"{"path":"none"}"#),
        ("shell", &shell(&ledger.append("sibling"))),
    ]);
    session.turn("go").await;
    let tools = session.tools().await;
    assert_eq!(tools[0].state, "unknown");
    assert_eq!(tools[1].state, "failed");
    assert_eq!(tools[2].code.as_deref(), Some("recovery_required"));
    assert!(ledger.lines().is_empty());
}
