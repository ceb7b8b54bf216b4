//! Opening what a crash left: the tail is kept aside and cut, never appended to.

use std::io::ErrorKind;
use std::sync::Arc;

use holdfast_files::fault::{Fault, Operation, Plan};
use holdfast_files::{Disk, Faulty};
use holdfast_journal::{Lease, Log, peek, read_only};

use crate::session::{ID, Session, lines, me, names, note, notes, seen};

#[test]
fn a_whole_log_opens_without_a_repair() {
    let session = Session::with_notes(3);
    let before = session.bytes();
    let opened = session.open();
    assert_eq!(seen(&opened.entries), notes(3));
    assert_eq!(opened.entries[2].at, 2);
    assert!(opened.damage.is_empty());
    assert_eq!(opened.tail, None);
    assert_eq!(session.bytes(), before);
}

#[test]
fn c10_cut_at_every_byte_of_the_last_record_then_append() {
    let session = Session::with_notes(3);
    let whole = session.bytes();
    let last = lines(&whole)[3];
    let kept = whole.len() - last.len();
    for cut in 1..last.len() {
        let session = Session::with_notes(0);
        session.write(&whole[..kept + cut]);
        let mut opened = session.open();
        assert_eq!(seen(&opened.entries), notes(2), "cut after {cut} bytes");
        assert!(opened.damage.is_empty());
        let tail = opened.tail.unwrap();
        assert_eq!((tail.offset, tail.length), (kept as u64, cut as u64));
        let saved = std::fs::read(session.folder.join(tail.saved_as)).unwrap();
        assert_eq!(saved, &last[..cut]);
        assert_eq!(session.bytes(), &whole[..kept]);
        opened.log.append(3, &[note(3)]).unwrap();
        drop(opened.log);
        assert_eq!(session.bytes(), whole, "the new record is on its own line");
        assert_eq!(seen(&session.open().entries), notes(3));
    }
}

#[test]
fn c10_cut_between_records_is_a_whole_log() {
    let session = Session::with_notes(3);
    let whole = session.bytes();
    let kept = whole.len() - lines(&whole)[3].len();
    session.write(&whole[..kept]);
    let opened = session.open();
    assert_eq!(seen(&opened.entries), notes(2));
    assert_eq!(opened.tail, None);
}

#[test]
fn c10_a_torn_group_keeps_its_earlier_lines() {
    let session = Session::new();
    session
        .create()
        .append(1, &[note(1), note(2), note(3)])
        .unwrap();
    let whole = session.bytes();
    session.write(&whole[..whole.len() - 5]);
    assert_eq!(seen(&session.open().entries), notes(2));
}

#[test]
fn every_tail_is_kept_under_a_name_of_its_own() {
    let session = Session::with_notes(1);
    for (number, tail) in ["first", "second\nwith a line\n", "\0\0\0\0"]
        .iter()
        .enumerate()
    {
        let mut bytes = session.bytes();
        bytes.extend_from_slice(tail.as_bytes());
        session.write(&bytes);
        let repair = session.open().tail.unwrap();
        assert_eq!(repair.saved_as, format!("log.tail-{}", number + 1));
    }
    let kept = |name: &str| std::fs::read_to_string(session.folder.join(name)).unwrap();
    assert_eq!(kept("log.tail-1"), "first");
    assert_eq!(kept("log.tail-2"), "second\nwith a line\n");
    assert_eq!(kept("log.tail-3"), "\0\0\0\0");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let path = session.folder.join("log.tail-1");
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[test]
fn a_tail_larger_than_any_line_is_kept_too() {
    let session = Session::with_notes(1);
    let mut bytes = session.bytes();
    let whole = bytes.len();
    bytes.resize(whole + 40 * 1024 * 1024, b'x');
    session.write(&bytes);
    let ends = peek(&session.folder, ID).unwrap();
    assert_eq!(ends.last.seq, 2);
    assert_eq!(ends.unverified_tail_bytes, 40 * 1024 * 1024);
    let opened = session.open();
    assert_eq!(seen(&opened.entries), notes(1));
    assert_eq!(opened.tail.unwrap().length, 40 * 1024 * 1024);
    assert_eq!(session.bytes().len(), whole);
}

#[test]
fn what_a_killed_process_wrote_and_did_not_sync_is_durable_once_it_is_opened() {
    let session = Session::new();
    let mut log = session.create();
    session.fail(Fault::Drop, Operation::Sync, 1, 1);
    log.append(1, &[note(1)]).unwrap();
    drop(log);
    assert_eq!(seen(&session.open().entries), notes(1));
    session.faulty.power_loss().unwrap();
    assert_eq!(seen(&session.open().entries), notes(1));
}

#[test]
fn c10_an_opening_that_fails_loses_neither_records_nor_the_tail() {
    let tail = b"{\"seq\":4,\"ti";
    let faults = [
        Fault::Fail(ErrorKind::StorageFull),
        Fault::Short,
        Fault::Torn,
        Fault::Lose,
        Fault::Drop,
    ];
    let mut failures = 0;
    for fault in faults {
        for first in 1..=20 {
            let mut session = Session::with_notes(2);
            session.write(&[&session.bytes()[..], tail].concat());
            session.faulty = Faulty::new(Arc::new(Disk));
            session.faulty.inject(Plan {
                fault,
                first,
                last: first,
                only: None,
            });
            let lease = Lease::acquire(&session.folder, &me()).unwrap();
            match Log::open(session.storage(), lease, ID) {
                Ok(opened) => {
                    assert_eq!(seen(&opened.entries), notes(2));
                    let length = session.bytes().len() as u64;
                    assert_eq!(length, opened.log.position().end, "{fault:?} {first}");
                }
                Err(error) => {
                    failures += 1;
                    assert_eq!(error.code(), "storage_error");
                }
            }
            session.faulty.heal();
            if fault != Fault::Drop {
                session.faulty.power_loss().unwrap();
            }
            let context = format!("{fault:?} {first}");
            assert_eq!(seen(&session.open().entries), notes(2), "{context}");
            let kept: Vec<String> = names(&session.folder)
                .into_iter()
                .filter(|name| name.starts_with("log.tail-"))
                .collect();
            assert_eq!(kept, ["log.tail-1"], "{context}");
            let saved = std::fs::read(session.folder.join("log.tail-1")).unwrap();
            assert_eq!(saved, tail, "{context}");
        }
    }
    assert!(failures > 30, "{failures} openings failed");
}

#[test]
fn a_read_only_opening_changes_nothing() {
    let session = Session::with_notes(2);
    let mut bytes = session.bytes();
    bytes.extend_from_slice(b"{\"seq\":4,\"ti");
    session.write(&bytes);
    let _held = Lease::acquire(&session.folder, &me()).unwrap();
    let before = names(&session.folder);
    let read = read_only(&session.folder, ID).unwrap();
    assert_eq!(seen(&read.entries), notes(2));
    assert_eq!(read.unverified_tail_bytes, 12);
    assert!(read.damage.is_empty());
    assert_eq!(session.bytes(), bytes);
    assert_eq!(names(&session.folder), before);
}

#[test]
fn the_two_ends_are_read_without_the_middle() {
    let session = Session::with_notes(300);
    let ends = peek(&session.folder, ID).unwrap();
    assert_eq!(seen(&[ends.header.unwrap()]), notes(0));
    assert_eq!(seen(&[ends.last]), notes(300)[300..]);
    assert_eq!(ends.unverified_tail_bytes, 0);
    assert_eq!(ends.length, session.bytes().len() as u64);
}

#[test]
fn the_ends_of_every_cut_log_are_those_of_its_scan() {
    let whole = Session::with_notes(3).bytes();
    let session = Session::with_notes(0);
    let header = lines(&whole)[0].len();
    for cut in 0..=whole.len() {
        session.write(&whole[..cut]);
        let ends = peek(&session.folder, ID);
        if cut < header {
            assert_eq!(ends.unwrap_err().code(), "log_incomplete");
            continue;
        }
        let ends = ends.unwrap();
        let read = read_only(&session.folder, ID).unwrap();
        assert_eq!(ends.last.seq, read.entries.last().unwrap().seq);
        assert_eq!(ends.unverified_tail_bytes, read.unverified_tail_bytes);
    }
}

#[test]
fn a_creation_that_never_ended_is_said_to_be_one() {
    let session = Session::with_notes(0);
    let whole = session.bytes();
    for cut in 0..whole.len() {
        session.write(&whole[..cut]);
        let lease = Lease::acquire(&session.folder, &me()).unwrap();
        let refused = Log::open(Arc::new(Disk), lease, ID).unwrap_err();
        assert_eq!(refused.code(), "log_incomplete");
        assert_eq!(session.bytes(), &whole[..cut], "nothing is cut");
    }
}

#[test]
fn another_sessions_log_is_refused_and_not_cut() {
    let session = Session::with_notes(2);
    let before = session.bytes();
    let lease = Lease::acquire(&session.folder, &me()).unwrap();
    let refused = Log::open(Arc::new(Disk), lease, "s-0002").unwrap_err();
    assert_eq!(refused.code(), "log_unreadable");
    for code in [
        read_only(&session.folder, "s-0002").unwrap_err().code(),
        peek(&session.folder, "s-0002").unwrap_err().code(),
    ] {
        assert_eq!(code, "log_unreadable");
    }
    assert_eq!(session.bytes(), before);
    assert!(!session.folder.join("log.tail-1").exists());
}

#[test]
fn a_missing_session_is_said_to_be_missing() {
    let session = Session::new();
    let refused = Lease::acquire(&session.folder, &me()).unwrap_err();
    assert_eq!(refused.code(), "session_not_found");
    assert!(!session.folder.exists(), "opening creates nothing");
    let lease = Lease::create(&session.folder, &me()).unwrap();
    let refused = Log::open(Arc::new(Disk), lease, ID).unwrap_err();
    assert_eq!(refused.code(), "session_not_found");
    let refused = read_only(&session.folder, ID).unwrap_err();
    assert_eq!(refused.code(), "session_not_found");
}
