//! The table at the end: each figure beside its floor, and whether the aim was kept.

use std::fmt;
use std::time::Duration;

use crate::samples::Samples;

/// Rows in the order in which they were measured. Its text is a Markdown table.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<[String; 4]>,
}

impl Table {
    /// A figure without an aim of its own.
    pub fn row(&mut self, what: &str, figure: impl Into<String>, floor: impl Into<String>) {
        self.push(what, figure.into(), floor.into(), String::new());
    }

    /// A figure that was to reach something.
    pub fn aimed(
        &mut self,
        what: &str,
        figure: impl Into<String>,
        floor: impl Into<String>,
        aim: &str,
        kept: bool,
    ) {
        let verdict = if kept { "kept" } else { "MISSED" };
        self.push(
            what,
            figure.into(),
            floor.into(),
            format!("{aim}: {verdict}"),
        );
    }

    fn push(&mut self, what: &str, figure: String, floor: String, aim: String) {
        self.rows.push([what.to_owned(), figure, floor, aim]);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["measured", "figure", "floor", "aim"].map(str::to_owned);
        let mut widths = [0; 4];
        for row in self.rows.iter().chain([&head]) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let rule = widths.map(|width| "-".repeat(width));
        for row in [&head, &rule].into_iter().chain(&self.rows) {
            for (cell, width) in row.iter().zip(widths) {
                write!(out, "| {cell:width$} ")?;
            }
            writeln!(out, "|")?;
        }
        Ok(())
    }
}

/// Median and p99 of samples.
pub fn both(samples: &Samples) -> String {
    format!("{} (p99 {})", time(samples.median()), time(samples.p99()))
}

/// A time with three digits and its unit.
pub fn time(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    let (value, unit) = if micros < 1e3 {
        (micros, "µs")
    } else if micros < 1e6 {
        (micros / 1e3, "ms")
    } else {
        (micros / 1e6, "s")
    };
    let digits = if value < 10.0 {
        2
    } else {
        usize::from(value < 100.0)
    };
    format!("{value:.digits$} {unit}")
}
