//! A copy has every verified record and leaves the original alone (C26).

use std::io::ErrorKind;
use std::sync::Arc;

use holdfast_files::fault::{Fault, Plan};
use holdfast_files::{Disk, Storage};
use holdfast_journal::{Lease, Log, Spill, copy_session, read_only};

use crate::session::{ID, Session, lines, me, note, notes, seen};

fn disk() -> Arc<dyn Storage> {
    Arc::new(Disk)
}

#[test]
fn c26_a_copy_of_a_held_session_works() {
    let session = Session::with_notes(0);
    let mut held = session.open().log;
    held.append(1, &[note(1), note(2)]).unwrap();
    Spill::new(disk(), &session.folder)
        .store("out", b"large")
        .unwrap();
    let before = session.bytes();
    let to = session.folder.with_file_name("s-0002");
    let lease = Lease::create(&to, &me()).unwrap();
    let copied = copy_session(&disk(), &session.folder, ID, &lease, "s-0002").unwrap();
    assert_eq!((copied.records, copied.unverified_tail_bytes), (3, 0));
    let mut opened = Log::open(disk(), lease, "s-0002").unwrap();
    assert_eq!(seen(&opened.entries), notes(2));
    assert_eq!(opened.entries[1].at, 1);
    opened.log.append(9, &[note(3)]).unwrap();
    held.append(9, &[note(3)]).unwrap();
    assert_eq!(Spill::new(disk(), &to).read("out", 0, 9).unwrap(), b"large");
    assert!(session.bytes().starts_with(&before));
    assert_eq!(
        read_only(&to, ID).unwrap_err().code(),
        "log_unreadable",
        "it is sealed for its own id"
    );
}

#[test]
fn damage_and_tail_are_reported_and_the_gap_stays_visible() {
    let session = Session::with_notes(3);
    let mut bytes = session.bytes();
    let second = lines(&bytes)[0].len();
    bytes[second + 20] = 0;
    bytes.extend_from_slice(b"{torn");
    session.write(&bytes);
    let to = session.folder.with_file_name("copy");
    let lease = Lease::create(&to, &me()).unwrap();
    let copied = copy_session(&disk(), &session.folder, ID, &lease, "copy").unwrap();
    assert_eq!((copied.records, copied.unverified_tail_bytes), (3, 5));
    assert_eq!(copied.damage.len(), 1);
    let opened = Log::open(disk(), lease, "copy").unwrap();
    assert_eq!(opened.damage.len(), 1);
    assert_eq!(opened.damage[0].length, 0);
    assert_eq!(
        (opened.damage[0].after_seq, opened.damage[0].before_seq),
        (1, 3)
    );
    assert_eq!(session.bytes(), bytes);
}

#[test]
fn a_copy_never_replaces_a_session() {
    let from = Session::with_notes(3);
    let to = Session::with_notes(1);
    let before = to.bytes();
    let lease = Lease::acquire(&to.folder, &me()).unwrap();
    let refused = copy_session(&disk(), &from.folder, ID, &lease, ID).unwrap_err();
    assert_eq!(refused.code(), "session_exists");
    assert_eq!(to.bytes(), before);
}

#[test]
fn a_copy_appears_whole_or_not_at_all() {
    let from = Session::with_notes(3);
    Spill::new(disk(), &from.folder).store("out", b"x").unwrap();
    for first in 1..40 {
        let to = Session::new();
        let lease = Lease::create(&to.folder, &me()).unwrap();
        to.faulty.inject(Plan {
            fault: Fault::Fail(ErrorKind::StorageFull),
            first,
            last: u64::MAX,
            only: None,
        });
        let copied = copy_session(&to.storage(), &from.folder, ID, &lease, ID);
        to.faulty.heal();
        match read_only(&to.folder, ID) {
            Ok(read) => assert_eq!(seen(&read.entries), notes(3)),
            Err(error) => {
                assert_eq!(error.code(), "session_not_found");
                assert!(copied.is_err());
                copy_session(&to.storage(), &from.folder, ID, &lease, ID).unwrap();
            }
        }
    }
}

#[test]
fn a_copy_survives_a_power_loss() {
    let from = Session::with_notes(3);
    let to = Session::new();
    let lease = Lease::create(&to.folder, &me()).unwrap();
    copy_session(&to.storage(), &from.folder, ID, &lease, ID).unwrap();
    to.faulty.power_loss().unwrap();
    let read = read_only(&to.folder, ID).unwrap();
    assert_eq!(seen(&read.entries), notes(3));
}
