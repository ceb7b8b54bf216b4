//! TR-17: records that are bound to the log before them.

use holdfast_files::fault::{Fault, Operation};
use holdfast_journal::{Batch, LOG_SHA256, NewRecord};
use sha2::{Digest, Sha256};

use crate::session::{Session, note};

fn bound(payload: &str) -> NewRecord {
    NewRecord::bound("bound", payload)
}

fn batch(records: Vec<NewRecord>) -> Batch {
    Batch {
        records,
        attempts: Vec::new(),
    }
}

/// Each bound record of the log holds the digest of the bytes before its line, and how many there
/// are.
fn check(session: &Session) -> usize {
    let bytes = session.bytes();
    let mut at = 0;
    let mut count = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        let value: serde_json::Value = serde_json::from_slice(line).unwrap();
        if let Some(found) = value["payload"].get(LOG_SHA256) {
            let sum: String = Sha256::digest(&bytes[..at])
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect();
            assert_eq!(
                found,
                &serde_json::Value::String(sum),
                "record {}",
                value["seq"]
            );
            count += 1;
        }
        at += line.len();
    }
    count
}

#[test]
fn tr_17_a_bound_record_has_the_digest_of_all_before_it_without_another_sync() {
    let session = Session::new();
    let mut log = session.create();
    log.append(1, &[note(1)]).unwrap();
    let syncs = log.syncs();
    let batches = [
        batch(vec![bound(r#"{"a":1}"#), bound("{}")]),
        note(2),
        batch(vec![bound(r#"{"text":"}\u00fc\u2028"}"#)]),
    ];
    let entries = log.append(2, &batches).unwrap();
    assert_eq!(log.syncs(), syncs + 1);
    assert!(
        entries[0]
            .payload
            .get()
            .starts_with(r#"{"a":1,"log_sha256":""#)
    );
    assert!(entries[1].payload.get().starts_with(r#"{"log_sha256":""#));
    assert_eq!(check(&session), 3);
    log.append(3, &[note(3)]).unwrap();
    log.append(4, &[batch(vec![bound("{}")])]).unwrap();
    assert_eq!(check(&session), 4);
    drop(log);

    // A log that is opened again goes on from what it holds.
    let mut log = session.open().log;
    log.append(5, &[note(4)]).unwrap();
    log.append(6, &[batch(vec![bound("{}")])]).unwrap();
    assert_eq!(check(&session), 5);
}

#[test]
fn tr_17_tr_48_a_failed_write_is_not_in_the_digest() {
    for begun in [false, true] {
        let session = Session::new();
        let mut log = session.create();
        if begun {
            log.append(1, &[batch(vec![bound("{}")])]).unwrap();
        }
        session.fail(Fault::Lose, Operation::Sync, 1, 1);
        let failed = log.append(2, &[batch(vec![bound(r#"{"lost":true}"#)])]);
        assert_eq!(failed.unwrap_err().code(), "write_failed");
        log.append(3, &[batch(vec![bound(r#"{"kept":true}"#)])])
            .unwrap();
        assert_eq!(check(&session), 1 + usize::from(begun));
        let text = String::from_utf8(session.bytes()).unwrap();
        assert!(text.contains("kept") && !text.contains("lost\""), "{text}");
    }
}

#[test]
fn tr_17_what_can_not_be_bound_is_not_written() {
    let session = Session::new();
    let mut log = session.create();
    let before = session.bytes();
    // What was acknowledged is no longer what is there.
    let mut other = before.clone();
    other[10] ^= 1;
    session.write(&other);
    let refused = log.append(1, &[batch(vec![bound("{}")])]).unwrap_err();
    assert_eq!(refused.code(), "storage_error");
    assert_eq!(session.bytes(), other);
    session.write(&before);
    for payload in ["[]", "7", "\"{}\""] {
        let refused = log.append(1, &[batch(vec![bound(payload)])]).unwrap_err();
        assert_eq!(refused.code(), "record_invalid", "{payload}");
    }
    assert_eq!(session.bytes(), before);
    log.append(1, &[batch(vec![bound("{}")])]).unwrap();
    assert_eq!(check(&session), 1);
}
