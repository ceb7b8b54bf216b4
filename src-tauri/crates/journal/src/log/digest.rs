//! The running digest of the log, and records that are bound by it to everything before them
//! (TR-17).
//!
//! Guarantees: the digest is of acknowledged bytes only; a session that never binds a record pays
//! nothing for it, and one that does reads its log once more.

use std::io::{self, Read};

use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::{LOG_SHA256, Log};
use crate::error::JournalError;
use crate::line;
use crate::scan::{CHUNK_BYTES, Stream};

impl Log {
    /// Sees to it that there is a digest of all that was acknowledged.
    ///
    /// # Errors
    /// `storage_error` when the log can't be read; nothing was written.
    pub(super) fn begin_digest(&mut self) -> Result<(), JournalError> {
        if self.digest.is_none() {
            let digest = self
                .read_digest()
                .map_err(JournalError::io("reading the session log for its digest"))?;
            self.digest = Some(digest);
        }
        Ok(())
    }

    fn read_digest(&self) -> io::Result<Sha256> {
        let mut stream = Stream::new(self.file.as_ref(), 0).take(self.last.end);
        let mut digest = Sha256::new();
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut length = 0;
        let mut content = 0;
        loop {
            let count = stream.read(&mut chunk)?;
            if count == 0 {
                break;
            }
            let piece = chunk.get(..count).unwrap_or_default();
            length += count as u64;
            content = crc32c::crc32c_append(content, piece);
            digest.update(piece);
        }
        if length == self.last.end && content == self.content {
            Ok(digest)
        } else {
            Err(io::Error::other("acknowledged records are not in place"))
        }
    }
}

/// A payload with the digest as its last member.
pub(super) fn bind(payload: &RawValue, digest: &Sha256) -> Result<Box<RawValue>, JournalError> {
    let invalid = || JournalError::RecordInvalid {
        reason: "a bound record's content is not an object".to_owned(),
    };
    let body = payload
        .get()
        .trim_end()
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .ok_or_else(invalid)?;
    let comma = if body.trim().is_empty() { "" } else { "," };
    let digest = digest
        .clone()
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect::<String>();
    line::payload(&format!("{{{body}{comma}\"{LOG_SHA256}\":\"{digest}\"}}"))
}
