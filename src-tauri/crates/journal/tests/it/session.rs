//! A session in a temporary folder, and what tests say about its log.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_files::fault::{Fault, Operation, Plan};
use holdfast_files::{Disk, Faulty, Storage};
use holdfast_journal::{Batch, Entry, Holder, LOG_FILE, Lease, Log, NewRecord, Opened};

pub(crate) const ID: &str = "s-0001";

/// A record as a test compares it.
pub(crate) type Seen = (u64, String, String);

pub(crate) struct Session {
    _base: tempfile::TempDir,
    pub(crate) folder: PathBuf,
    pub(crate) faulty: Faulty,
}

impl Session {
    pub(crate) fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("sessions").join(ID);
        Self {
            _base: base,
            folder,
            faulty: Faulty::new(Arc::new(Disk)),
        }
    }

    pub(crate) fn storage(&self) -> Arc<dyn Storage> {
        Arc::new(self.faulty.clone())
    }

    pub(crate) fn create(&self) -> Log {
        let lease = Lease::create(&self.folder, &me()).unwrap();
        Log::create(self.storage(), lease, ID, 1, record("header", 0)).unwrap()
    }

    pub(crate) fn open(&self) -> Opened {
        let lease = Lease::acquire(&self.folder, &me()).unwrap();
        Log::open(self.storage(), lease, ID).unwrap()
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.folder.join(LOG_FILE)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        std::fs::read(self.log_path()).unwrap()
    }

    pub(crate) fn write(&self, bytes: &[u8]) {
        std::fs::write(self.log_path(), bytes).unwrap();
    }

    /// A session with `header` and notes 1 to `count`, closed.
    pub(crate) fn with_notes(count: u64) -> Self {
        let session = Self::new();
        let mut log = session.create();
        for number in 1..=count {
            log.append(number, &[note(number)]).unwrap();
        }
        session
    }

    pub(crate) fn fail(&self, fault: Fault, only: Operation, first: u64, last: u64) {
        self.faulty.inject(Plan {
            fault,
            first,
            last,
            only: Some(only),
        });
    }
}

pub(crate) fn me() -> Holder {
    Holder {
        pid: std::process::id(),
        host: "here".to_owned(),
        since: 7,
        socket: None,
    }
}

pub(crate) fn record(kind: &str, number: u64) -> NewRecord {
    NewRecord::new(kind, format!("{{\"n\":{number}}}"))
}

/// One record, `{"n":number}`, and one attempt, `a<number>`.
pub(crate) fn note(number: u64) -> Batch {
    Batch {
        records: vec![record("note", number)],
        attempts: vec![format!("a{number}")],
    }
}

pub(crate) fn seen(entries: &[Entry]) -> Vec<Seen> {
    entries
        .iter()
        .map(|entry| {
            (
                entry.seq,
                entry.kind.clone(),
                entry.payload.get().to_owned(),
            )
        })
        .collect()
}

/// `header` and notes 1 to `count` as they are seen.
pub(crate) fn notes(count: u64) -> Vec<Seen> {
    let mut all = vec![(1, "header".to_owned(), "{\"n\":0}".to_owned())];
    all.extend((1..=count).map(|n| (n + 1, "note".to_owned(), format!("{{\"n\":{n}}}"))));
    all
}

/// The lines of a log, each with its line feed.
pub(crate) fn lines(bytes: &[u8]) -> Vec<&[u8]> {
    bytes.split_inclusive(|byte| *byte == b'\n').collect()
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A loop count, scaled by `HOLDFAST_TEST_SCALE`.
pub(crate) fn scaled(count: u32) -> u32 {
    let scale = std::env::var("HOLDFAST_TEST_SCALE")
        .ok()
        .and_then(|text| text.parse::<f64>().ok())
        .unwrap_or(1.0);
    ((f64::from(count) * scale) as u32).max(1)
}
