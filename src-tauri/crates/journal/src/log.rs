//! A session's log, open for writing: create, open, append, and the way back after a failure.
//!
//! Guarantees: an append is one write and one sync for all its records, and is acknowledged only
//! after the sync; after a failed write or sync the log is cut to its last synced length and a
//! `write_reset` record made durable before anything else is written (TR-48); a sync is never
//! simply repeated; nothing is written after an unterminated line; an unverified tail is copied
//! aside before it is cut (C10).

mod digest;
mod open;
mod recover;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_files::{Storage, StoredFile};
use sha2::{Digest, Sha256};

use crate::check;
use crate::error::JournalError;
use crate::index;
use crate::lease::Lease;
use crate::line::{Entry, check_kind, encode, payload};

pub use open::{Opened, TailRepair};
pub use recover::Reopened;

/// The log's file name in the session's folder.
pub const LOG_FILE: &str = "log.jsonl";

/// The kind of the one record that the log itself writes: after a failure, with the payload
/// `{"not_started":[attempt ids],"lost_records":n}` (TR-48).
pub const WRITE_RESET: &str = "write_reset";

/// A record to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRecord {
    /// What it is: 1 to 64 of `[A-Za-z0-9_.:-]`.
    pub kind: String,
    /// Its content, a JSON text. Kept byte for byte, but for white space around it and raw line
    /// breaks between its tokens.
    pub payload: String,
    /// It gets a last member of its own, [`LOG_SHA256`]; its payload must be an object without it.
    pub is_bound: bool,
}

impl NewRecord {
    /// A record of this kind and JSON text.
    pub fn new(kind: impl Into<String>, payload: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            payload: payload.into(),
            is_bound: false,
        }
    }

    /// As [`NewRecord::new`], and bound to everything before it: the log adds the digest of all its
    /// bytes before this record's line, those of the same write too.
    pub fn bound(kind: impl Into<String>, payload: impl Into<String>) -> Self {
        Self {
            is_bound: true,
            ..Self::new(kind, payload)
        }
    }
}

/// The member that binds a record to the log before it: SHA-256, 64 lower-case hex digits.
pub const LOG_SHA256: &str = "log_sha256";

/// Records that belong together: all of them are acknowledged, or none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Batch {
    /// The records, in order.
    pub records: Vec<NewRecord>,
    /// The attempts that did not start if this can't be written.
    pub attempts: Vec<String>,
}

/// Where a record is in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// Where its line begins, in bytes.
    pub offset: u64,
    /// Where its line ends, line feed included, in bytes.
    pub end: u64,
    /// Its number.
    pub seq: u64,
    /// Its checksum.
    pub crc: u32,
}

impl Position {
    /// Before the first record.
    const START: Self = Self {
        offset: 0,
        end: 0,
        seq: 0,
        crc: 0,
    };
}

/// What a failure left to be said by the next `write_reset`.
#[derive(Debug, Clone)]
struct Pending {
    attempts: Vec<String>,
    lost: u64,
    source: Arc<io::Error>,
}

/// A session's log, open for writing.
#[derive(Debug)]
pub struct Log {
    storage: Arc<dyn Storage>,
    session: String,
    path: PathBuf,
    file: Box<dyn StoredFile>,
    /// The last acknowledged record; the log is durable up to its end.
    last: Position,
    /// CRC-32C of all bytes up to there.
    content: u32,
    /// SHA-256 of the same bytes, from the first record on that needed it.
    digest: Option<Sha256>,
    /// Set while the log may not be written.
    failed: Option<Pending>,
    syncs: Arc<AtomicU64>,
    lease: Lease,
}

/// Lines ready to be written, and what they will be once they are.
struct Encoded {
    bytes: Vec<u8>,
    entries: Vec<Entry>,
    last: Position,
}

impl Log {
    /// Creates a session's log with its header record, durable with its folder entry. `at` in
    /// milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// `session_exists` when there is a log; `storage_error` when it can't be made durable: then
    /// nothing is left of it, or a file that opens as `log_incomplete` or with the header alone.
    pub fn create(
        storage: Arc<dyn Storage>,
        lease: Lease,
        session_id: &str,
        at: u64,
        header: NewRecord,
    ) -> Result<Self, JournalError> {
        check::session_id(session_id)?;
        let encoded = encode_from(
            session_id,
            Position::START,
            Some(&Sha256::new()),
            std::iter::once((at, std::slice::from_ref(&header))),
        )?;
        let failed = JournalError::io("creating the session log");
        let path = lease.folder().join(LOG_FILE);
        let file = storage
            .create_new(&path)
            .map_err(|source| match source.kind() {
                io::ErrorKind::AlreadyExists => JournalError::Exists,
                _ => failed(source),
            })?;
        let mut log = Self {
            storage,
            session: session_id.to_owned(),
            path,
            file,
            last: Position::START,
            content: 0,
            digest: None,
            failed: None,
            syncs: Arc::default(),
            lease,
        };
        let written = log
            .write(&encoded.bytes)
            .and_then(|()| log.storage.sync_folder(log.lease.folder()));
        if let Err(source) = written {
            let _ = log.storage.remove(&log.path);
            return Err(failed(source));
        }
        log.accept(&encoded);
        Ok(log)
    }

    /// Appends batches: one write, one sync. Answers their entries in order of `seq`, durable.
    /// `at` in milliseconds since the Unix epoch. Without records nothing is done.
    ///
    /// # Errors
    /// `record_invalid`, `record_too_large`: nothing was tried. `write_failed`: none of it is in
    /// the log, a `write_reset` is, and the log works. `storage_failed`: the log may not be written
    /// until [`Log::reopen`] succeeds (TR-48).
    pub fn append(&mut self, at: u64, batches: &[Batch]) -> Result<Vec<Entry>, JournalError> {
        let timed: Vec<(u64, &Batch)> = batches.iter().map(|batch| (at, batch)).collect();
        self.append_timed(&timed)
    }

    /// As [`Log::append`], each batch with its own time.
    pub(crate) fn append_timed(
        &mut self,
        batches: &[(u64, &Batch)],
    ) -> Result<Vec<Entry>, JournalError> {
        if let Some(pending) = &self.failed {
            return Err(JournalError::StorageFailed {
                source: Arc::clone(&pending.source),
            });
        }
        let records = batches
            .iter()
            .map(|(at, batch)| (*at, batch.records.as_slice()));
        if batches.iter().any(|(_, batch)| is_bound(batch)) {
            self.begin_digest()?;
        }
        let encoded = encode_from(&self.session, self.last, self.digest.as_ref(), records)?;
        if encoded.entries.is_empty() {
            return Ok(Vec::new());
        }
        match self.write(&encoded.bytes) {
            Ok(()) => {
                self.accept(&encoded);
                Ok(encoded.entries)
            }
            Err(source) => {
                let attempts = batches
                    .iter()
                    .flat_map(|(_, batch)| batch.attempts.iter().cloned())
                    .collect();
                let at = batches.last().map_or(0, |(at, _)| *at);
                Err(self.fail(at, source, attempts, encoded.entries.len() as u64))
            }
        }
    }

    /// Writes the derived index with the caller's summary of everything up to record `seq`. Answers
    /// `false`, and writes nothing, when the log has gone on since or may not be written.
    ///
    /// # Errors
    /// `record_invalid` when `summary` is not JSON; `storage_error`. The log is as it was.
    pub fn write_index(&self, seq: u64, summary: &str) -> Result<bool, JournalError> {
        if seq != self.last.seq || self.failed.is_some() {
            return Ok(false);
        }
        index::write(self.lease.folder(), &self.session, self.last, summary)?;
        Ok(true)
    }

    /// The session's id.
    pub fn session_id(&self) -> &str {
        &self.session
    }

    /// The session's folder.
    pub fn folder(&self) -> &Path {
        self.lease.folder()
    }

    /// Where the last acknowledged record is.
    pub fn position(&self) -> Position {
        self.last
    }

    /// Whether the log may not be written until it is reopened.
    pub fn is_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// How many syncs of the log succeeded since it was opened.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    pub(crate) fn sync_counter(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.syncs)
    }

    /// One write, one sync. The lengths are compared because a file that is not as long as it must
    /// be means that the bytes, or what stands before them, are not what was acknowledged.
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.expect_length(self.last.end)?;
        let written = self.file.append(bytes)?;
        if written != bytes.len() {
            return Err(io::Error::new(
                io::ErrorKind::StorageFull,
                format!("{written} of {} bytes were written", bytes.len()),
            ));
        }
        self.expect_length(self.last.end + bytes.len() as u64)?;
        self.file.sync()?;
        self.syncs.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    fn expect_length(&self, expected: u64) -> io::Result<()> {
        let found = self.file.length()?;
        if found == expected {
            Ok(())
        } else {
            Err(io::Error::other(format!(
                "the log has {found} bytes where it must have {expected}"
            )))
        }
    }

    /// Takes what was written and synced as acknowledged.
    fn accept(&mut self, encoded: &Encoded) {
        self.content = crc32c::crc32c_append(self.content, &encoded.bytes);
        if let Some(digest) = &mut self.digest {
            digest.update(&encoded.bytes);
        }
        self.last = encoded.last;
    }
}

/// Whether every record of a batch can become a line.
pub(crate) fn check_batch(batch: &Batch) -> Result<(), JournalError> {
    for record in &batch.records {
        check_kind(&record.kind)?;
        let payload = payload(&record.payload)?;
        if record.is_bound {
            digest::bind(&payload, &Sha256::new())?;
        }
    }
    Ok(())
}

fn is_bound(batch: &Batch) -> bool {
    batch.records.iter().any(|record| record.is_bound)
}

/// Encodes records as the lines that follow `last`. `digest` is that of the log so far, for records
/// that are bound to it.
fn encode_from<'a>(
    session: &str,
    last: Position,
    digest: Option<&Sha256>,
    batches: impl Iterator<Item = (u64, &'a [NewRecord])>,
) -> Result<Encoded, JournalError> {
    let mut encoded = Encoded {
        bytes: Vec::new(),
        entries: Vec::new(),
        last,
    };
    for (at, records) in batches {
        for record in records {
            check_kind(&record.kind)?;
            let mut content = payload(&record.payload)?;
            if let (true, Some(digest)) = (record.is_bound, digest) {
                content = digest::bind(&content, &digest.clone().chain_update(&encoded.bytes))?;
            }
            let entry = Entry {
                seq: encoded.last.seq + 1,
                at,
                kind: record.kind.clone(),
                payload: content,
            };
            let (line, crc) = encode(session, &entry);
            encoded.last = Position {
                offset: encoded.last.end,
                end: encoded.last.end + line.len() as u64,
                seq: entry.seq,
                crc,
            };
            encoded.bytes.extend_from_slice(line.as_bytes());
            encoded.entries.push(entry);
        }
    }
    Ok(encoded)
}
