//! Generated traces of runtime projections as a program, for the pages' tests.
//!
//! `holdfast-runtime-traces --seed N --count N` prints one trace a line, as JSON.

use std::io::{BufWriter, Write};

use anyhow::{Context, bail};
use holdfast_testkit::runtime_traces::{Chance, trace};

fn main() -> anyhow::Result<()> {
    let (mut seed, mut count) = (1, 10_000);
    let mut arguments = std::env::args().skip(1);
    while let Some(name) = arguments.next() {
        let value = arguments
            .next()
            .with_context(|| format!("{name} wants a value"))?;
        let number = value
            .parse()
            .with_context(|| format!("{name} wants a number and not {value}"))?;
        match name.as_str() {
            "--seed" => seed = number,
            "--count" => count = number,
            _ => bail!("unknown argument {name}; known are --seed N and --count N"),
        }
    }
    let mut chance = Chance::new(seed);
    let mut out = BufWriter::new(std::io::stdout().lock());
    for _ in 0..count {
        serde_json::to_writer(&mut out, &trace(&mut chance))?;
        out.write_all(b"\n")?;
    }
    Ok(out.flush()?)
}
