//! The index is used only while it matches the log.

use holdfast_files::fault::{Fault, Operation};
use holdfast_journal::read_index;

use crate::session::{ID, Session, note};

fn indexed() -> Session {
    let session = Session::with_notes(3);
    let log = session.open().log;
    assert!(log.write_index(4, "{\"title\":\"t\"}").unwrap());
    session
}

#[test]
fn an_index_that_matches_is_used() {
    let session = indexed();
    let index = read_index(&session.folder, ID).unwrap();
    assert_eq!(index.summary.get(), "{\"title\":\"t\"}");
    assert_eq!(index.last, session.open().log.position());
}

#[test]
fn an_index_of_another_moment_is_not_written() {
    let session = indexed();
    let mut log = session.open().log;
    assert!(!log.write_index(3, "{}").unwrap());
    log.append(4, &[note(4)]).unwrap();
    assert!(!log.write_index(4, "{}").unwrap());
    assert_eq!(
        log.write_index(5, "{").unwrap_err().code(),
        "record_invalid"
    );
    assert!(read_index(&session.folder, ID).is_none(), "the log went on");
    assert!(log.write_index(5, "{}").unwrap());
    assert_eq!(read_index(&session.folder, ID).unwrap().last.seq, 5);
}

#[test]
fn an_index_may_be_deleted_or_torn() {
    let session = indexed();
    let path = session.folder.join("index.json");
    let whole = std::fs::read(&path).unwrap();
    for cut in 0..whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        assert!(read_index(&session.folder, ID).is_none(), "{cut}");
    }
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 4;
        std::fs::write(&path, &bytes).unwrap();
        assert!(read_index(&session.folder, ID).is_none(), "{at}");
    }
    std::fs::remove_file(&path).unwrap();
    assert!(read_index(&session.folder, ID).is_none());
}

#[test]
fn an_index_whose_record_changed_is_not_used() {
    let session = indexed();
    assert!(read_index(&session.folder, "other").is_none());
    let whole = session.bytes();
    let last = session.open().log.position();
    for at in last.offset..last.end {
        let mut bytes = whole.clone();
        bytes[at as usize] ^= 1;
        session.write(&bytes);
        assert!(read_index(&session.folder, ID).is_none(), "{at}");
    }
    session.write(&whole[..whole.len() - 1]);
    assert!(read_index(&session.folder, ID).is_none());
    session.write(&[&whole[..], b"x"].concat());
    assert!(read_index(&session.folder, ID).is_none());
    session.write(&whole);
    assert!(read_index(&session.folder, ID).is_some());
}

#[test]
fn a_reset_log_outdates_its_index() {
    let session = indexed();
    let mut log = session.open().log;
    session.fail(Fault::Short, Operation::Append, 1, 1);
    log.append(5, &[note(4)]).unwrap_err();
    assert!(read_index(&session.folder, ID).is_none());
}
