//! A session's log and its fold, kept in step.
//!
//! Guarantee: a record is in the fold only when it is durable; after a failed write the fold is what
//! it was (TR-48).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_api::ApiError;
use holdfast_domain::recovery::restart::Damage;
use holdfast_domain::transcript::record::{Entry, Record};
use holdfast_domain::transcript::session::Session;
use holdfast_files::Storage;
use holdfast_journal::{
    Batch, Entry as Line, Holder, JournalError, Lease, Log, NewRecord, Spill, Writer,
};

/// A session that this process may write.
#[derive(Debug)]
pub struct Store {
    /// The fold of all durable records.
    pub session: Session,
    /// Large output beside the log.
    pub spill: Spill,
    writer: Writer,
    folder: PathBuf,
    failed: bool,
}

/// What opening found besides the records.
#[derive(Debug, Clone, Default)]
pub struct Condition {
    /// Damaged ranges.
    pub damage: Vec<Damage>,
    /// Bytes of an unverified tail, and the file that keeps them.
    pub tail: Option<(u64, String)>,
}

impl Store {
    /// Creates a session's log with its header.
    ///
    /// # Errors
    /// What the journal says.
    pub fn create(
        storage: Arc<dyn Storage>,
        folder: &Path,
        session_id: &str,
        holder: &Holder,
        at: u64,
        header: Record,
    ) -> Result<Self, JournalError> {
        let lease = Lease::create(folder, holder)?;
        let line = line_of(&header)?;
        let log = Log::create(Arc::clone(&storage), lease, session_id, at, line)?;
        let mut session = Session::default();
        session.apply(&Entry {
            seq: 1,
            at,
            record: header,
        });
        Ok(Self {
            session,
            spill: Spill::new(storage, folder),
            writer: Writer::spawn(log),
            folder: folder.to_path_buf(),
            failed: false,
        })
    }

    /// Opens a session for writing. Blocking work is done by the caller's thread.
    ///
    /// # Errors
    /// What the journal says, `session_held` with the holder among it.
    pub fn open(
        storage: Arc<dyn Storage>,
        folder: &Path,
        session_id: &str,
        holder: &Holder,
    ) -> Result<(Self, Condition), JournalError> {
        let lease = Lease::acquire(folder, holder)?;
        let opened = Log::open(Arc::clone(&storage), lease, session_id)?;
        let condition = Condition {
            damage: opened
                .damage
                .iter()
                .map(|damage| Damage {
                    after_seq: damage.after_seq,
                    before_seq: Some(damage.before_seq),
                })
                .collect(),
            tail: opened
                .tail
                .as_ref()
                .map(|tail| (tail.length, tail.saved_as.clone())),
        };
        let store = Self {
            session: fold(&opened.entries),
            spill: Spill::new(storage, folder),
            writer: Writer::spawn(opened.log),
            folder: folder.to_path_buf(),
            failed: false,
        };
        Ok((store, condition))
    }

    /// The session's folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// No record can be stored until [`Store::reopen`] succeeds (TR-48).
    pub fn is_failed(&self) -> bool {
        self.failed
    }

    /// Syncs of the log so far.
    pub fn syncs(&self) -> u64 {
        self.writer.syncs()
    }

    /// Stores records in one write and one sync, then applies them. `attempts` are those that did
    /// not start if this fails.
    ///
    /// # Errors
    /// `write_failed`, `storage_failed`: nothing of it is stored.
    pub async fn commit(
        &mut self,
        at: u64,
        records: Vec<Record>,
        attempts: Vec<String>,
    ) -> Result<Vec<Entry>, JournalError> {
        let lines = records.iter().map(line_of).collect::<Result<_, _>>()?;
        let batch = Batch {
            records: lines,
            attempts,
        };
        let written = self.writer.append(at, batch).await;
        match written {
            Ok(lines) => {
                let entries: Vec<Entry> = lines
                    .iter()
                    .zip(records)
                    .map(|(line, record)| match record {
                        // The log has added to it.
                        Record::FileCheckpoint(_) => entry_of(line),
                        record => Entry {
                            seq: line.seq,
                            at: line.at,
                            record,
                        },
                    })
                    .collect();
                for entry in &entries {
                    self.session.apply(entry);
                }
                Ok(entries)
            }
            Err(error) => {
                match &error {
                    JournalError::WriteFailed { reset, .. } => {
                        self.session.apply(&entry_of(reset));
                    }
                    JournalError::StorageFailed { .. } => self.failed = true,
                    _ => {}
                }
                Err(error)
            }
        }
    }

    /// TR-48: tries to bring a failed log back, without a restart (C12).
    ///
    /// # Errors
    /// What the journal says while storage still fails.
    pub async fn reopen(&mut self, at: u64) -> Result<(), JournalError> {
        let reopened = self.writer.reopen(at).await?;
        if let Some(reset) = &reopened.reset {
            self.session.apply(&entry_of(reset));
        }
        self.failed = false;
        Ok(())
    }

    /// Writes the derived index with a summary for lists, behind what was asked for before and
    /// without waiting. A failure costs speed and nothing else.
    pub fn write_index(&self, summary: String) {
        let written = self.writer.write_index(self.session.last_seq, summary);
        tokio::spawn(async move {
            if let Err(error) = written.await {
                tracing::debug!(code = error.code(), "the session's index was not written");
            }
        });
    }

    /// Gives the session back.
    pub async fn close(&self) {
        let _ = self.writer.close().await;
    }
}

/// The fold of log lines.
pub fn fold(lines: &[Line]) -> Session {
    let mut session = Session::default();
    for line in lines {
        session.apply(&entry_of(line));
    }
    session
}

fn entry_of(line: &Line) -> Entry {
    Entry {
        seq: line.seq,
        at: line.at,
        record: Record::parse(&line.kind, line.payload.get()),
    }
}

fn line_of(record: &Record) -> Result<NewRecord, JournalError> {
    let payload = record
        .payload()
        .map_err(|error| JournalError::RecordInvalid {
            reason: error.to_string(),
        })?;
    Ok(match record {
        Record::FileCheckpoint(_) => NewRecord::bound(record.kind(), payload),
        record => NewRecord::new(record.kind(), payload),
    })
}

/// A journal's error as it leaves the host.
pub fn api_error(error: &JournalError) -> ApiError {
    let status = match error.code() {
        "write_failed" | "storage_failed" | "storage_error" => 507,
        "session_not_found" => 404,
        "session_held" | "session_exists" | "log_closed" => 409,
        "record_too_large" => 413,
        _ => 500,
    };
    ApiError::new(status, error.code(), error.to_string())
}
