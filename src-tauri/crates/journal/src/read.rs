//! Reading a session without its lease: the whole of it, or its two ends for a list.
//!
//! Guarantees: nothing is changed or locked, and only verified records are given; another process
//! may append meanwhile, so an unverified tail is counted, not judged.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use holdfast_files::{Disk, Storage, StoredFile};

use crate::check;
use crate::error::JournalError;
use crate::line::{Entry, MAX_LINE_BYTES, decode};
use crate::log::LOG_FILE;
use crate::scan::{CHUNK_BYTES, Damage, Stream, scan};

/// Bytes read first from each end of a log by [`peek`].
const PEEK_BYTES: usize = 4096;

/// What a session's log holds.
#[derive(Debug)]
pub struct ReadOnly {
    /// Every verified record, in order.
    pub entries: Vec<Entry>,
    /// Places that don't verify, with verified records after them.
    pub damage: Vec<Damage>,
    /// Bytes after the last verified record: being written at this moment, or torn.
    pub unverified_tail_bytes: u64,
}

/// The two ends of a session's log.
#[derive(Debug)]
pub struct Peek {
    /// The first record, when its line verifies.
    pub header: Option<Entry>,
    /// The last record that verifies.
    pub last: Entry,
    /// Bytes after it.
    pub unverified_tail_bytes: u64,
    /// The log's length in bytes.
    pub length: u64,
}

/// Reads a whole session without its lease.
///
/// # Errors
/// `session_not_found`; `log_incomplete` and `log_unreadable` as in [`crate::Log::open`];
/// `storage_error`.
pub fn read_only(folder: &Path, session_id: &str) -> Result<ReadOnly, JournalError> {
    check::session_id(session_id)?;
    let file = File::open(folder.join(LOG_FILE))
        .map_err(JournalError::io_or_not_found("opening the session log"))?;
    let mut entries = Vec::new();
    let found = scan(session_id, file, |entry| entries.push(entry))
        .map_err(JournalError::io("reading the session log"))?;
    if found.last.is_none() {
        return Err(if found.any_line {
            JournalError::Unreadable
        } else {
            JournalError::Incomplete
        });
    }
    Ok(ReadOnly {
        unverified_tail_bytes: found.length - found.verified(),
        entries,
        damage: found.damage,
    })
}

/// Reads a session's first and last record, a few KiB in all when they are small.
///
/// # Errors
/// As [`read_only`].
pub fn peek(folder: &Path, session_id: &str) -> Result<Peek, JournalError> {
    check::session_id(session_id)?;
    let file = Disk
        .open_read(&folder.join(LOG_FILE))
        .map_err(JournalError::io_or_not_found("opening the session log"))?;
    let failed = JournalError::io("reading the session log");
    let length = file.length().map_err(&failed)?;
    let header = first_line(file.as_ref())
        .map_err(&failed)?
        .and_then(|line| decode(session_id, &line))
        .map(|(entry, _)| entry);
    let Some((last, end)) = last_entry(session_id, file.as_ref(), length).map_err(&failed)? else {
        return Err(if any_line(file.as_ref()).map_err(&failed)? {
            JournalError::Unreadable
        } else {
            JournalError::Incomplete
        });
    };
    Ok(Peek {
        header,
        last,
        unverified_tail_bytes: length - end,
        length,
    })
}

/// The first line without its line feed, when it is complete.
fn first_line(file: &dyn StoredFile) -> io::Result<Option<Vec<u8>>> {
    let mut reader = BufReader::with_capacity(PEEK_BYTES, Stream::new(file, 0));
    let mut line = Vec::new();
    let mut limited = io::Read::take(&mut reader, MAX_LINE_BYTES as u64);
    io::BufRead::read_until(&mut limited, b'\n', &mut line)?;
    Ok((line.pop() == Some(b'\n')).then_some(line))
}

fn any_line(file: &dyn StoredFile) -> io::Result<bool> {
    let mut stream = Stream::new(file, 0);
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = stream.read(&mut chunk)?;
        if count == 0 || chunk[..count].contains(&b'\n') {
            return Ok(count > 0);
        }
    }
}

/// The last record that verifies and where its line ends. Reads backwards in growing steps.
fn last_entry(
    session: &str,
    file: &dyn StoredFile,
    length: u64,
) -> io::Result<Option<(Entry, u64)>> {
    // Everything at or after `end` is known not to verify.
    let mut end = length;
    let mut span = PEEK_BYTES as u64;
    loop {
        let start = end.saturating_sub(span);
        let window = read_range(file, start, end)?;
        // `stop` is one past a line feed, so the window's bytes before it are whole lines but for
        // the first, which may begin before the window.
        let mut stop = window.len();
        while let Some(feed) = last_feed(&window[..stop]) {
            let begin = last_feed(&window[..feed]).map_or(0, |at| at + 1);
            if begin == 0 && start > 0 {
                break;
            }
            if let Some((entry, _)) = decode(session, &window[begin..feed]) {
                return Ok(Some((entry, start + feed as u64 + 1)));
            }
            stop = begin;
        }
        if start == 0 {
            return Ok(None);
        }
        (end, span) = if stop < window.len() {
            (start + stop as u64, PEEK_BYTES as u64)
        } else if span >= MAX_LINE_BYTES as u64 {
            // No line is this long: none can end in this window.
            (start, PEEK_BYTES as u64)
        } else {
            (end, span * 2)
        };
    }
}

fn last_feed(bytes: &[u8]) -> Option<usize> {
    bytes.iter().rposition(|byte| *byte == b'\n')
}

/// Bytes `start..end` of a file, fewer when it ends before.
pub(crate) fn read_range(file: &dyn StoredFile, start: u64, end: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    Stream::new(file, start)
        .take(end.saturating_sub(start))
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}
