//! Programs and whole turns: a supervised command, a host's start, its memory, the way of a delta
//! from the model to a client, the syncs of a call, the states of many sessions. Words on the command line choose among them.
//!
//! Guarantee: figure and floor take turns, so that a busy machine slows both.

mod command;
mod deltas;
mod host;
mod memory;
mod start;
mod states;
mod stored;
mod syncs;

use holdfast_bench::place;
use holdfast_bench::table::Table;

fn main() -> anyhow::Result<()> {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let wanted = |name: &str| words.is_empty() || words.iter().any(|word| word == name);
    let programs = place::programs()?;
    let mut table = Table::default();
    if wanted("command") {
        command::measure(&programs, &mut table)?;
    }
    if wanted("deltas") {
        deltas::measure(&programs, &mut table)?;
    }
    if wanted("syncs") {
        syncs::measure(&mut table)?;
    }
    if wanted("states") {
        states::measure(&programs, &mut table)?;
    }
    if wanted("start") || wanted("memory") {
        let data = stored::Stored::new()?;
        if wanted("start") {
            start::measure(&programs, &data, &mut table)?;
        }
        if wanted("memory") {
            memory::measure(&programs, &data, &mut table)?;
        }
    }
    println!("\n{table}");
    Ok(())
}
