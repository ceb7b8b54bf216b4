//! The log's append. Floor: one write and one sync of the same bytes in a file on the same disk; for
//! callers at once, as many of them one after the other.
//!
//! A disk that is shared changes its pace from second to second, so floor and figure take turns, in
//! loops of our own: criterion would measure one after the other.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use holdfast_bench::conversation;
use holdfast_bench::samples::Samples;
use holdfast_bench::table::{Table, both};
use holdfast_files::{Disk, sync_file};
use holdfast_journal::{Batch, Holder, LOG_FILE, Lease, Log, Writer};
use tokio::runtime::Runtime;

const SESSION: &str = "0123456789abcdef0123456789abcdef";
const ROUNDS: usize = 400;
const CALLERS: usize = 8;

pub(crate) fn measure(folder: &Path, table: &mut Table) -> anyhow::Result<()> {
    let batch = Batch {
        records: conversation::lines(&conversation::start_batch(SESSION))?,
        attempts: Vec::new(),
    };
    let bytes = bytes_of(folder, &batch)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .build()?;
    let mut file = OpenOptions::new()
        .append(true)
        .create_new(true)
        .open(folder.join("bare"))?;
    let mut log = new_log(&folder.join("one"))?;
    let shared = new_log(&folder.join("many"))?;
    let writer = runtime.block_on(async { Writer::spawn(shared) });

    let (mut one, mut one_floor) = (Samples::default(), Samples::default());
    let (mut many, mut many_floor) = (Samples::default(), Samples::default());
    for _ in 0..ROUNDS {
        one_floor.push(timed(|| write_and_sync(&mut file, &bytes))?);
        one.push(timed(|| {
            log.append(1, std::slice::from_ref(&batch))?;
            Ok(())
        })?);
        many.push(timed(|| at_once(&runtime, &writer, &batch))?);
        many_floor.push(timed(|| {
            (0..CALLERS).try_for_each(|_| write_and_sync(&mut file, &bytes))
        })?);
    }
    let syncs = writer.syncs();
    runtime.block_on(writer.close())?;
    ensure!(
        log.syncs() > ROUNDS as u64,
        "{} syncs for {ROUNDS} appends",
        log.syncs()
    );
    table.row(
        &format!(
            "append and sync of a call's start batch, {} bytes",
            bytes.len()
        ),
        both(&one),
        both(&one_floor),
    );
    table.row(
        &format!(
            "{CALLERS} callers append such a batch at once ({syncs} syncs for {} appends)",
            ROUNDS * CALLERS
        ),
        both(&many),
        both(&many_floor),
    );
    Ok(())
}

fn timed(work: impl FnOnce() -> anyhow::Result<()>) -> anyhow::Result<Duration> {
    let since = Instant::now();
    work()?;
    Ok(since.elapsed())
}

fn at_once(runtime: &Runtime, writer: &Writer, batch: &Batch) -> anyhow::Result<()> {
    runtime.block_on(async {
        let callers = (0..CALLERS).map(|_| writer.append(1, batch.clone()));
        futures_util::future::try_join_all(callers).await?;
        Ok(())
    })
}

fn new_log(folder: &Path) -> anyhow::Result<Log> {
    let holder = Holder {
        pid: std::process::id(),
        host: String::new(),
        since: 1,
        socket: None,
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

fn write_and_sync(file: &mut File, bytes: &[u8]) -> anyhow::Result<()> {
    file.write_all(bytes)?;
    Ok(sync_file(file)?)
}
