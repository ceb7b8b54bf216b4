//! Reading a log from its first byte to its last.
//!
//! Guarantees: an entry is given only when its line is complete, its seal is right and its number
//! is above the one before; everything else is accounted for, as damage between verified lines or
//! as an unverified tail; memory holds one line at a time besides what the visitor keeps.

use std::io::{self, BufRead, BufReader, Read};

use holdfast_files::StoredFile;

use crate::line::{Entry, MAX_LINE_BYTES, decode};
use crate::log::Position;

/// Bytes read at a time.
pub(crate) const CHUNK_BYTES: usize = 64 * 1024;

/// A stretch of the log that doesn't verify, with verified lines after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Where it begins, in bytes from the log's start.
    pub offset: u64,
    /// How long it is in bytes; 0 where lines are missing and nothing stands in their place.
    pub length: u64,
    /// The last verified record before it; 0 when there is none.
    pub after_seq: u64,
    /// The first verified record after it.
    pub before_seq: u64,
}

/// What a scan found besides the entries.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) damage: Vec<Damage>,
    /// The last verified line.
    pub(crate) last: Option<Position>,
    /// CRC-32C of all bytes up to the end of the last verified line.
    pub(crate) content: u32,
    /// Length of what was read, in bytes.
    pub(crate) length: u64,
    /// Whether there was any line feed.
    pub(crate) any_line: bool,
}

impl Scan {
    /// The end of the last verified line, in bytes from the log's start.
    pub(crate) fn verified(&self) -> u64 {
        self.last.map_or(0, |last| last.end)
    }
}

/// Reads a [`StoredFile`] from an offset on, as a stream.
#[derive(Debug)]
pub(crate) struct Stream<'a> {
    file: &'a dyn StoredFile,
    offset: u64,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(file: &'a dyn StoredFile, offset: u64) -> Self {
        Self { file, offset }
    }
}

impl Read for Stream<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.offset, into)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// One stretch up to a line feed. `line` is what of it fits in a line; `length` all of it.
struct Stretch {
    length: u64,
    terminated: bool,
    fits: bool,
}

fn next_line(
    reader: &mut impl BufRead,
    line: &mut Vec<u8>,
    content: &mut u32,
) -> io::Result<Stretch> {
    line.clear();
    let mut stretch = Stretch {
        length: 0,
        terminated: false,
        fits: true,
    };
    loop {
        let found = match reader.fill_buf() {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        let end = found.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(found.len(), |at| at + 1);
        if used == 0 {
            return Ok(stretch);
        }
        *content = crc32c::crc32c_append(*content, &found[..used]);
        if line.len() + used <= MAX_LINE_BYTES {
            line.extend_from_slice(&found[..used]);
        } else {
            stretch.fits = false;
        }
        stretch.length += used as u64;
        reader.consume(used);
        if end.is_some() {
            line.pop();
            stretch.terminated = true;
            return Ok(stretch);
        }
    }
}

/// Scans a log and gives its entries to `visit`, in order.
pub(crate) fn scan(
    session: &str,
    source: impl Read,
    mut visit: impl FnMut(Entry),
) -> io::Result<Scan> {
    let mut reader = BufReader::with_capacity(CHUNK_BYTES, source);
    let mut found = Scan::default();
    let mut line = Vec::new();
    let mut content = 0;
    let mut last_seq = 0;
    loop {
        let offset = found.length;
        let stretch = next_line(&mut reader, &mut line, &mut content)?;
        if stretch.length == 0 {
            return Ok(found);
        }
        found.length += stretch.length;
        found.any_line |= stretch.terminated;
        if !stretch.terminated || !stretch.fits {
            continue;
        }
        let Some((entry, crc)) = decode(session, &line) else {
            continue;
        };
        if entry.seq <= last_seq {
            continue;
        }
        let verified = found.verified();
        if verified != offset || entry.seq != last_seq + 1 {
            found.damage.push(Damage {
                offset: verified,
                length: offset - verified,
                after_seq: last_seq,
                before_seq: entry.seq,
            });
        }
        last_seq = entry.seq;
        found.last = Some(Position {
            offset,
            end: found.length,
            seq: entry.seq,
            crc,
        });
        found.content = content;
        visit(entry);
    }
}
