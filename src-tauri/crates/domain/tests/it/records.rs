//! Records as text: every kind there and back, and what a reader makes of newer ones.

use std::collections::BTreeSet;

use holdfast_domain::recovery::attempt::Resolution;
use holdfast_domain::recovery::barrier::InFlight;
use holdfast_domain::recovery::file::FileIntent;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{EndedBy, ExitReceipt, StartClaim};
use holdfast_domain::transcript::record::*;
use holdfast_domain::transcript::session::Session;
use holdfast_domain::transcript::session::Turn;
use serde_json::{Value, json};

use crate::log::{
    Log, changed, exit, identity, inspected, open_failure, process, receipt, resolved, result,
};

const ODD: &str = "a\u{2028}b\u{2029}c\u{0}d\"\\\n😀\u{feff}";

/// One record of every kind, with its optional parts.
fn one_of_each() -> Vec<Record> {
    let file = FileIntent {
        version: 1,
        path: ODD.to_owned(),
        resolved_path: "/w/f".to_owned(),
        before: String::new(),
        after: "x".to_owned(),
        encoding: "utf-8".to_owned(),
        existed: false,
    };
    vec![
        SessionCreated {
            session_id: "s".to_owned(),
            title: ODD.to_owned(),
            writes: vec!["receipt".to_owned()],
            ..SessionCreated::default()
        }
        .into(),
        SettingsChanged {
            title: Some(ODD.to_owned()),
            archived: Some(true),
            ..SettingsChanged::default()
        }
        .into(),
        SystemPrompt {
            text: ODD.to_owned(),
        }
        .into(),
        UserMessage {
            turn_id: "t1".to_owned(),
            text: ODD.to_owned(),
            submission_id: "k".to_owned(),
            steer_item: String::new(),
        }
        .into(),
        TurnStarted {
            turn_id: "t1".to_owned(),
            continuation: true,
        }
        .into(),
        AssistantMessage {
            turn_id: "t1".to_owned(),
            step: 1,
            text: ODD.to_owned(),
            reasoning: ODD.to_owned(),
            calls: vec![ProposedCall {
                call_id: "c1".to_owned(),
                provider_id: ODD.to_owned(),
                name: "shell".to_owned(),
                arguments: "{\"a\":1,\"a\":2".to_owned(),
            }],
            finish_reason: "tool_calls".to_owned(),
            usage: Some(Usage {
                input: 1,
                output: 2,
                cached_input: 3,
                reasoning: 4,
            }),
            partial: true,
        }
        .into(),
        PromptAsked {
            prompt_id: "p".to_owned(),
            diff: Some(ODD.to_owned()),
            file: Some(file.clone()),
            earlier: Some("a".to_owned()),
            scopes: vec!["once".to_owned()],
            ..PromptAsked::default()
        }
        .into(),
        PromptAnswered {
            prompt_id: "p".to_owned(),
            generation: 1,
            allow: true,
            scope: "once".to_owned(),
            reason: ODD.to_owned(),
        }
        .into(),
        CallRefused {
            turn_id: "t1".to_owned(),
            call_id: "c1".to_owned(),
            code: "denied".to_owned(),
            text: ODD.to_owned(),
        }
        .into(),
        Receipt {
            file: Some(file),
            ..receipt("a", "c1", "write_file")
        }
        .into(),
        FileCheckpoint {
            attempt_id: "a".to_owned(),
            resolved_path: ODD.to_owned(),
            log_sha256: "0f".repeat(32),
        }
        .into(),
        Superseded {
            attempt_id: "a".to_owned(),
            by: "b".to_owned(),
        }
        .into(),
        ToolStarted {
            attempt_id: "a".to_owned(),
            boot_id: "boot".to_owned(),
        }
        .into(),
        NotStarted {
            attempt_id: "a".to_owned(),
            reason: ODD.to_owned(),
        }
        .into(),
        ToolResult {
            output: Some(SpillRef {
                name: "o".to_owned(),
                length: 7,
            }),
            diff: Some(ODD.to_owned()),
            exit: Some(ExitReceipt {
                signal: Some(9),
                spawn_error: Some(ODD.to_owned()),
                survivors: vec![process(1, "x")],
                ..exit("a", EndedBy::HostLoss, None)
            }),
            truncated: true,
            ..open_failure("a", ODD)
        }
        .into(),
        AttemptChanged {
            stragglers: vec![process(3, ODD)],
            ..changed("a", AttemptState::Unknown)
        }
        .into(),
        AttemptPresumed {
            identity: identity("z", "c9", "shell"),
            reason: ODD.to_owned(),
            supervised: true,
        }
        .into(),
        SyntheticResult {
            turn_id: "t1".to_owned(),
            call_id: "c1".to_owned(),
            attempt_id: Some("a".to_owned()),
            text: ODD.to_owned(),
        }
        .into(),
        LateEvidence {
            result: result("a", AttemptState::Completed, ODD),
        }
        .into(),
        inspected("a", "i1").into(),
        resolved("a", Resolution::Dismiss).into(),
        JobStarted {
            attempt_id: "a".to_owned(),
            by: JobStarted::PERSON.to_owned(),
            text: ODD.to_owned(),
        }
        .into(),
        JobEnded {
            attempt_id: "a".to_owned(),
            reason: ODD.to_owned(),
        }
        .into(),
        HostNote {
            text: ODD.to_owned(),
            attempts: vec!["a".to_owned()],
        }
        .into(),
        TurnEnded {
            turn_id: "t1".to_owned(),
            status: "failed".to_owned(),
            code: "x".to_owned(),
            message: ODD.to_owned(),
        }
        .into(),
        Compacted {
            upto_seq: 4,
            summary: ODD.to_owned(),
            usage: Some(Usage::default()),
        }
        .into(),
        Rewound {
            to_seq: 400,
            reason: ODD.to_owned(),
        }
        .into(),
        InboxQueued {
            item_id: "i1".to_owned(),
            key: "k2".to_owned(),
            text: ODD.to_owned(),
            intent: Intent::Steer,
        }
        .into(),
        InboxEdited {
            item_id: "i1".to_owned(),
            text: Some(ODD.to_owned()),
            intent: Some(Intent::Followup),
        }
        .into(),
        InboxMoved {
            item_id: "i1".to_owned(),
            position: 2,
        }
        .into(),
        InboxDeleted {
            item_id: "i1".to_owned(),
        }
        .into(),
        InboxReturned {
            turn_id: "t1".to_owned(),
        }
        .into(),
        InboxPaused {
            recovered: true,
            reason: "host_restarted".to_owned(),
        }
        .into(),
        InboxResumed {
            reason: "person".to_owned(),
        }
        .into(),
        Restarted {
            boot_id: "boot".to_owned(),
            attempts: vec!["a".to_owned()],
        }
        .into(),
        WriteReset {
            not_started: vec!["a".to_owned()],
            lost_records: 2,
        }
        .into(),
    ]
}

#[test]
fn tr_45_c11_every_kind_goes_there_and_back_on_one_line() {
    let records = one_of_each();
    let kinds: BTreeSet<_> = records
        .iter()
        .map(|record| record.kind().to_owned())
        .collect();
    let known: BTreeSet<_> = Record::KINDS
        .iter()
        .map(|kind| (*kind).to_owned())
        .collect();
    assert_eq!(kinds, known, "one of each");
    assert_eq!(known.len(), Record::KINDS.len(), "no kind twice");
    for record in records {
        let text = record.payload().unwrap();
        assert!(!text.contains('\n') && !text.contains('\r'), "{text}");
        assert_eq!(Record::parse(record.kind(), &text), record);
    }
}

#[test]
fn tr_45_unknown_fields_of_known_kinds_are_ignored() {
    for record in one_of_each() {
        let mut payload: Value = serde_json::from_str(&record.payload().unwrap()).unwrap();
        payload["of_a_newer_version"] = json!({ "a": [1, null] });
        assert_eq!(Record::parse(record.kind(), &payload.to_string()), record);
    }
}

#[test]
fn tr_45_a_known_kind_that_does_not_fit_is_kept_as_it_is() {
    for kind in Record::KINDS {
        for payload in [
            json!(7),
            json!([1]),
            json!({"attempt_id": {}, "turn_id": [], "text": 1,
            "identity": 1, "prompt_id": 1, "result": 1, "session_id": 1, "title": 1,
            "not_started": 1, "boot_id": 1, "summary": 1, "to_seq": "x", "item_id": 1, "reason": 1}),
        ] {
            // A struct of which every field has a default also reads from an array.
            let record = Record::parse(kind, &payload.to_string());
            if payload.is_array() && !matches!(record, Record::Other { .. }) {
                continue;
            }
            assert_eq!(
                record,
                Record::Other {
                    kind: (*kind).to_owned(),
                    payload: payload.clone(),
                }
            );
            assert_eq!(record.kind(), *kind);
            assert_eq!(record.payload().unwrap(), payload.to_string());
        }
    }
    let broken = Record::parse("receipt", "{");
    assert_eq!(
        broken,
        Record::Other {
            kind: "receipt".to_owned(),
            payload: Value::Null,
        }
    );
}

#[test]
fn tr_45_unknown_kinds_are_kept_and_change_nothing_else() {
    let mut plain = Log::new();
    let mut strewn = Log::new();
    for record in one_of_each().into_iter().skip(1) {
        let foreign = Record::parse(
            "from_the_future",
            "{\"attempt_id\":\"a\",\"state\":\"gone\"}",
        );
        assert_eq!(foreign.kind(), "from_the_future");
        assert_eq!(
            foreign.payload().unwrap(),
            "{\"attempt_id\":\"a\",\"state\":\"gone\"}"
        );
        strewn.add(foreign);
        plain.add(record.clone());
        strewn.add(record);
    }
    assert_eq!(
        strewn.session.unknown_kinds,
        BTreeSet::from(["from_the_future".to_owned()])
    );
    assert_eq!(plain.session.items.len(), strewn.session.items.len());
    // Places in the log are others; nothing else is.
    let turn = |log: &Log| {
        let turn = log.session.turn.clone().unwrap();
        Turn {
            started_seq: 0,
            ..turn
        }
    };
    assert_eq!(turn(&plain), turn(&strewn));
    let states = |log: &Log| {
        log.session
            .attempts()
            .map(|attempt| {
                (
                    attempt.identity.clone(),
                    attempt.state,
                    attempt.result.clone(),
                )
            })
            .collect::<Vec<_>>()
    };
    assert_eq!(states(&plain), states(&strewn));
    assert_eq!(plain.session.answer("c1"), strewn.session.answer("c1"));
}

#[test]
fn tr_45_records_about_nothing_known_are_harmless() {
    let mut session = Session::default();
    for (place, record) in one_of_each().into_iter().rev().enumerate() {
        session.apply(&Entry {
            seq: place as u64 + 1,
            at: place as u64,
            record,
        });
    }
    assert_eq!(session.last_seq, Record::KINDS.len() as u64);
    assert!(session.attempt("z").is_some());
}

#[test]
fn tr_45_old_payloads_without_later_fields_are_read() {
    let read = Record::parse(
        "tool_result",
        r#"{"attempt_id":"a","state":"completed","text":"x","digest":"d"}"#,
    );
    let Record::ToolResult(read) = read else {
        panic!("{read:?}")
    };
    assert_eq!(read.source, ResultSource::Live);
    assert_eq!(read.exit, None);
    for kind in [
        "user_message",
        "assistant_message",
        "turn_ended",
        "prompt_asked",
    ] {
        assert!(!matches!(Record::parse(kind, "{}"), Record::Other { .. }));
    }
}

#[test]
fn tr_12_a_state_of_a_newer_version_loads_as_unknown_and_blocks() {
    let read = Record::parse(
        "attempt_changed",
        r#"{"attempt_id":"a","state":"hibernating","reason":"of a newer version"}"#,
    );
    let mut log = Log::with_attempt(AttemptState::Started, false);
    log.add(read);
    assert_eq!(log.attempt("a").state, AttemptState::Unknown);
    assert_eq!(log.session.unresolved(&InFlight::new()), 1);

    let read = Record::parse(
        "tool_result",
        r#"{"attempt_id":"a","state":"half_done","text":"x","digest":"d"}"#,
    );
    log.add(read);
    assert_eq!(log.attempt("a").state, AttemptState::Unknown);
    assert_eq!(log.session.unresolved(&InFlight::new()), 1);
}

#[test]
fn tr_12_every_state_has_one_word() {
    let words: Vec<_> = AttemptState::ALL
        .into_iter()
        .map(|state| {
            let word = serde_json::to_value(state).unwrap();
            assert_eq!(word, state.as_str());
            assert_eq!(serde_json::from_value::<AttemptState>(word).unwrap(), state);
            assert_eq!(AttemptState::parse(state.as_str()), Some(state));
            state.as_str()
        })
        .collect();
    assert_eq!(
        words,
        [
            "pending",
            "started",
            "running",
            "completed",
            "failed",
            "cancelled",
            "not_started",
            "unknown",
            "user_confirmed",
            "interrupted",
            "user_dismissed"
        ]
    );
    assert_eq!(AttemptState::parse("Completed"), None);
    assert!(serde_json::from_str::<AttemptState>("7").is_err());
}

#[test]
fn sv_02_receipts_and_claims_have_the_words_of_the_files() {
    for (ended_by, word) in [
        (EndedBy::Itself, "self"),
        (EndedBy::Stop, "stop"),
        (EndedBy::Timeout, "timeout"),
        (EndedBy::HostLoss, "host_loss"),
        (EndedBy::External, "external"),
    ] {
        let stored = serde_json::to_value(exit("a", ended_by, None)).unwrap();
        assert_eq!(stored["ended_by"], word);
        assert_eq!(stored["tree_proof"], "full");
        assert_eq!(stored["code"], Value::Null);
    }
    let claim = StartClaim::Void {
        attempt_id: "a".to_owned(),
        boot_id: "b".to_owned(),
        at: 1,
    };
    assert_eq!(serde_json::to_value(&claim).unwrap()["by"], "void");
}
