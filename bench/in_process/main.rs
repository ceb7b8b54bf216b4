//! Functions that are called in this process: the log's append, the fold and the view of a session,
//! digests, and the parser of event streams. The table at the end has medians. What does not wait
//! for a disk is timed by criterion.

mod append;
mod session;
mod stream;
mod text;

use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use criterion::Criterion;
use holdfast_bench::place;
use holdfast_bench::table::{Table, time};

fn main() -> anyhow::Result<()> {
    let scratch = place::scratch()?;
    let mut table = Table::default();
    append::measure(scratch.path(), &mut table)?;
    // A folder of this run alone: a figure of an earlier run can't get into the table.
    let results = scratch.path().join("results");
    let mut criterion = Criterion::default()
        .output_directory(&results)
        .configure_from_args();
    session::measure(&mut criterion, scratch.path())?;
    text::measure(&mut criterion)?;
    stream::measure(&mut criterion)?;

    for (what, group) in [
        ("open a log of 10,000 records: read, verify, fold", "open"),
        ("fold of 10,000 records", "fold"),
        (
            "outbound view of 10,000 records, and its pairing check",
            "view",
        ),
        ("check and digest of 64 KiB of arguments", "digest"),
        ("event stream of 10,000 deltas over loopback", "sse"),
    ] {
        let (Some(figure), Some(floor)) = (
            median(&results, group, "ours")?,
            median(&results, group, "floor")?,
        ) else {
            continue;
        };
        table.row(what, time(figure), time(floor));
    }
    println!("\n{table}");
    Ok(())
}

/// `None` when it was filtered out.
fn median(results: &Path, group: &str, name: &str) -> anyhow::Result<Option<Duration>> {
    let file = results.join(group).join(name).join("new/estimates.json");
    if !file.exists() {
        return Ok(None);
    }
    let estimates: serde_json::Value = serde_json::from_slice(&std::fs::read(&file)?)?;
    let nanos = estimates["median"]["point_estimate"]
        .as_f64()
        .with_context(|| format!("no median of {group}/{name}"))?;
    Ok(Some(Duration::from_secs_f64(nanos / 1e9)))
}
