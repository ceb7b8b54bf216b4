//! The derived index: the caller's summary of a session, so that a list needs no scan.
//!
//! Guarantees: it is used only when its own seal is right and the record that it names is in the
//! log, at its place, and ends the file; it may be deleted or torn at any time.

use std::path::Path;

use holdfast_files::{Disk, Storage, read_bounded, write_private};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::check;
use crate::error::JournalError;
use crate::line::{MAX_LINE_BYTES, decode, payload, seal, unseal};
use crate::log::{LOG_FILE, Position};
use crate::read::read_range;

const INDEX_FILE: &str = "index.json";
const MAX_INDEX_BYTES: u64 = 16 * 1024 * 1024;

/// A session's index that matches its log.
#[derive(Debug, Clone)]
pub struct Index {
    /// The log's last record.
    pub last: Position,
    /// The summary that the caller gave for everything up to that record.
    pub summary: Box<RawValue>,
}

#[derive(Deserialize)]
struct Wire {
    offset: u64,
    seq: u64,
    crc: String,
    length: u64,
    summary: Box<RawValue>,
}

pub(crate) fn write(
    folder: &Path,
    session: &str,
    last: Position,
    summary: &str,
) -> Result<(), JournalError> {
    let summary = payload(summary)?;
    let body = format!(
        "{{\"offset\":{},\"seq\":{},\"crc\":\"{:08x}\",\"length\":{},\"summary\":{}",
        last.offset,
        last.seq,
        last.crc,
        last.end,
        summary.get()
    );
    let (text, _) = seal(session, body);
    write_private(&folder.join(INDEX_FILE), text.as_bytes())
        .map_err(JournalError::io("writing the session's index"))
}

/// Reads a session's index. `None` when there is none or it doesn't match the log: then the log
/// itself has to be read.
pub fn read_index(folder: &Path, session_id: &str) -> Option<Index> {
    check::session_id(session_id).ok()?;
    let text = read_bounded(&folder.join(INDEX_FILE), MAX_INDEX_BYTES).ok()?;
    let line = text.strip_suffix(b"\n")?;
    unseal(session_id, line)?;
    let wire: Wire = serde_json::from_slice(line).ok()?;
    let span = wire.length.checked_sub(wire.offset)?;
    if span > MAX_LINE_BYTES as u64 {
        return None;
    }
    let file = Disk.open_read(&folder.join(LOG_FILE)).ok()?;
    if file.length().ok()? != wire.length {
        return None;
    }
    let record = read_range(file.as_ref(), wire.offset, wire.length).ok()?;
    let (entry, crc) = decode(session_id, record.strip_suffix(b"\n")?)?;
    if entry.seq != wire.seq || format!("{crc:08x}") != wire.crc {
        return None;
    }
    Some(Index {
        last: Position {
            offset: wire.offset,
            end: wire.length,
            seq: wire.seq,
            crc,
        },
        summary: wire.summary,
    })
}
