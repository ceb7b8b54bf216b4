//! After a failed write or sync: cut, say what was lost, go on or stop (TR-48).

use std::io::{self, Read};
use std::sync::Arc;

use super::{Encoded, Log, NewRecord, Pending, WRITE_RESET, encode_from};
use crate::error::JournalError;
use crate::line::Entry;
use crate::scan::{CHUNK_BYTES, Stream};

/// What reopening did.
#[derive(Debug, Clone)]
pub struct Reopened {
    /// The `write_reset` that was written for what had failed; `None` when nothing had.
    pub reset: Option<Entry>,
}

impl Log {
    /// Brings the log back after a failure and answers the error of the call that met it.
    pub(super) fn fail(
        &mut self,
        at: u64,
        source: io::Error,
        attempts: Vec<String>,
        lost: u64,
    ) -> JournalError {
        let pending = Pending {
            attempts,
            lost,
            source: Arc::new(source),
        };
        match self.reset(at, &pending) {
            Ok(reset) => JournalError::WriteFailed {
                source: pending.source,
                reset: Box::new(reset),
            },
            Err(error) => self.stop(pending, &error),
        }
    }

    /// Cuts the log to what was acknowledged and makes a `write_reset` durable after it.
    fn reset(&mut self, at: u64, pending: &Pending) -> io::Result<Entry> {
        self.cut()?;
        let encoded = reset_record(self, at, pending).map_err(io::Error::other)?;
        self.write(&encoded.bytes)?;
        self.accept(&encoded);
        encoded
            .entries
            .into_iter()
            .next()
            .ok_or_else(|| io::Error::other("no reset record"))
    }

    /// Cuts the log to what was acknowledged. Never extends it: a shorter file has lost
    /// acknowledged records, and zeros in their place would hide that. Whether the length is right
    /// then is for the next write to find out.
    fn cut(&mut self) -> io::Result<()> {
        if self.file.length()? > self.last.end {
            self.file.set_length(self.last.end)?;
        }
        Ok(())
    }

    /// Makes the log read-only until it is reopened. What was not acknowledged is cut if that can
    /// be done, so that a restart meets as little of it as possible; where it can't, a restart
    /// reads the safe side.
    fn stop(&mut self, pending: Pending, error: &io::Error) -> JournalError {
        tracing::error!(%error, first = %pending.source, "the session log can't be written");
        let _ = self.cut();
        let source = Arc::clone(&pending.source);
        self.failed = Some(pending);
        JournalError::StorageFailed { source }
    }

    /// Opens the log's file again, keeping the lease: verifies that every acknowledged byte is in
    /// place, cuts what was not acknowledged, and makes the `write_reset` of what had failed
    /// durable. After it the log works again (C12). `at` in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// `storage_failed` when it still can't be written; `log_changed` when acknowledged bytes are
    /// not in place. The log stays read-only.
    pub fn reopen(&mut self, at: u64) -> Result<Reopened, JournalError> {
        let pending = self.failed.take();
        match self.verify_again() {
            Ok(true) => {}
            Ok(false) => {
                self.failed = Some(pending.unwrap_or_else(|| Pending {
                    attempts: Vec::new(),
                    lost: 0,
                    source: Arc::new(io::Error::other("acknowledged records are not in place")),
                }));
                return Err(JournalError::Changed);
            }
            Err(error) => {
                let pending = pending.unwrap_or_else(|| Pending {
                    attempts: Vec::new(),
                    lost: 0,
                    source: Arc::new(io::Error::new(error.kind(), error.to_string())),
                });
                return Err(self.stop(pending, &error));
            }
        }
        let Some(pending) = pending else {
            return Ok(Reopened { reset: None });
        };
        match self.reset(at, &pending) {
            Ok(reset) => Ok(Reopened { reset: Some(reset) }),
            Err(error) => {
                let pending = Pending {
                    source: Arc::new(io::Error::new(error.kind(), error.to_string())),
                    ..pending
                };
                Err(self.stop(pending, &error))
            }
        }
    }

    /// Takes a new handle and answers whether all acknowledged bytes are there.
    fn verify_again(&mut self) -> io::Result<bool> {
        let file = self.storage.open(&self.path)?;
        let mut stream = Stream::new(file.as_ref(), 0).take(self.last.end);
        let mut chunk = vec![0; CHUNK_BYTES];
        let (mut length, mut content) = (0, 0);
        loop {
            let count = stream.read(&mut chunk)?;
            if count == 0 {
                break;
            }
            length += count as u64;
            content = crc32c::crc32c_append(content, &chunk[..count]);
        }
        self.file = file;
        Ok(length == self.last.end && content == self.content)
    }
}

fn reset_record(log: &Log, at: u64, pending: &Pending) -> Result<Encoded, JournalError> {
    let payload = serde_json::json!({
        "not_started": pending.attempts,
        "lost_records": pending.lost,
    });
    let record = NewRecord::new(WRITE_RESET, payload.to_string());
    encode_from(
        &log.session,
        log.last,
        None,
        std::iter::once((at, std::slice::from_ref(&record))),
    )
}
