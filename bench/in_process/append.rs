//! The log's append. Floor: one write and one sync of the same bytes in a file on the same disk; for
//! callers at once, as many of them one after the other.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Context;
use criterion::{BenchmarkGroup, Criterion, SamplingMode, measurement::WallTime};
use holdfast_bench::conversation;
use holdfast_files::{Disk, sync_file};
use holdfast_journal::{Batch, Holder, LOG_FILE, Lease, Log, Writer};

const SESSION: &str = "0123456789abcdef0123456789abcdef";
const CALLERS: usize = 8;

pub(crate) fn measure(criterion: &mut Criterion, folder: &Path) -> anyhow::Result<()> {
    let batch = Batch {
        records: conversation::lines(&conversation::start_batch(SESSION))?,
        attempts: Vec::new(),
    };
    let bytes = bytes_of(folder, &batch)?;
    println!("a start batch has {} bytes in the log", bytes.len());
    one(criterion, folder, &batch, &bytes)?;
    many(criterion, folder, &batch, &bytes)
}

fn group<'a>(criterion: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(name);
    group
        .sampling_mode(SamplingMode::Flat)
        .sample_size(50)
        .measurement_time(Duration::from_secs(4))
        .warm_up_time(Duration::from_secs(1));
    group
}

fn one(
    criterion: &mut Criterion,
    folder: &Path,
    batch: &Batch,
    bytes: &[u8],
) -> anyhow::Result<()> {
    let mut group = group(criterion, "append");
    let mut file = bare(&folder.join("bare"))?;
    let mut failed = None;
    group.bench_function("floor", |bencher| {
        bencher.iter(|| keep(&mut failed, write_and_sync(&mut file, bytes)));
    });
    let mut log = new_log(&folder.join("one"))?;
    group.bench_function("ours", |bencher| {
        bencher.iter(|| {
            let appended = log.append(1, std::slice::from_ref(batch));
            keep(&mut failed, appended.map(drop).map_err(Into::into));
        });
    });
    group.finish();
    failed.map_or(Ok(()), Err)
}

fn many(
    criterion: &mut Criterion,
    folder: &Path,
    batch: &Batch,
    bytes: &[u8],
) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()?;
    let mut group = group(criterion, "append_by_8");
    let mut file = bare(&folder.join("bare-by-8"))?;
    let mut failed = None;
    group.bench_function("floor", |bencher| {
        bencher.iter(|| {
            for _ in 0..CALLERS {
                keep(&mut failed, write_and_sync(&mut file, bytes));
            }
        });
    });
    let log = new_log(&folder.join("many"))?;
    let writer = runtime.block_on(async { Writer::spawn(log) });
    let mut rounds = 0;
    group.bench_function("ours", |bencher| {
        bencher.iter_custom(|iterations| {
            rounds += iterations;
            let since = Instant::now();
            let done = runtime.block_on(async {
                for _ in 0..iterations {
                    let callers = (0..CALLERS).map(|_| writer.append(1, batch.clone()));
                    futures_util::future::try_join_all(callers).await?;
                }
                anyhow::Ok(())
            });
            keep(&mut failed, done);
            since.elapsed()
        });
    });
    group.finish();
    if rounds > 0 {
        println!(
            "{CALLERS} callers, {rounds} rounds: {} syncs for {} appends",
            writer.syncs(),
            rounds * CALLERS as u64
        );
    }
    runtime.block_on(writer.close())?;
    failed.map_or(Ok(()), Err)
}

/// The first failure ends the measurement, once criterion lets go.
fn keep(failed: &mut Option<anyhow::Error>, done: anyhow::Result<()>) {
    if let Err(error) = done {
        failed.get_or_insert(error);
    }
}

fn new_log(folder: &Path) -> anyhow::Result<Log> {
    let holder = Holder {
        pid: std::process::id(),
        host: String::new(),
        since: 1,
    };
    let lease = Lease::create(folder, &holder)?;
    let header = conversation::lines(&[conversation::header(SESSION, "/project")])?;
    let header = header.into_iter().next().context("a header")?;
    Ok(Log::create(Arc::new(Disk), lease, SESSION, 1, header)?)
}

/// What the batch is in the log, byte for byte.
fn bytes_of(folder: &Path, batch: &Batch) -> anyhow::Result<Vec<u8>> {
    let folder = folder.join("bytes");
    let mut log = new_log(&folder)?;
    let before = usize::try_from(log.position().end)?;
    log.append(1, std::slice::from_ref(batch))?;
    Ok(std::fs::read(folder.join(LOG_FILE))?.split_off(before))
}

fn bare(path: &Path) -> anyhow::Result<File> {
    Ok(OpenOptions::new()
        .append(true)
        .create_new(true)
        .open(path)?)
}

fn write_and_sync(file: &mut File, bytes: &[u8]) -> anyhow::Result<()> {
    file.write_all(bytes)?;
    Ok(sync_file(file)?)
}
