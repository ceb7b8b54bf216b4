//! After a failed write or sync (TR-48), one case at a time.

use std::io::ErrorKind;

use holdfast_files::fault::{Fault, Operation};
use holdfast_journal::{JournalError, WRITE_RESET};

use crate::session::{Session, note, notes, seen};

const FULL: Fault = Fault::Fail(ErrorKind::StorageFull);

fn reset(seq: u64, attempts: &str, lost: u64) -> (u64, String, String) {
    let payload = format!("{{\"lost_records\":{lost},\"not_started\":[{attempts}]}}");
    (seq, WRITE_RESET.to_owned(), payload)
}

#[test]
fn tr_48_a_failed_write_or_sync_is_cut_and_said_then_the_log_goes_on() {
    let faults = [
        (FULL, Operation::Append),
        (Fault::Short, Operation::Append),
        (Fault::Torn, Operation::Append),
        (Fault::Drop, Operation::Append),
        (FULL, Operation::Length),
        (Fault::Fail(ErrorKind::Other), Operation::Sync),
        (Fault::Lose, Operation::Sync),
    ];
    for (fault, operation) in faults {
        let session = Session::new();
        let mut log = session.create();
        log.append(1, &[note(1)]).unwrap();
        session.fail(fault, operation, 1, 1);
        let error = log.append(2, &[note(8), note(9)]).unwrap_err();
        let JournalError::WriteFailed { reset: said, .. } = &error else {
            panic!("{fault:?}: {error:?}")
        };
        assert_eq!(error.code(), "write_failed");
        let mut expected = notes(1);
        expected.push(reset(3, "\"a8\",\"a9\"", 2));
        assert_eq!(seen(&[(**said).clone()]), expected[2..]);
        let after = log.append(3, &[note(2)]).unwrap();
        assert_eq!(after[0].seq, 4);
        expected.extend(seen(&after));
        drop(log);
        let opened = session.open();
        assert_eq!(seen(&opened.entries), expected, "{fault:?} {operation:?}");
        assert!(opened.damage.is_empty());
        assert_eq!(opened.tail, None);
    }
}

#[test]
fn tr_48_a_sync_is_never_simply_repeated() {
    let session = Session::new();
    let mut log = session.create();
    session.fail(Fault::Lose, Operation::Sync, 1, 1);
    let cuts = session.faulty.count(Operation::SetLength);
    let appends = session.faulty.count(Operation::Append);
    log.append(1, &[note(1)]).unwrap_err();
    assert_eq!(session.faulty.count(Operation::SetLength), cuts + 1);
    assert_eq!(session.faulty.count(Operation::Append), appends + 2);
    drop(log);
    session.faulty.power_loss().unwrap();
    let mut expected = notes(0);
    expected.push(reset(2, "\"a1\"", 1));
    assert_eq!(seen(&session.open().entries), expected);
}

#[test]
fn tr_48_when_the_reset_fails_too_the_log_is_read_only_until_it_is_reopened() {
    let session = Session::new();
    let mut log = session.create();
    log.append(1, &[note(1)]).unwrap();
    session.fail(Fault::Fail(ErrorKind::Other), Operation::Sync, 1, 2);
    let error = log.append(2, &[note(8)]).unwrap_err();
    assert_eq!(error.code(), "storage_failed");
    assert!(log.is_failed());
    assert_eq!(session.bytes().len() as u64, log.position().end);
    let operations = session.faulty.operations();
    for number in 9..12 {
        let error = log.append(3, &[note(number)]).unwrap_err();
        assert_eq!(error.code(), "storage_failed");
    }
    assert_eq!(session.faulty.operations(), operations, "nothing is tried");
    assert!(!log.write_index(2, "{}").unwrap());

    let said = log.reopen(4).unwrap().reset.unwrap();
    let mut expected = notes(1);
    expected.push(reset(3, "\"a8\"", 1));
    assert_eq!(seen(&[said]), expected[2..]);
    expected.extend(seen(&log.append(5, &[note(2)]).unwrap()));
    drop(log);
    assert_eq!(seen(&session.open().entries), expected);
}

#[test]
fn c12_a_full_disk_refuses_and_works_again_without_a_restart() {
    let session = Session::new();
    let mut log = session.create();
    log.append(1, &[note(1)]).unwrap();
    session.fail(Fault::Torn, Operation::Append, 1, u64::MAX);
    let error = log.append(2, &[note(8)]).unwrap_err();
    assert_eq!(error.code(), "storage_failed");
    assert!(error.to_string().contains("Free disk space"), "{error}");
    assert_eq!(log.reopen(3).unwrap_err().code(), "storage_failed");
    assert_eq!(
        log.append(3, &[note(9)]).unwrap_err().code(),
        "storage_failed"
    );
    session.faulty.heal();
    log.reopen(4).unwrap();
    let mut expected = notes(1);
    expected.push(reset(3, "\"a8\"", 1));
    expected.extend(seen(&log.append(5, &[note(2)]).unwrap()));
    drop(log);
    assert_eq!(seen(&session.open().entries), expected);
}

#[test]
fn c12_a_restart_on_the_full_disk_reads_the_safe_side() {
    let session = Session::new();
    let mut log = session.create();
    log.append(1, &[note(1)]).unwrap();
    // The sync fails and then nothing works any more, the cut included.
    session.faulty.inject(holdfast_files::fault::Plan {
        fault: FULL,
        first: 4,
        last: u64::MAX,
        only: None,
    });
    assert_eq!(
        log.append(2, &[note(2)]).unwrap_err().code(),
        "storage_failed"
    );
    drop(log);
    session.faulty.heal();
    // Its lines are there and verify: read as written, never as not started.
    assert_eq!(seen(&session.open().entries), notes(2));
}

#[test]
fn reopening_a_log_that_works_changes_nothing() {
    let session = Session::new();
    let mut log = session.create();
    log.append(1, &[note(1)]).unwrap();
    let before = session.bytes();
    assert!(log.reopen(2).unwrap().reset.is_none());
    assert_eq!(session.bytes(), before);
    log.append(2, &[note(2)]).unwrap();
    drop(log);
    assert_eq!(seen(&session.open().entries), notes(2));
}

#[test]
fn acknowledged_records_that_are_gone_are_never_written_over() {
    let session = Session::new();
    let mut log = session.create();
    log.append(1, &[note(1)]).unwrap();
    let whole = session.bytes();
    session.write(&whole[..whole.len() - 3]);
    let cut = session.bytes();
    let error = log.append(2, &[note(2)]).unwrap_err();
    assert_eq!(error.code(), "storage_failed");
    assert_eq!(session.bytes(), cut, "nothing is written, cut or extended");
    assert_eq!(log.reopen(3).unwrap_err().code(), "log_changed");
    assert_eq!(
        log.append(4, &[note(2)]).unwrap_err().code(),
        "storage_failed"
    );
}

#[test]
fn reopening_notices_a_changed_byte() {
    let session = Session::new();
    let mut log = session.create();
    log.append(1, &[note(1)]).unwrap();
    session.fail(FULL, Operation::Append, 1, 2);
    log.append(2, &[note(2)]).unwrap_err();
    let mut bytes = session.bytes();
    bytes[10] ^= 1;
    session.write(&bytes);
    assert_eq!(log.reopen(3).unwrap_err().code(), "log_changed");
    assert_eq!(session.bytes(), bytes);
}
