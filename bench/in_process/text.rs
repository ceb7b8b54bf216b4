//! The check and the canonical digest of a call's arguments (TR-04, TR-05). Floor: SHA-256 of the
//! same bytes.

use std::hint::black_box;

use criterion::Criterion;
use holdfast_domain::canonical::{check_arguments, digest, sha256_hex};

const BYTES: usize = 64 * 1024;

pub(crate) fn measure(criterion: &mut Criterion) -> anyhow::Result<()> {
    let line = "let greeting = \"Hello\";\tprintln!(\"{greeting}, {name}\"); // naïve\n";
    let content: String = line.chars().cycle().take(BYTES * 9 / 10).collect();
    let raw = serde_json::json!({ "path": "src/main.rs", "content": content }).to_string();
    println!("the arguments have {} bytes", raw.len());
    check_arguments(&raw)?;
    let mut group = criterion.benchmark_group("digest");
    group.bench_function("floor", |bencher| {
        bencher.iter(|| sha256_hex(black_box(raw.as_bytes())));
    });
    group.bench_function("ours", |bencher| {
        bencher.iter(|| check_arguments(black_box(&raw)).map(|value| digest(&value)));
    });
    group.finish();
    Ok(())
}
