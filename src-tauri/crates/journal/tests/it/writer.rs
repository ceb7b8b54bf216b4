//! The writer's task: groups, order, failures for all who wait, closing.

use std::future::Future;
use std::pin::pin;

use holdfast_files::fault::{Fault, Operation};
use holdfast_journal::{Lease, Writer};

use crate::session::{Session, me, note, notes, seen};

/// A runtime of one thread: nothing is taken from the queue before the test waits.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(pin!(work))
}

#[test]
fn appends_that_wait_are_written_and_synced_together_in_order() {
    let session = Session::new();
    let log = session.create();
    let found = block_on(async {
        let writer = Writer::spawn(log);
        let waiting: Vec<_> = (1..=200).map(|n| writer.append(n, note(n))).collect();
        let mut found = Vec::new();
        for answer in waiting {
            found.extend(answer.await.unwrap());
        }
        assert_eq!(writer.syncs(), 2, "the header, and all the rest");
        found
    });
    assert_eq!(found[199].at, 200);
    assert_eq!(seen(&found), notes(200)[1..]);
    assert_eq!(seen(&session.open().entries), notes(200));
}

#[test]
fn an_append_alone_is_one_sync() {
    let session = Session::new();
    let log = session.create();
    block_on(async {
        let writer = Writer::spawn(log);
        for number in 1..=3 {
            writer.append(number, note(number)).await.unwrap();
            assert_eq!(writer.syncs(), 1 + number);
        }
    });
}

#[test]
fn tr_48_a_failure_is_the_answer_to_all_that_wait() {
    let session = Session::new();
    let log = session.create();
    session.fail(Fault::Lose, Operation::Sync, 1, 1);
    block_on(async {
        let writer = Writer::spawn(log);
        let first = writer.append(1, note(7));
        let second = writer.append(1, note(8));
        // The index stands between: the third waits behind the group.
        let index = writer.write_index(2, "{}".to_owned());
        let third = writer.append(1, note(9));
        for answer in [first.await, second.await, third.await] {
            assert_eq!(answer.unwrap_err().code(), "write_failed");
        }
        assert!(index.await.unwrap(), "the reset is record 2");
        let after = writer.append(2, note(1)).await.unwrap();
        assert_eq!(after[0].seq, 3);
        writer.close().await.unwrap();
    });
    let kinds: Vec<String> = session
        .open()
        .entries
        .into_iter()
        .map(|entry| entry.kind)
        .collect();
    assert_eq!(kinds, ["header", "write_reset", "note"]);
}

#[test]
fn c12_the_writer_is_reopened_without_a_restart() {
    let session = Session::new();
    let log = session.create();
    session.fail(Fault::Torn, Operation::Append, 1, u64::MAX);
    block_on(async {
        let writer = Writer::spawn(log);
        for number in 7..9 {
            let error = writer.append(1, note(number)).await.unwrap_err();
            assert_eq!(error.code(), "storage_failed");
        }
        assert_eq!(writer.reopen(2).await.unwrap_err().code(), "storage_failed");
        session.faulty.heal();
        let reset = writer.reopen(3).await.unwrap().reset.unwrap();
        assert!(reset.payload.get().contains("[\"a7\"]"), "{reset:?}");
        assert_eq!(writer.append(4, note(1)).await.unwrap()[0].seq, 3);
    });
}

#[test]
fn a_bad_record_fails_its_own_caller_alone() {
    let session = Session::new();
    let log = session.create();
    block_on(async {
        let writer = Writer::spawn(log);
        let mut bad = note(9);
        bad.records[0].payload = "{".to_owned();
        let (one, two, three) = (
            writer.append(1, note(1)),
            writer.append(1, bad),
            writer.append(2, note(2)),
        );
        assert_eq!(one.await.unwrap()[0].seq, 2);
        assert_eq!(two.await.unwrap_err().code(), "record_invalid");
        assert_eq!(three.await.unwrap()[0].seq, 3);
        assert_eq!(writer.syncs(), 2);
    });
}

#[test]
fn closing_writes_what_waits_and_gives_the_lease_back() {
    let session = Session::new();
    let log = session.create();
    block_on(async {
        let writer = Writer::spawn(log);
        let other = writer.clone();
        let before = writer.append(1, note(1));
        let closed = writer.close();
        let after = other.append(2, note(2));
        assert_eq!(before.await.unwrap()[0].seq, 2);
        closed.await.unwrap();
        Lease::acquire(&session.folder, &me()).unwrap();
        assert_eq!(after.await.unwrap_err().code(), "log_closed");
        assert_eq!(other.close().await.unwrap_err().code(), "log_closed");
        assert_eq!(
            other.append(2, note(2)).await.unwrap_err().code(),
            "log_closed"
        );
    });
    assert_eq!(seen(&session.open().entries), notes(1));
}

#[test]
fn a_dropped_future_withdraws_nothing() {
    let session = Session::new();
    let log = session.create();
    block_on(async {
        let writer = Writer::spawn(log);
        drop(writer.append(1, note(1)));
        writer.append(2, note(2)).await.unwrap();
    });
    assert_eq!(seen(&session.open().entries), notes(2));
}

#[test]
fn many_tasks_share_syncs_and_keep_their_own_entries() {
    let session = Session::new();
    let log = session.create();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()
        .unwrap();
    let syncs = runtime.block_on(async {
        let writer = Writer::spawn(log);
        let tasks: Vec<_> = (0..20_u64)
            .map(|task| {
                let writer = writer.clone();
                tokio::spawn(async move {
                    let mut last = 0;
                    for step in 0..10 {
                        let number = task * 10 + step;
                        let entries = writer.append(1, note(number)).await.unwrap();
                        assert_eq!(entries[0].payload.get(), format!("{{\"n\":{number}}}"));
                        assert!(entries[0].seq > last, "acknowledged in order of seq");
                        last = entries[0].seq;
                    }
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        writer.close().await.unwrap();
        writer.syncs()
    });
    let opened = session.open();
    assert_eq!(opened.entries.len(), 201);
    assert!(opened.damage.is_empty());
    assert!(syncs <= 201, "{syncs} syncs");
}
