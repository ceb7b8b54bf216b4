//! Every operation of a session's life fails once, several times or for good, in every way: what
//! was acknowledged is there, nothing else is claimed, and the log works or says that it doesn't
//! (TR-48).

use std::io::ErrorKind;

use holdfast_files::fault::{Fault, Plan};
use holdfast_journal::{Batch, JournalError, Lease, Log, WRITE_RESET};

use crate::session::{ID, Seen, Session, me, note, record, seen};

/// What a run learnt from the answers it got.
#[derive(Default)]
struct Life {
    /// Every acknowledged record, resets included, in order.
    acknowledged: Vec<Seen>,
    /// Attempts of batches that were answered with an error after they were tried.
    refused: Vec<String>,
    /// Whether the log was created.
    created: bool,
}

impl Life {
    fn append(&mut self, log: &mut Log, batches: &[Batch]) {
        let stopped = log.is_failed();
        match log.append(5, batches) {
            Ok(entries) => {
                assert!(!stopped, "a log that stopped takes nothing");
                self.acknowledged.extend(seen(&entries));
            }
            Err(JournalError::WriteFailed { reset, .. }) => {
                assert!(!stopped);
                assert!(!log.is_failed());
                self.acknowledged.extend(seen(&[*reset]));
                self.refuse(batches);
            }
            Err(JournalError::StorageFailed { .. }) => {
                assert!(log.is_failed());
                if !stopped {
                    self.refuse(batches);
                }
            }
            Err(other) => panic!("{other:?}"),
        }
    }

    fn refuse(&mut self, batches: &[Batch]) {
        let attempts = batches.iter().flat_map(|batch| batch.attempts.clone());
        self.refused.extend(attempts);
    }

    /// Reopens a log that stopped; afterwards it works.
    fn mend(&mut self, session: &Session, log: &mut Log) {
        if log.is_failed() {
            session.faulty.heal();
            let reset = log.reopen(6).unwrap().reset.unwrap();
            self.acknowledged.extend(seen(&[reset]));
        }
    }
}

/// Create, append, append a group, close, open, append, append; then, without faults, one more.
fn live(session: &Session) -> Life {
    let mut life = Life::default();
    let lease = Lease::create(&session.folder, &me()).unwrap();
    let created = Log::create(session.storage(), lease, ID, 1, record("header", 0));
    let Ok(mut log) = created else {
        assert_eq!(created.unwrap_err().code(), "storage_error");
        return life;
    };
    life.created = true;
    life.acknowledged
        .push((1, "header".to_owned(), "{\"n\":0}".to_owned()));
    life.append(&mut log, &[note(1)]);
    life.append(&mut log, &[note(2), note(3)]);
    life.mend(session, &mut log);
    drop(log);

    let lease = Lease::acquire(&session.folder, &me()).unwrap();
    let mut log = match Log::open(session.storage(), lease, ID) {
        Ok(opened) => opened.log,
        Err(error) => {
            assert_eq!(error.code(), "storage_error");
            session.faulty.heal();
            session.open().log
        }
    };
    life.append(&mut log, &[note(4)]);
    life.append(&mut log, &[note(5)]);
    session.faulty.heal();
    life.mend(session, &mut log);
    let entries = log.append(7, &[note(6)]).unwrap();
    life.acknowledged.extend(seen(&entries));
    life
}

/// What is in the log after all is exactly what was acknowledged.
fn check(session: &Session, life: &Life, context: &str) {
    if !life.created {
        // Nothing, a part of the header, or the header alone: never a record that was not asked for.
        match Log::open(
            session.storage(),
            Lease::acquire(&session.folder, &me()).unwrap(),
            ID,
        ) {
            Ok(opened) => assert_eq!(opened.entries.len(), 1, "{context}"),
            Err(error) => assert!(
                ["session_not_found", "log_incomplete"].contains(&error.code()),
                "{context}: {error:?}"
            ),
        }
        return;
    }
    let opened = session.open();
    assert_eq!(seen(&opened.entries), life.acknowledged, "{context}");
    assert!(opened.damage.is_empty(), "{context}");
    assert_eq!(opened.tail, None, "{context}");
    let said: Vec<String> = opened
        .entries
        .iter()
        .filter(|entry| entry.kind == WRITE_RESET)
        .flat_map(|entry| {
            let payload: serde_json::Value = serde_json::from_str(entry.payload.get()).unwrap();
            let attempts = payload["not_started"].as_array().unwrap().clone();
            attempts
                .into_iter()
                .map(|attempt| attempt.as_str().unwrap().to_owned())
        })
        .collect();
    assert_eq!(said, life.refused, "{context}");
}

fn faultless_operations() -> u64 {
    let session = Session::new();
    live(&session);
    session.faulty.operations()
}

const FAULTS: [Fault; 5] = [
    Fault::Fail(ErrorKind::StorageFull),
    Fault::Short,
    Fault::Torn,
    Fault::Lose,
    Fault::Drop,
];

fn every_plan(mut work: impl FnMut(&Session, Plan)) {
    let operations = faultless_operations();
    let mut hits = 0;
    for fault in FAULTS {
        for first in 1..=operations {
            for last in [first, first + 1, first + 4, u64::MAX] {
                let plan = Plan {
                    fault,
                    first,
                    last,
                    only: None,
                };
                let session = Session::new();
                session.faulty.inject(plan);
                work(&session, plan);
                hits += u64::from(session.faulty.hits() > 0);
            }
        }
    }
    assert!(hits > 300, "the plans met {hits} runs");
}

#[test]
fn tr_48_every_operation_fails_in_every_way() {
    every_plan(|session, plan| {
        // A disk that drops a sync can't be caught before the power goes.
        let life = live(session);
        session.faulty.heal();
        check(session, &life, &format!("{plan:?}"));
    });
}

#[test]
fn tr_48_what_was_acknowledged_survives_a_power_loss() {
    every_plan(|session, plan| {
        let life = live(session);
        session.faulty.heal();
        session.faulty.power_loss().unwrap();
        if plan.fault != Fault::Drop {
            check(session, &life, &format!("{plan:?}"));
            return;
        }
        // A device that lies about syncs may lose records; what is left is a true beginning.
        let lease = Lease::acquire(&session.folder, &me()).unwrap();
        if let Ok(opened) = Log::open(session.storage(), lease, ID) {
            let left = seen(&opened.entries);
            assert!(
                life.acknowledged.starts_with(&left) || !life.created,
                "{plan:?}"
            );
        }
    });
}
