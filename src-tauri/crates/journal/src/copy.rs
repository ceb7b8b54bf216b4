//! A copy of a session under another id, taken without its lease (C26).
//!
//! Guarantees: the original is only read; every verified record is in the copy with its number,
//! time, kind and payload, sealed for the new id; the copy's log appears whole or not at all, after
//! the spill files that it may refer to.

use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::Arc;

use holdfast_files::{Storage, StoredFile};

use crate::check;
use crate::error::JournalError;
use crate::lease::Lease;
use crate::line::encode;
use crate::log::LOG_FILE;
use crate::read::read_only;
use crate::scan::{CHUNK_BYTES, Damage};
use crate::spill::Spill;

const PARTIAL_FILE: &str = "log.jsonl.copying";

/// What a copy holds and what of the original it does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copied {
    /// Records in the copy.
    pub records: u64,
    /// Places of the original that don't verify. Their records are missing in the copy, and
    /// opening it reports the gaps in their numbers.
    pub damage: Vec<Damage>,
    /// Bytes after the original's last verified record, which were not copied.
    pub unverified_tail_bytes: u64,
}

/// Copies a session's log and spill files to the folder of `to`, a lease on a folder without a
/// session, under the id `to_id`. Answers what was copied; the lease goes on to
/// [`crate::Log::open`].
///
/// # Errors
/// `session_exists` when there is a log in the target; the errors of [`read_only`];
/// `storage_error` when the copy can't be made durable.
pub fn copy_session(
    storage: &Arc<dyn Storage>,
    from: &Path,
    from_id: &str,
    to: &Lease,
    to_id: &str,
) -> Result<Copied, JournalError> {
    check::session_id(to_id)?;
    let failed = JournalError::io("copying the session");
    let target = to.folder().join(LOG_FILE);
    match storage.open_read(&target) {
        Ok(_) => return Err(JournalError::Exists),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let original = read_only(from, from_id)?;
    let spilled = Spill::new(Arc::clone(storage), from);
    let spill = Spill::new(Arc::clone(storage), to.folder());
    for name in spilled.names()? {
        let mut content = spilled.reader(&name)?;
        spill.store_from(&name, &mut content)?;
    }

    let partial = to.folder().join(PARTIAL_FILE);
    match storage.remove(&partial) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
        Ok(()) | Err(_) => {}
    }
    let mut file = storage.create_new(&partial).map_err(&failed)?;
    let mut pending = Vec::new();
    for entry in &original.entries {
        let (line, _) = encode(to_id, entry);
        pending.extend_from_slice(line.as_bytes());
        if pending.len() >= CHUNK_BYTES {
            write(file.as_mut(), &mut pending).map_err(&failed)?;
        }
    }
    write(file.as_mut(), &mut pending).map_err(&failed)?;
    file.sync().map_err(&failed)?;
    drop(file);
    storage.rename(&partial, &target).map_err(&failed)?;
    storage.sync_folder(to.folder()).map_err(&failed)?;
    Ok(Copied {
        records: original.entries.len() as u64,
        damage: original.damage,
        unverified_tail_bytes: original.unverified_tail_bytes,
    })
}

fn write(file: &mut dyn StoredFile, pending: &mut Vec<u8>) -> io::Result<()> {
    if file.append(pending)? != pending.len() {
        return Err(ErrorKind::StorageFull.into());
    }
    pending.clear();
    Ok(())
}
