//! Random records, cuts, flips and reopenings against a model.

use holdfast_journal::{Batch, NewRecord, read_only};
use proptest::prelude::*;

use crate::session::{ID, Seen, Session, note, scaled, seen};

fn cases(count: u32) -> ProptestConfig {
    ProptestConfig {
        cases: scaled(count),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

fn batch(texts: &[String]) -> Batch {
    let records = texts.iter().map(|text| {
        let payload = serde_json::json!({ "text": text });
        NewRecord::new("note", payload.to_string())
    });
    Batch {
        records: records.collect(),
        attempts: Vec::new(),
    }
}

/// Where each record ends, in bytes, and what it is.
struct Model {
    records: Vec<(u64, Seen)>,
}

impl Model {
    fn within(&self, length: u64) -> Vec<Seen> {
        self.records
            .iter()
            .filter(|(end, _)| *end <= length)
            .map(|(_, record)| record.clone())
            .collect()
    }
}

/// Writes every group with one append, reopening between them where asked.
fn written(groups: &[(Vec<String>, bool)]) -> (Session, Model) {
    let session = Session::new();
    let mut log = session.create();
    let mut all = seen(&read_only(&session.folder, ID).unwrap().entries);
    for (texts, reopen) in groups {
        all.extend(seen(&log.append(3, &[batch(texts)]).unwrap()));
        if *reopen {
            drop(log);
            log = session.open().log;
        }
    }
    drop(log);
    let mut end = 0;
    let bytes = session.bytes();
    let ends = bytes.split_inclusive(|byte| *byte == b'\n').map(|line| {
        end += line.len() as u64;
        end
    });
    let records = ends.zip(all).collect();
    (session, Model { records })
}

fn groups() -> impl Strategy<Value = Vec<(Vec<String>, bool)>> {
    let texts = prop::collection::vec(any::<String>(), 0..4);
    prop::collection::vec((texts, any::<bool>()), 1..5)
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn a_cut_anywhere_keeps_exactly_the_whole_records(
        groups in groups(),
        cut in any::<prop::sample::Index>(),
    ) {
        let (session, model) = written(&groups);
        let whole = session.bytes();
        let header = model.records[0].0 as usize;
        let cut = header + cut.index(whole.len() - header + 1);
        session.write(&whole[..cut]);
        let expected = model.within(cut as u64);
        let read = read_only(&session.folder, ID).unwrap();
        prop_assert_eq!(seen(&read.entries), expected.clone());
        let mut opened = session.open();
        prop_assert_eq!(seen(&opened.entries), expected.clone());
        let kept = opened.log.position().end;
        prop_assert_eq!(opened.tail.map_or(0, |tail| tail.length), cut as u64 - kept);
        let next = opened.log.append(4, &[note(1)]).unwrap();
        prop_assert_eq!(next[0].seq, expected.len() as u64 + 1);
        drop(opened.log);
        let again = session.open();
        prop_assert!(again.tail.is_none() && again.damage.is_empty());
        prop_assert_eq!(seen(&again.entries[..expected.len()]), expected);
    }

    #[test]
    fn changed_bytes_never_give_a_record_that_was_not_written(
        groups in groups(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let (session, model) = written(&groups);
        let mut bytes = session.bytes();
        let mut touched = Vec::new();
        for (at, value) in changes {
            let at = at.index(bytes.len());
            bytes[at] = value;
            touched.push(at as u64);
        }
        session.write(&bytes);
        let found = match read_only(&session.folder, ID) {
            Ok(read) => seen(&read.entries),
            Err(error) => {
                prop_assert!(["log_unreadable", "log_incomplete"].contains(&error.code()));
                Vec::new()
            }
        };
        let mut start = 0;
        let mut joined = false;
        for (end, record) in &model.records {
            // A record none of whose bytes was chosen, nor the line feed before it, is kept.
            let hit = touched.iter().any(|at| (start..*end).contains(at));
            if !hit && !joined {
                prop_assert!(found.contains(record));
            }
            joined = touched.contains(&(end - 1));
            start = *end;
        }
        let all = model.within(u64::MAX);
        prop_assert!(found.iter().all(|record| all.contains(record)));
    }
}
