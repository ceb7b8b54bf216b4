//! Spill files: large output beside the log, so that a record stays small.
//!
//! Guarantees: a file appears under its name only when it is whole and durable, 0600 on Unix; it is
//! never overwritten with other content; a name never leads out of the folder.

use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_files::{Storage, StoredFile};

use crate::check;
use crate::error::JournalError;
use crate::read::read_range;
use crate::scan::CHUNK_BYTES;

const FOLDER: &str = "spill";
/// Not part of any allowed name.
const PARTIAL: &str = ".partial";

/// The spill files of one session.
#[derive(Debug, Clone)]
pub struct Spill {
    storage: Arc<dyn Storage>,
    session: PathBuf,
    folder: PathBuf,
}

/// A spill file, read from its first byte on.
#[derive(Debug)]
pub(crate) struct SpillReader {
    file: Box<dyn StoredFile>,
    offset: u64,
}

impl Read for SpillReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(self.offset, into)?;
        self.offset += count as u64;
        Ok(count)
    }
}

impl Spill {
    /// The spill files of the session in `folder`. Nothing is created yet.
    pub fn new(storage: Arc<dyn Storage>, folder: &Path) -> Self {
        Self {
            storage,
            session: folder.to_path_buf(),
            folder: folder.join(FOLDER),
        }
    }

    /// Stores content under a name, durable when it answers. The same content again is fine.
    ///
    /// # Errors
    /// `name_invalid`; `spill_exists` when the name holds other content; `storage_error`, and then
    /// nothing is under the name.
    pub fn store(&self, name: &str, content: &[u8]) -> Result<(), JournalError> {
        self.store_from(name, &mut &*content).map(|_| ())
    }

    /// As [`Spill::store`], from a reader, in bounded memory. Answers the length in bytes.
    ///
    /// # Errors
    /// As [`Spill::store`].
    pub fn store_from(&self, name: &str, content: &mut dyn Read) -> Result<u64, JournalError> {
        let path = self.path(name)?;
        let failed = JournalError::io("storing a spill file");
        match self.storage.open_read(&path) {
            Ok(kept) => {
                return same(kept, content)
                    .map_err(&failed)?
                    .ok_or(JournalError::SpillExists);
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
        self.storage.create_folder(&self.folder).map_err(&failed)?;
        self.storage.sync_folder(&self.session).map_err(&failed)?;
        let partial = self.folder.join(format!("{name}{PARTIAL}"));
        match self.storage.remove(&partial) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        let mut file = self.storage.create_new(&partial).map_err(&failed)?;
        let stored = write(file.as_mut(), content);
        drop(file);
        let stored = stored.and_then(|length| {
            self.storage.rename(&partial, &path)?;
            Ok(length)
        });
        match stored {
            Ok(length) => {
                self.storage.sync_folder(&self.folder).map_err(&failed)?;
                Ok(length)
            }
            Err(error) => {
                let _ = self.storage.remove(&partial);
                Err(failed(error))
            }
        }
    }

    /// Reads `limit` bytes at most from `offset` on; none past the end.
    ///
    /// # Errors
    /// `name_invalid`; `spill_not_found`; `storage_error`.
    pub fn read(&self, name: &str, offset: u64, limit: u64) -> Result<Vec<u8>, JournalError> {
        let reader = self.reader(name)?;
        read_range(reader.file.as_ref(), offset, offset.saturating_add(limit))
            .map_err(JournalError::io("reading a spill file"))
    }

    /// A spill file's length in bytes.
    ///
    /// # Errors
    /// As [`Spill::read`].
    pub fn length(&self, name: &str) -> Result<u64, JournalError> {
        self.reader(name)?
            .file
            .length()
            .map_err(JournalError::io("reading a spill file"))
    }

    /// The names of all spill files, sorted.
    ///
    /// # Errors
    /// `storage_error`.
    pub fn names(&self) -> Result<Vec<String>, JournalError> {
        let failed = JournalError::io("listing the spill files");
        let listing = match std::fs::read_dir(&self.folder) {
            Ok(listing) => listing,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut names = Vec::new();
        for entry in listing {
            let name = entry.map_err(&failed)?.file_name();
            names.extend(
                name.to_str()
                    .filter(|name| check::spill_name(name).is_ok())
                    .map(str::to_owned),
            );
        }
        names.sort();
        Ok(names)
    }

    /// Removes a spill file; fine when there is none.
    ///
    /// # Errors
    /// `name_invalid`; `storage_error`.
    pub fn remove(&self, name: &str) -> Result<(), JournalError> {
        match self.storage.remove(&self.path(name)?) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                Err(JournalError::io("removing a spill file")(error))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }

    pub(crate) fn reader(&self, name: &str) -> Result<SpillReader, JournalError> {
        let file =
            self.storage
                .open_read(&self.path(name)?)
                .map_err(|error| match error.kind() {
                    ErrorKind::NotFound => JournalError::SpillNotFound,
                    _ => JournalError::io("opening a spill file")(error),
                })?;
        Ok(SpillReader { file, offset: 0 })
    }

    fn path(&self, name: &str) -> Result<PathBuf, JournalError> {
        check::spill_name(name)?;
        Ok(self.folder.join(name))
    }
}

fn write(file: &mut dyn StoredFile, content: &mut dyn Read) -> io::Result<u64> {
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut total = 0;
    loop {
        let count = content.read(&mut chunk)?;
        if count == 0 {
            break;
        }
        if file.append(&chunk[..count])? != count {
            return Err(ErrorKind::StorageFull.into());
        }
        total += count as u64;
    }
    if file.length()? != total {
        return Err(io::Error::other("the spill file is not complete"));
    }
    file.sync()?;
    Ok(total)
}

/// The length, when a kept file holds exactly this content.
fn same(kept: Box<dyn StoredFile>, content: &mut dyn Read) -> io::Result<Option<u64>> {
    let mut kept = SpillReader {
        file: kept,
        offset: 0,
    };
    let mut ours = vec![0; CHUNK_BYTES];
    let mut theirs = Vec::new();
    let mut total = 0;
    loop {
        let count = content.read(&mut ours)?;
        theirs.clear();
        let wanted = if count == 0 { 1 } else { count as u64 };
        kept.by_ref().take(wanted).read_to_end(&mut theirs)?;
        if theirs != ours[..count] {
            return Ok(None);
        }
        if count == 0 {
            return Ok(Some(total));
        }
        total += count as u64;
    }
}
