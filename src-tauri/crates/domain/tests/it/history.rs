//! Compaction and rewind: what a model gets, what it is told later, and what is kept.

use holdfast_domain::recovery::attempt::Resolution;
use holdfast_domain::recovery::barrier::{InFlight, refuses};
use holdfast_domain::recovery::identity::call_id;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::transcript::notes::{closings, host_note};
use holdfast_domain::transcript::outbound::OutboundMessage;
use holdfast_domain::transcript::record::{
    Compacted, HostNote, PromptAsked, Record, ResultSource, Rewound, SystemPrompt, ToolResult,
};
use holdfast_domain::transcript::session::{Item, Session, Sight};
use holdfast_domain::transcript::view::{check_pairing, outbound, summary_request};

use crate::log::{Log, receipt, result};

use AttemptState as S;

/// Attempt `a` of call `c1` in that state, its turn ended and its call answered.
fn settled(state: S) -> Log {
    let mut log = Log::new();
    log.add(SystemPrompt {
        text: "be careful".to_owned(),
    });
    log.turn("t1").says("t1", 1, &[("c1", "shell")]);
    log.bring_to(state, false);
    log.end("t1", "interrupted");
    close(&mut log);
    log
}

fn close(log: &mut Log) {
    for record in closings(&log.session) {
        log.add(record);
    }
}

fn tell(log: &mut Log) -> String {
    let note = host_note(&log.session);
    if let Some(note) = &note {
        log.add(note.clone());
    }
    note.map(|note| note.text).unwrap_or_default()
}

/// What the outbound view says, without the system prompt.
fn texts(session: &Session) -> Vec<String> {
    outbound(session)
        .iter()
        .filter_map(|message| match message {
            OutboundMessage::System { .. } => None,
            OutboundMessage::User { text } | OutboundMessage::Assistant { text, .. } => {
                Some(text.clone())
            }
            OutboundMessage::Tool { text, .. } => Some(text.clone()),
        })
        .collect()
}

const KEPT: [S; 4] = [
    S::Unknown,
    S::UserConfirmed,
    S::UserDismissed,
    S::Interrupted,
];

#[test]
fn tr_22_c08_a_compaction_keeps_the_receipt_and_no_model_sees_it() {
    for state in KEPT {
        let mut log = settled(state);
        let before = log.attempt("a").clone();
        let statistics = log.session.statistics(&InFlight::new());
        log.compact();
        assert_eq!(log.attempt("a"), &before);
        assert_eq!(log.session.statistics(&InFlight::new()), statistics);
        let blocks = refuses(log.session.attempts(), &InFlight::new(), None).is_some();
        assert_eq!(blocks, state == S::Unknown);
        tell(&mut log);
        log.turn("t2");
        let view = outbound(&log.session);
        assert_eq!(check_pairing(&view), Ok(()));
        assert!(matches!(&view[0], OutboundMessage::System { text } if text == "be careful"));
        let said = texts(&log.session);
        assert!(said[0].contains("\n\nsummary of all up to"), "{said:#?}");
        assert_eq!(said.last().unwrap(), "message of t2");
        let whole = format!("{view:?}");
        for hidden in ["c1", "SUBJECT", "message of t1", "answer 1 of t1"] {
            assert!(!whole.contains(hidden), "{hidden} in {whole}");
        }
    }
}

#[test]
fn tr_22_a_rewind_keeps_the_receipt_and_no_model_sees_it() {
    for state in KEPT {
        let mut log = settled(state);
        let before = log.attempt("a").clone();
        log.rewind("t1");
        assert_eq!(log.attempt("a"), &before);
        let blocks = refuses(log.session.attempts(), &InFlight::new(), None).is_some();
        assert_eq!(blocks, state == S::Unknown);
        assert_eq!(texts(&log.session), Vec::<String>::new());
        assert_eq!(log.session.unanswered().len(), 0);
        assert_eq!(log.session.sight("c1"), Sight::UpTo(5));
        log.turn("t2");
        assert_eq!(texts(&log.session), ["message of t2"]);
        assert_eq!(check_pairing(&outbound(&log.session)), Ok(()));
    }
}

#[test]
fn tr_22_tr_15_what_a_person_says_afterwards_is_told_once_and_pairs_nothing() {
    for rewind in [true, false] {
        for (word, told) in [
            (Resolution::Confirm, "the effect happened"),
            (Resolution::Dismiss, "go on without knowing"),
        ] {
            let mut log = settled(S::Unknown);
            if rewind {
                log.rewind("t1");
            } else {
                log.compact();
            }
            assert_eq!(tell(&mut log), "");
            log.resolve("a", word);
            let note = tell(&mut log);
            assert!(note.contains(told), "{note}");
            assert_eq!(note.matches("\n- ").count(), 1, "{note}");
            assert_eq!(tell(&mut log), "", "once");
            log.turn("t2");
            let view = outbound(&log.session);
            assert_eq!(check_pairing(&view), Ok(()));
            assert!(!format!("{view:?}").contains("c1"));
        }
    }
}

#[test]
fn tr_22_a_call_that_was_never_answered_and_is_taken_back_is_told_of_when_it_is_settled() {
    let open = || {
        let mut log = Log::new();
        log.turn("t1").says("t1", 1, &[("c1", "shell")]);
        log.bring_to(S::Unknown, false);
        log.end("t1", "interrupted").rewind("t1");
        assert_eq!(
            tell(&mut log),
            "",
            "no news, and the model knows of no call"
        );
        log
    };
    let mut log = open();
    log.add(ToolResult {
        source: ResultSource::Recovered,
        ..result("a", S::Completed, "the real output")
    });
    let note = tell(&mut log);
    assert!(note.contains("the real output"), "{note}");
    assert_eq!(tell(&mut log), "");

    let mut log = open();
    log.resolve("a", Resolution::Dismiss);
    assert!(tell(&mut log).contains("go on without knowing"));
    assert_eq!(tell(&mut log), "");
}

#[test]
fn tr_22_a_recovered_result_that_a_model_had_is_not_told_when_its_call_is_taken_back() {
    let recovered = |asked_again: bool| {
        let mut log = Log::new();
        log.turn("t1").says("t1", 1, &[("c1", "shell")]);
        log.bring_to(S::Unknown, false);
        log.add(ToolResult {
            source: ResultSource::Recovered,
            ..result("a", S::Completed, "the real output")
        });
        log.end("t1", "interrupted");
        if asked_again {
            log.turn("t2").says("t2", 1, &[]).end("t2", "completed");
        }
        log.rewind("t1");
        tell(&mut log)
    };
    assert_eq!(recovered(true), "");
    assert!(recovered(false).contains("the real output"));
}

#[test]
fn tr_22_a_note_that_is_taken_back_is_told_again_where_its_call_stays() {
    let mut log = settled(S::Unknown);
    log.turn("t2").says("t2", 1, &[]).end("t2", "completed");
    log.resolve("a", Resolution::Confirm);
    let note = tell(&mut log);
    log.turn("t3").end("t3", "completed");
    log.rewind("t2");
    assert_eq!(
        tell(&mut log),
        note,
        "the model would take it for unknown again"
    );
    log.turn("t4").end("t4", "completed").rewind("t1");
    assert_eq!(tell(&mut log), "", "the model knows of no such call");
}

#[test]
fn tr_22_a_rewind_to_before_a_compaction_brings_back_what_was_said() {
    let mut log = settled(S::Completed);
    let first = texts(&log.session);
    log.turn("t2").says("t2", 1, &[]).end("t2", "completed");
    log.compact().turn("t3").end("t3", "completed");
    assert_eq!(texts(&log.session).len(), 2);
    log.rewind("t2");
    assert_eq!(texts(&log.session), first);
    assert_eq!(log.session.sight("c1"), Sight::InView);
    log.compact()
        .turn("t4")
        .end("t4", "completed")
        .compact()
        .rewind("t4");
    let said = texts(&log.session);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].contains("summary of all up to"));
    log.rewind("t1");
    assert_eq!(texts(&log.session), Vec::<String>::new());
}

#[test]
fn tr_22_what_a_rewind_does_not_undo_is_told_by_subject() {
    let mut log = settled(S::Completed);
    log.turn("t2")
        .says("t2", 1, &[("c2", "write_file"), ("c3", "read_file")]);
    let mut write = receipt("b", "c2", "write_file");
    write.subject = "notes.txt".to_owned();
    log.add(write)
        .start("b")
        .add(result("b", S::Completed, "written"));
    let mut read = receipt("r", "c3", "read_file");
    read.read_only = true;
    log.add(read)
        .start("r")
        .add(result("r", S::Completed, "read"));
    log.receipt("n", "c4", "shell").change("n", S::Cancelled);
    log.end("t2", "completed");
    let subjects = |turn: &str| {
        let kept = log.session.kept_by_rewind(log.message_of(turn)).unwrap();
        let subjects: Vec<String> = kept.effects.iter().map(|a| a.subject.clone()).collect();
        (kept.text.to_owned(), subjects)
    };
    assert_eq!(
        subjects("t2"),
        ("message of t2".to_owned(), vec!["notes.txt".to_owned()])
    );
    assert_eq!(subjects("t1").1, ["SUBJECT", "notes.txt"]);
    assert_eq!(
        log.session.kept_by_rewind(3 + 1),
        None,
        "no message of a person"
    );
}

#[test]
fn tr_06_the_id_of_a_call_that_was_taken_back_is_not_given_again() {
    let mut log = settled(S::Completed);
    log.rewind("t1");
    let taken = |id: &str| log.session.call(id).is_some();
    assert_ne!(call_id("c1", taken, "fresh"), "c1");
    assert_eq!(log.session.answer("c1").as_deref(), Some("output"));
}

#[test]
fn tr_45_tr_22_records_that_fit_nothing_change_nothing() {
    let mut log = settled(S::Unknown);
    let before = (texts(&log.session), log.session.items.clone());
    log.add(Rewound {
        to_seq: 1,
        reason: String::new(),
    });
    log.add(Rewound::default());
    log.add(Compacted {
        upto_seq: 5,
        summary: "  ".to_owned(),
        usage: None,
    });
    assert_eq!((texts(&log.session), log.session.items.clone()), before);
    // A summary can't speak for what comes after it.
    log.add(Compacted {
        upto_seq: u64::MAX,
        summary: "all".to_owned(),
        usage: None,
    });
    log.turn("t2");
    assert_eq!(texts(&log.session).last().unwrap(), "message of t2");
}

#[test]
fn tr_22_tr_51_a_question_goes_with_its_call_and_its_turn_ends() {
    let mut log = Log::new();
    log.turn("t1").says("t1", 1, &[("c1", "shell")]);
    log.add(PromptAsked {
        prompt_id: "p".to_owned(),
        turn_id: "t1".to_owned(),
        call_id: "c1".to_owned(),
        ..PromptAsked::default()
    });
    log.rewind("t1");
    assert_eq!(log.session.prompt, None);
    assert!(log.session.answered.contains("p"));
    assert_eq!(log.session.open_turn(), None);
    assert_eq!(closings(&log.session), Vec::<Record>::new());
}

#[test]
fn tr_43_tr_45_a_log_without_these_records_gives_the_same_bytes_as_before() {
    let mut log = settled(S::Unknown);
    log.resolve("a", Resolution::Confirm);
    tell(&mut log);
    log.turn("t2").says("t2", 1, &[]);
    let json = serde_json::to_string(&outbound(&log.session)).unwrap();
    let note = log.session.items.iter().find_map(|item| match item {
        Item::Note { text, .. } => Some(text.clone()),
        _ => None,
    });
    let expected = serde_json::json!([
        {"role": "system", "text": "be careful"},
        {"role": "user", "text": "message of t1"},
        {"role": "assistant", "text": "answer 1 of t1", "reasoning": null,
         "calls": [{"id": "c1", "name": "shell", "arguments": "{\"of\":\"c1\"}"}]},
        {"role": "tool", "call_id": "c1", "name": "shell",
         "text": log.session.answer("c1").unwrap()},
        {"role": "user", "text": note.unwrap()},
        {"role": "user", "text": "message of t2"},
        {"role": "assistant", "text": "answer 1 of t2", "reasoning": null, "calls": []},
    ]);
    let sent: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(sent, expected);
    // What asks for a summary continues the same bytes.
    let asked = serde_json::to_string(&summary_request(&log.session)).unwrap();
    assert!(asked.starts_with(json.trim_end_matches(']')));
}

#[test]
fn tr_22_any_number_of_receipts_is_kept() {
    let mut log = Log::new();
    for turn in 1..=300 {
        let (turn_id, id) = (format!("t{turn}"), format!("c{turn}"));
        log.turn(&turn_id).says(&turn_id, 1, &[(&id, "shell")]);
        log.receipt(&format!("a{turn}"), &id, "shell");
        log.start(&format!("a{turn}")).end(&turn_id, "interrupted");
        if turn % 40 == 0 {
            close(&mut log);
            log.compact();
        }
    }
    log.rewind("t100");
    assert_eq!(log.session.unresolved(&InFlight::new()), 300);
    assert_eq!(log.session.attempts().count(), 300);
    log.add(HostNote::default());
    log.rewind("t1");
    assert_eq!(log.session.unresolved(&InFlight::new()), 300);
}
