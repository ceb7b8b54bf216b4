//! A data folder with 2,000 sessions, as 2,000 days of work would leave it, and one with none.
//!
//! Guarantee: logs and indexes are written by the journal; a list that does not come from the
//! indexes is noticed, because the titles differ.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use holdfast_bench::conversation;
use holdfast_bench::place::{self, Programs};
use holdfast_files::Disk;
use holdfast_journal::{Batch, Holder, Lease, Log};
use holdfast_testkit::HostOptions;
use tempfile::TempDir;

use crate::host;

/// How many sessions.
pub(crate) const SESSIONS: usize = 2000;
const TURNS: usize = 6;
/// In indexes alone.
const TITLE: &str = "Title from the index";

pub(crate) struct Stored {
    folder: TempDir,
}

impl Stored {
    /// Writes all of it; takes half a minute for the syncs.
    pub(crate) fn new() -> anyhow::Result<Self> {
        let folder = place::scratch()?;
        std::fs::create_dir(folder.path().join("workspace"))?;
        let stored = Self { folder };
        println!("writing {SESSIONS} sessions");
        for number in 0..SESSIONS {
            stored.write(number)?;
        }
        Ok(stored)
    }

    /// With the sessions.
    pub(crate) fn full(&self) -> PathBuf {
        self.folder.path().join("full")
    }

    /// Without any.
    pub(crate) fn empty(&self) -> PathBuf {
        self.folder.path().join("empty")
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.folder.path().join("workspace")
    }

    /// A host on one of the folders.
    pub(crate) fn host(&self, programs: &Programs, data: &Path) -> HostOptions {
        host::options(programs, data, &self.workspace())
    }

    fn write(&self, number: usize) -> anyhow::Result<()> {
        let id = session_id(number);
        let folder = self.full().join("sessions").join(&id);
        let holder = Holder {
            pid: std::process::id(),
            host: String::new(),
            since: 1,
            socket: None,
        };
        let workspace = self.workspace().to_string_lossy().into_owned();
        let header = conversation::lines(&[conversation::header(&id, &workspace)])?;
        let header = header.into_iter().next().context("a header")?;
        let lease = Lease::create(&folder, &holder)?;
        let mut log = Log::create(Arc::new(Disk), lease, &id, 1, header)?;
        let batch = Batch {
            records: conversation::lines(&conversation::turns(&id, TURNS))?,
            attempts: Vec::new(),
        };
        log.append(2, &[batch])?;
        let summary = serde_json::json!({
            "title": TITLE,
            "workspace": workspace,
            "updated_at": 2,
            "turn_status": "completed",
            "pending_prompt": false,
            "unresolved": 0,
            "archived": false,
            "open": 0,
        });
        let seq = log.position().seq;
        ensure!(log.write_index(seq, &summary.to_string())?, "no index");
        // Commands ran here once, and nothing of them is left.
        std::fs::create_dir(folder.join("effects"))?;
        Ok(())
    }
}

/// 32 hex digits.
pub(crate) fn session_id(number: usize) -> String {
    format!("{:032x}", number + 1)
}

/// Fails when the list was not made from the indexes, or is not a whole page.
pub(crate) fn check_list(page: &serde_json::Value) -> anyhow::Result<()> {
    let rows = page["items"].as_array().context("a list of sessions")?;
    ensure!(rows.len() == 50, "the list has {} rows", rows.len());
    let from_index = rows.iter().all(|row| row["title"] == TITLE);
    ensure!(from_index, "the list was not made from the indexes");
    Ok(())
}
