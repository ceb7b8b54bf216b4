//! Damage in the middle: reported with its place, and what comes after it is kept.

use holdfast_journal::{Damage, peek, read_only};

use crate::session::{ID, Session, lines, note, notes, seen};

/// Notes 1 to 5 with one change to the log's bytes, opened.
fn opened_after(change: impl FnOnce(&mut Vec<u8>, &[usize])) -> (Session, Vec<Damage>, Vec<u64>) {
    let session = Session::with_notes(5);
    let mut bytes = session.bytes();
    let mut starts = vec![0];
    for line in lines(&bytes) {
        starts.push(starts.last().unwrap() + line.len());
    }
    change(&mut bytes, &starts);
    session.write(&bytes);
    let opened = session.open();
    assert_eq!(opened.tail, None);
    let found = opened.entries.iter().map(|entry| entry.seq).collect();
    assert_eq!(session.bytes(), bytes, "damage stays where it is");
    (session, opened.damage, found)
}

#[test]
fn any_flipped_byte_in_the_middle_loses_its_line_alone() {
    let whole = Session::with_notes(3).bytes();
    let first = lines(&whole)[0].len();
    let line = lines(&whole)[1].len();
    let session = Session::with_notes(0);
    for at in first..first + line {
        for bit in 0..8 {
            let mut bytes = whole.clone();
            bytes[at] ^= 1 << bit;
            session.write(&bytes);
            let read = read_only(&session.folder, ID).unwrap();
            // A lost line feed joins two lines.
            let lost = if at == first + line - 1 { 2 } else { 1 };
            let mut expected = notes(3);
            expected.drain(1..1 + lost);
            assert_eq!(seen(&read.entries), expected, "byte {at}, bit {bit}");
            let [damage] = read.damage[..] else {
                panic!("one place, not {:?}", read.damage)
            };
            assert_eq!(damage.offset, first as u64);
            assert_eq!(damage.after_seq, 1);
            assert_eq!(damage.before_seq, 2 + lost as u64);
            assert_eq!(read.unverified_tail_bytes, 0);
        }
    }
}

#[test]
fn damaged_lines_side_by_side_are_one_place() {
    let (_session, damage, found) = opened_after(|bytes, starts| {
        bytes[starts[2] + 20] = 0;
        bytes[starts[3] + 20] = 0;
    });
    assert_eq!(found, [1, 2, 5, 6]);
    assert_eq!(damage.len(), 1);
    assert_eq!((damage[0].after_seq, damage[0].before_seq), (2, 5));
    assert!(damage[0].length > 0);
}

#[test]
fn a_missing_line_is_a_place_of_no_length() {
    let (_session, damage, found) = opened_after(|bytes, starts| {
        bytes.drain(starts[2]..starts[3]);
    });
    assert_eq!(found, [1, 2, 4, 5, 6]);
    let Damage {
        length,
        after_seq,
        before_seq,
        ..
    } = damage[0];
    assert_eq!((length, after_seq, before_seq), (0, 2, 4));
}

#[test]
fn a_repeated_line_is_not_taken_twice() {
    let (_session, damage, found) = opened_after(|bytes, starts| {
        let again = bytes[starts[2]..starts[3]].to_vec();
        bytes.splice(starts[4]..starts[4], again);
    });
    assert_eq!(found, [1, 2, 3, 4, 5, 6]);
    assert_eq!(damage.len(), 1);
    assert_eq!((damage[0].after_seq, damage[0].before_seq), (4, 5));
}

#[test]
fn a_damaged_header_is_reported_and_the_rest_kept() {
    let (session, damage, found) = opened_after(|bytes, _| bytes[3] = b'X');
    assert_eq!(found, [2, 3, 4, 5, 6]);
    assert_eq!((damage[0].offset, damage[0].after_seq), (0, 0));
    let ends = peek(&session.folder, ID).unwrap();
    assert!(ends.header.is_none());
    assert_eq!(ends.last.seq, 6);
}

#[test]
fn appending_goes_on_across_damage() {
    let (session, _, _) = opened_after(|bytes, starts| bytes[starts[2] + 20] = 0);
    let mut log = session.open().log;
    log.append(6, &[note(6)]).unwrap();
    log.reopen(7).unwrap();
    drop(log);
    let opened = session.open();
    let mut expected = notes(6);
    expected.remove(2);
    assert_eq!(seen(&opened.entries), expected);
    assert_eq!(opened.damage.len(), 1);
}
