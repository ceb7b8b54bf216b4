//! A session of 10,000 records: opened from its log, folded, and seen as a model sees it. Floors:
//! reading the file; a copy of the records; a copy of the messages.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use criterion::{BatchSize, Criterion};
use holdfast_bench::conversation::{self, RECORDS_OF_TURN};
use holdfast_controller::store::fold;
use holdfast_domain::transcript::record::Entry;
use holdfast_domain::transcript::session::Session;
use holdfast_domain::transcript::view;
use holdfast_files::Disk;
use holdfast_journal::{Batch, Holder, LOG_FILE, Lease, Log, read_only};

const SESSION: &str = "fedcba9876543210fedcba9876543210";
const RECORDS: usize = 10_000;

pub(crate) fn measure(criterion: &mut Criterion, folder: &Path) -> anyhow::Result<()> {
    let header = conversation::header(SESSION, "/project");
    let records: Vec<_> = std::iter::once(header)
        .chain(conversation::turns(SESSION, RECORDS / RECORDS_OF_TURN))
        .take(RECORDS)
        .collect();
    let folder = folder.join("long");
    let lines = conversation::lines(&records)?;
    write(&folder, lines)?;
    let entries: Vec<Entry> = (1..)
        .zip(records)
        .map(|(seq, record)| Entry {
            seq,
            at: seq,
            record,
        })
        .collect();
    let session = Session::from_entries(&entries);
    let messages = view::outbound(&session);
    let found = fold(&read_only(&folder, SESSION)?.entries);
    anyhow::ensure!(
        found.last_seq == RECORDS as u64 && view::outbound(&found) == messages,
        "the log does not hold what was written"
    );

    let mut group = criterion.benchmark_group("open");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(4));
    let file = folder.join(LOG_FILE);
    group.bench_function("floor", |bencher| bencher.iter(|| std::fs::read(&file)));
    group.bench_function("ours", |bencher| {
        bencher
            .iter_with_large_drop(|| read_only(&folder, SESSION).map(|read| fold(&read.entries)));
    });
    group.finish();

    let mut group = criterion.benchmark_group("fold");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(4));
    group.bench_function("floor", |bencher| {
        bencher.iter_with_large_drop(|| entries.clone());
    });
    group.bench_function("ours", |bencher| {
        bencher.iter_with_large_drop(|| Session::from_entries(&entries));
    });
    group.finish();

    let mut group = criterion.benchmark_group("view");
    group
        .sample_size(20)
        .measurement_time(Duration::from_secs(4));
    group.bench_function("floor", |bencher| {
        bencher.iter_with_large_drop(|| messages.clone());
    });
    group.bench_function("ours", |bencher| {
        bencher.iter_batched(
            || (),
            |()| {
                let messages = view::outbound(&session);
                let checked = view::check_pairing(&messages);
                (messages, checked)
            },
            BatchSize::LargeInput,
        );
    });
    group.finish();
    Ok(())
}

fn write(folder: &Path, lines: Vec<holdfast_journal::NewRecord>) -> anyhow::Result<()> {
    let holder = Holder {
        pid: std::process::id(),
        host: String::new(),
        since: 1,
        socket: None,
    };
    let mut lines = lines.into_iter();
    let header = lines.next().context("a header")?;
    let lease = Lease::create(folder, &holder)?;
    let mut log = Log::create(Arc::new(Disk), lease, SESSION, 1, header)?;
    let batch = Batch {
        records: lines.collect(),
        attempts: Vec::new(),
    };
    log.append(1, &[batch])?;
    Ok(())
}
