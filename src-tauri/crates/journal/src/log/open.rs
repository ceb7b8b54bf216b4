//! Opening an existing log for writing: verify, keep an unverified tail aside, cut it.

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use holdfast_files::{Storage, StoredFile};

use super::{LOG_FILE, Log};
use crate::check;
use crate::error::JournalError;
use crate::lease::Lease;
use crate::line::Entry;
use crate::scan::{CHUNK_BYTES, Damage, Stream, scan};

/// How many kept tails a session may have before opening is refused.
const MAX_TAILS: u32 = 1000;

/// An opened log and what was found in it.
#[derive(Debug)]
pub struct Opened {
    /// The log, ready for appending.
    pub log: Log,
    /// Every verified record, in order; all durable.
    pub entries: Vec<Entry>,
    /// Places that don't verify, with verified records after them.
    pub damage: Vec<Damage>,
    /// What was cut from the end.
    pub tail: Option<TailRepair>,
}

/// An unverified tail that was kept aside and cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TailRepair {
    /// Where it began, in bytes from the log's start.
    pub offset: u64,
    /// How long it was, in bytes.
    pub length: u64,
    /// The file in the session's folder that holds it now.
    pub saved_as: String,
}

impl Log {
    /// Opens a session's log for writing under its lease. What verifies is made durable before it
    /// is answered: a process may have died between a write and its sync. Should that sync fail,
    /// opening again proves less than it says, for the kernel may have dropped pages meanwhile: the
    /// data is verified as it is read, but only a restart of the machine shows what the disk has.
    ///
    /// # Errors
    /// `session_not_found`; `log_incomplete` when its creation never ended; `log_unreadable` when
    /// no line verifies, and nothing is cut then; `storage_error` when the tail can't be kept, cut
    /// or what is there can't be made durable. The lease is given back.
    pub fn open(
        storage: Arc<dyn Storage>,
        lease: Lease,
        session_id: &str,
    ) -> Result<Opened, JournalError> {
        check::session_id(session_id)?;
        let path = lease.folder().join(LOG_FILE);
        let mut file = storage
            .open(&path)
            .map_err(JournalError::io_or_not_found("opening the session log"))?;
        let mut entries = Vec::new();
        let found = scan(session_id, Stream::new(file.as_ref(), 0), |entry| {
            entries.push(entry);
        })
        .map_err(JournalError::io("reading the session log"))?;
        let Some(last) = found.last else {
            return Err(if found.any_line {
                JournalError::Unreadable
            } else {
                JournalError::Incomplete
            });
        };
        let tail = if found.length > last.end {
            let saved_as = keep_tail(storage.as_ref(), lease.folder(), file.as_ref(), last.end)
                .map_err(JournalError::io("keeping the log's unverified tail"))?;
            cut(file.as_mut(), last.end)
                .map_err(JournalError::io("cutting the log's unverified tail"))?;
            Some(TailRepair {
                offset: last.end,
                length: found.length - last.end,
                saved_as,
            })
        } else {
            None
        };
        file.sync()
            .map_err(JournalError::io("syncing the session log"))?;
        let log = Self {
            storage,
            session: session_id.to_owned(),
            path,
            file,
            last,
            content: found.content,
            digest: None,
            failed: None,
            syncs: Arc::default(),
            lease,
        };
        Ok(Opened {
            log,
            entries,
            damage: found.damage,
            tail,
        })
    }
}

fn cut(file: &mut dyn StoredFile, length: u64) -> io::Result<()> {
    file.set_length(length)?;
    let found = file.length()?;
    if found == length {
        Ok(())
    } else {
        Err(io::Error::other(format!(
            "the log has {found} bytes after it was cut to {length}"
        )))
    }
}

/// Copies what follows `offset` to the first free `log.tail-<n>`, durable, overwriting nothing. A
/// tail that was kept by an opening that failed later is not kept twice.
fn keep_tail(
    storage: &dyn Storage,
    folder: &Path,
    log: &dyn StoredFile,
    offset: u64,
) -> io::Result<String> {
    for number in 1..=MAX_TAILS {
        let name = format!("log.tail-{number}");
        let path = folder.join(&name);
        let mut copy = match storage.create_new(&path) {
            Ok(copy) => copy,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let mut kept = storage.open(&path)?;
                if same(log, offset, kept.as_ref())? {
                    kept.sync()?;
                    storage.sync_folder(folder)?;
                    return Ok(name);
                }
                continue;
            }
            Err(error) => return Err(error),
        };
        let kept = copy_to(log, offset, copy.as_mut())
            .and_then(|()| copy.sync())
            .and_then(|()| storage.sync_folder(folder));
        if let Err(error) = kept {
            drop(copy);
            let _ = storage.remove(&path);
            return Err(error);
        }
        return Ok(name);
    }
    Err(io::Error::other(format!(
        "{MAX_TAILS} kept tails are there already"
    )))
}

fn copy_to(log: &dyn StoredFile, offset: u64, copy: &mut dyn StoredFile) -> io::Result<()> {
    let mut stream = Stream::new(log, offset);
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut total = 0;
    loop {
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        total += count as u64;
        if copy.append(&chunk[..count])? != count {
            return Err(io::ErrorKind::StorageFull.into());
        }
    }
    if copy.length()? == total {
        Ok(())
    } else {
        Err(io::Error::other("the kept tail is not complete"))
    }
}

fn same(log: &dyn StoredFile, offset: u64, kept: &dyn StoredFile) -> io::Result<bool> {
    let expected = log.length()?.saturating_sub(offset);
    if kept.length()? != expected {
        return Ok(false);
    }
    let digest = |file: &dyn StoredFile, offset| -> io::Result<u32> {
        let mut stream = Stream::new(file, offset);
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut crc = 0;
        loop {
            let count = stream.read(&mut chunk)?;
            if count == 0 {
                return Ok(crc);
            }
            crc = crc32c::crc32c_append(crc, &chunk[..count]);
        }
    };
    Ok(digest(log, offset)? == digest(kept, 0)?)
}
