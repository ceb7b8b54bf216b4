//! What an append puts in the log, byte for byte.

use std::sync::Arc;

use holdfast_files::Disk;
use holdfast_files::fault::{Fault, Operation};
use holdfast_journal::{Batch, Lease, Log, MAX_PAYLOAD_BYTES, NewRecord, peek, read_only};

use crate::session::{ID, Session, lines, me, note, notes, record, seen};

#[test]
fn a_line_is_sealed_over_the_session_id_and_its_own_bytes() {
    let session = Session::with_notes(1);
    let bytes = session.bytes();
    let body = b"{\"seq\":2,\"time\":1,\"kind\":\"note\",\"payload\":{\"n\":1}";
    let crc = crc32c::crc32c(&[ID.as_bytes(), body].concat());
    let expected = [body, format!(",\"c\":\"{crc:08x}\"}}\n").as_bytes()].concat();
    assert_eq!(lines(&bytes)[1], expected);
    let value: serde_json::Value = serde_json::from_slice(lines(&bytes)[1]).unwrap();
    assert_eq!(value["payload"]["n"], 1);
}

#[test]
fn batches_of_one_call_are_one_write_and_one_sync() {
    let session = Session::new();
    let mut log = session.create();
    let (appends, syncs) = (
        session.faulty.count(Operation::Append),
        session.faulty.count(Operation::Sync),
    );
    assert_eq!(log.syncs(), 1);
    let entries = log.append(9, &[note(1), note(2), note(3)]).unwrap();
    assert_eq!(seen(&entries), notes(3)[1..]);
    assert_eq!(session.faulty.count(Operation::Append), appends + 1);
    assert_eq!(session.faulty.count(Operation::Sync), syncs + 1);
    assert_eq!(log.syncs(), 2);
    assert_eq!(log.position().seq, 4);
    assert_eq!(log.position().end, session.bytes().len() as u64);
}

#[test]
fn an_append_without_records_does_nothing() {
    let session = Session::new();
    let mut log = session.create();
    let operations = session.faulty.operations();
    assert!(log.append(9, &[]).unwrap().is_empty());
    assert!(log.append(9, &[Batch::default()]).unwrap().is_empty());
    assert_eq!(session.faulty.operations(), operations);
}

#[test]
fn c11_whatever_is_inside_one_record_is_one_line() {
    let texts = [
        "\"\u{2028}\u{2029}\u{85}\"",
        "\"\\u0000\\ud800 \\n\\r\"",
        "\"\u{1f980} 中文 \u{feff}\"",
        "\"},\\\"c\\\":\\\"00000000\\\"}\"",
        "{ \"a\" : [ 1.0 , 2e3 , 12345678901234567890123 ] }",
        "null",
        "[]",
    ];
    let session = Session::new();
    let mut log = session.create();
    let records = texts.iter().map(|text| NewRecord::new("note", *text));
    let batch = Batch {
        records: records.collect(),
        attempts: Vec::new(),
    };
    log.append(9, &[batch]).unwrap();
    drop(log);
    assert_eq!(lines(&session.bytes()).len(), texts.len() + 1);
    let entries = session.open().entries;
    let kept: Vec<&str> = entries[1..].iter().map(|e| e.payload.get()).collect();
    assert_eq!(kept, texts, "payloads are kept byte for byte");
}

#[test]
fn raw_line_breaks_between_tokens_become_spaces() {
    let session = Session::new();
    let mut log = session.create();
    let pretty = "\n{\r\n  \"a\": \"x\\n\"\n}\n";
    let batch = Batch {
        records: vec![NewRecord::new("note", pretty)],
        attempts: Vec::new(),
    };
    let entries = log.append(9, &[batch]).unwrap();
    drop(log);
    assert_eq!(entries[0].payload.get(), "{    \"a\": \"x\\n\" }");
    let read = read_only(&session.folder, ID).unwrap();
    assert_eq!(seen(&read.entries[1..]), seen(&entries));
}

#[test]
fn what_is_no_record_is_refused_before_anything_is_tried() {
    let session = Session::new();
    let mut log = session.create();
    let operations = session.faulty.operations();
    let long = format!("\"{}\"", "x".repeat(MAX_PAYLOAD_BYTES));
    let refusals = [
        (NewRecord::new("note", "{\"a\":"), "record_invalid"),
        (NewRecord::new("note", "\"a\nb\""), "record_invalid"),
        (NewRecord::new("note", "{} {}"), "record_invalid"),
        (NewRecord::new("", "{}"), "record_invalid"),
        (NewRecord::new("a b", "{}"), "record_invalid"),
        (NewRecord::new("note", long), "record_too_large"),
    ];
    for (bad, code) in refusals {
        let batch = Batch {
            records: vec![record("note", 1), bad],
            attempts: Vec::new(),
        };
        assert_eq!(log.append(9, &[batch]).unwrap_err().code(), code);
    }
    assert_eq!(session.faulty.operations(), operations);
    log.append(9, &[note(1)]).unwrap();
    drop(log);
    assert_eq!(seen(&session.open().entries), notes(1));
}

#[test]
fn a_record_of_the_largest_size_is_read_again() {
    let session = Session::new();
    let mut log = session.create();
    let text = format!("\"{}\"", "x".repeat(MAX_PAYLOAD_BYTES - 2));
    let batch = Batch {
        records: vec![NewRecord::new("k".repeat(64), text.clone())],
        attempts: Vec::new(),
    };
    log.append(u64::MAX, &[batch]).unwrap();
    drop(log);
    let entries = session.open().entries;
    assert_eq!(entries[1].payload.get(), text);
    let ends = peek(&session.folder, ID).unwrap();
    assert_eq!(ends.last.seq, 2);
    assert_eq!(ends.header.unwrap().seq, 1);
}

#[test]
fn a_session_is_created_once() {
    let session = Session::with_notes(1);
    let before = session.bytes();
    let lease = Lease::create(&session.folder, &me()).unwrap();
    let refused = Log::create(Arc::new(Disk), lease, ID, 5, record("header", 9)).unwrap_err();
    assert_eq!(refused.code(), "session_exists");
    assert_eq!(session.bytes(), before);
}

#[test]
fn a_creation_that_failed_can_be_tried_again() {
    let session = Session::new();
    session.fail(Fault::Lose, Operation::Sync, 1, 1);
    let lease = Lease::create(&session.folder, &me()).unwrap();
    let refused = Log::create(session.storage(), lease, ID, 1, record("header", 1)).unwrap_err();
    assert_eq!(refused.code(), "storage_error");
    session.create().append(1, &[note(1)]).unwrap();
    assert_eq!(seen(&session.open().entries), notes(1));
}

#[test]
fn a_session_id_that_leads_elsewhere_is_refused() {
    let session = Session::with_notes(0);
    for id in ["", "a/b", "..", ".a", "a{", &"x".repeat(129)] {
        assert_eq!(
            read_only(&session.folder, id).unwrap_err().code(),
            "name_invalid"
        );
    }
}

#[cfg(unix)]
#[test]
fn folders_are_0700_and_files_0600() {
    use std::os::unix::fs::PermissionsExt;
    let session = Session::new();
    let _log = session.create();
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&session.folder) & 0o777, 0o700);
    for name in ["log.jsonl", "lock", "holder.json"] {
        assert_eq!(mode(&session.folder.join(name)) & 0o777, 0o600, "{name}");
    }
}
