//! A layer over a [`Storage`] that fails, shortens or drops chosen operations: what a full disk, a
//! dying disk or a power loss does, on demand and repeatable.
//!
//! Guarantees: operations are counted from 1 in the order they are made; one without a fault
//! reaches the storage below unchanged. A simulated power loss takes what was not synced: bytes
//! after the last successful sync of a file, and files whose folder was not synced after their
//! creation. A rename is not undone.

use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::storage::{Storage, StoredFile};

/// The kinds of operation of a [`Storage`] and its files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// [`Storage::create_folder`]
    CreateFolder,
    /// [`Storage::create_new`]
    CreateNew,
    /// [`Storage::open`] and [`Storage::open_read`]
    Open,
    /// [`Storage::rename`]
    Rename,
    /// [`Storage::remove`]
    Remove,
    /// [`Storage::sync_folder`]
    SyncFolder,
    /// [`StoredFile::append`]
    Append,
    /// [`StoredFile::sync`]
    Sync,
    /// [`StoredFile::set_length`]
    SetLength,
    /// [`StoredFile::length`]
    Length,
    /// [`StoredFile::read_at`]
    Read,
}

/// What happens to a chosen operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing is done; an error of this kind is answered. A full disk is `StorageFull`.
    Fail(io::ErrorKind),
    /// An append writes half and answers that count. Any other operation fails as a full disk.
    Short,
    /// An append writes half and answers an error. Any other operation fails as a full disk.
    Torn,
    /// Success is answered and nothing done. Operations that must answer something real (create,
    /// open, length, read) are done.
    Drop,
    /// A sync fails and the bytes since the last good one turn to zeros, as when the kernel drops
    /// the pages. Any other operation fails as a broken device.
    Lose,
}

/// Which operations a fault hits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The fault.
    pub fault: Fault,
    /// The first operation that is hit, counted from 1 since the plan was made.
    pub first: u64,
    /// The last one that is hit; `u64::MAX` for all from the first on.
    pub last: u64,
    /// Only operations of this kind are counted and hit.
    pub only: Option<Operation>,
}

#[derive(Debug, Default)]
struct State {
    plan: Option<Plan>,
    planned: u64,
    hits: u64,
    operations: u64,
    by_kind: HashMap<Operation, u64>,
    synced: HashMap<PathBuf, u64>,
    new_entries: HashSet<PathBuf>,
}

/// The layer. Clones share one state.
#[derive(Debug, Clone)]
pub struct Faulty {
    inner: Arc<dyn Storage>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct FaultyFile {
    inner: Box<dyn StoredFile>,
    path: PathBuf,
    state: Arc<Mutex<State>>,
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl State {
    /// Counts an operation and says which fault hits it.
    fn next(&mut self, kind: Operation) -> Option<Fault> {
        self.operations += 1;
        *self.by_kind.entry(kind).or_default() += 1;
        let plan = self.plan?;
        if plan.only.is_some_and(|only| only != kind) {
            return None;
        }
        self.planned += 1;
        let hit = (plan.first..=plan.last).contains(&self.planned);
        self.hits += u64::from(hit);
        hit.then_some(plan.fault)
    }
}

/// The error of a fault that answers one.
fn refusal(fault: Fault) -> io::Error {
    match fault {
        Fault::Fail(kind) => io::Error::from(kind),
        Fault::Short | Fault::Torn => io::Error::from(io::ErrorKind::StorageFull),
        Fault::Drop | Fault::Lose => io::Error::other("injected device error"),
    }
}

impl Faulty {
    /// A layer over `inner` that does nothing yet but count.
    pub fn new(inner: Arc<dyn Storage>) -> Self {
        Self {
            inner,
            state: Arc::default(),
        }
    }

    /// From now on follows `plan`, in place of an earlier one.
    pub fn inject(&self, plan: Plan) {
        let mut state = lock(&self.state);
        state.plan = Some(plan);
        state.planned = 0;
        state.hits = 0;
    }

    /// Ends the plan: everything works again.
    pub fn heal(&self) {
        lock(&self.state).plan = None;
    }

    /// How many operations were made so far.
    pub fn operations(&self) -> u64 {
        lock(&self.state).operations
    }

    /// How many operations of one kind were made so far.
    pub fn count(&self, kind: Operation) -> u64 {
        lock(&self.state)
            .by_kind
            .get(&kind)
            .copied()
            .unwrap_or_default()
    }

    /// How many operations the current or last plan has hit.
    pub fn hits(&self) -> u64 {
        lock(&self.state).hits
    }

    /// Takes away what a power loss at this moment would. Close the files first.
    ///
    /// # Errors
    /// What the storage below says.
    pub fn power_loss(&self) -> io::Result<()> {
        let mut state = lock(&self.state);
        for path in std::mem::take(&mut state.new_entries) {
            state.synced.remove(&path);
            match self.inner.remove(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
        for (path, synced) in &state.synced {
            match self.inner.open(path) {
                Ok(mut file) if file.length()? > *synced => file.set_length(*synced)?,
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Runs an operation that may be dropped.
    fn run(&self, kind: Operation, work: impl FnOnce() -> io::Result<()>) -> io::Result<bool> {
        let fault = lock(&self.state).next(kind);
        match fault {
            None => work().map(|()| true),
            Some(Fault::Drop) => Ok(false),
            Some(fault) => Err(refusal(fault)),
        }
    }

    fn check(&self, kind: Operation) -> io::Result<()> {
        let fault = lock(&self.state).next(kind);
        match fault {
            None | Some(Fault::Drop) => Ok(()),
            Some(fault) => Err(refusal(fault)),
        }
    }

    fn opened(&self, path: &Path, inner: Box<dyn StoredFile>) -> io::Result<Box<dyn StoredFile>> {
        let length = inner.length()?;
        lock(&self.state)
            .synced
            .entry(path.to_path_buf())
            .or_insert(length);
        Ok(Box::new(FaultyFile {
            inner,
            path: path.to_path_buf(),
            state: Arc::clone(&self.state),
        }))
    }
}

impl Storage for Faulty {
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        self.run(Operation::CreateFolder, || self.inner.create_folder(path))?;
        Ok(())
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn StoredFile>> {
        self.check(Operation::CreateNew)?;
        let file = self.inner.create_new(path)?;
        let mut state = lock(&self.state);
        state.new_entries.insert(path.to_path_buf());
        state.synced.insert(path.to_path_buf(), 0);
        drop(state);
        self.opened(path, file)
    }

    fn open(&self, path: &Path) -> io::Result<Box<dyn StoredFile>> {
        self.check(Operation::Open)?;
        self.opened(path, self.inner.open(path)?)
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn StoredFile>> {
        self.check(Operation::Open)?;
        self.opened(path, self.inner.open_read(path)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        if self.run(Operation::Rename, || self.inner.rename(from, to))? {
            let mut state = lock(&self.state);
            if let Some(synced) = state.synced.remove(from) {
                state.synced.insert(to.to_path_buf(), synced);
            }
            if state.new_entries.remove(from) {
                state.new_entries.insert(to.to_path_buf());
            }
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        if self.run(Operation::Remove, || self.inner.remove(path))? {
            let mut state = lock(&self.state);
            state.synced.remove(path);
            state.new_entries.remove(path);
        }
        Ok(())
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        if self.run(Operation::SyncFolder, || self.inner.sync_folder(path))? {
            lock(&self.state)
                .new_entries
                .retain(|entry| entry.parent() != Some(path));
        }
        Ok(())
    }
}

impl FaultyFile {
    fn next(&self, kind: Operation) -> Option<Fault> {
        lock(&self.state).next(kind)
    }

    fn set_synced(&self, change: impl FnOnce(u64) -> u64) {
        if let Some(synced) = lock(&self.state).synced.get_mut(&self.path) {
            *synced = change(*synced);
        }
    }
}

impl StoredFile for FaultyFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.next(Operation::Append) {
            None => self.inner.append(bytes),
            Some(Fault::Short) => self.inner.append(&bytes[..bytes.len() / 2]),
            Some(Fault::Torn) => {
                self.inner.append(&bytes[..bytes.len() / 2])?;
                Err(refusal(Fault::Torn))
            }
            Some(Fault::Drop) => Ok(bytes.len()),
            Some(fault @ (Fault::Fail(_) | Fault::Lose)) => Err(refusal(fault)),
        }
    }

    fn sync(&mut self) -> io::Result<()> {
        match self.next(Operation::Sync) {
            None => {
                self.inner.sync()?;
                let length = self.inner.length()?;
                self.set_synced(|_| length);
                Ok(())
            }
            Some(Fault::Drop) => Ok(()),
            Some(Fault::Lose) => {
                let length = self.inner.length()?;
                let synced = lock(&self.state).synced.get(&self.path).copied();
                if let Some(synced) = synced.filter(|synced| *synced < length) {
                    self.inner.set_length(synced)?;
                    self.inner.set_length(length)?;
                }
                Err(refusal(Fault::Lose))
            }
            Some(fault @ (Fault::Fail(_) | Fault::Short | Fault::Torn)) => Err(refusal(fault)),
        }
    }

    fn set_length(&mut self, length: u64) -> io::Result<()> {
        match self.next(Operation::SetLength) {
            None => {
                self.inner.set_length(length)?;
                self.set_synced(|synced| synced.min(length));
                Ok(())
            }
            Some(Fault::Drop) => Ok(()),
            Some(fault) => Err(refusal(fault)),
        }
    }

    fn length(&self) -> io::Result<u64> {
        match self.next(Operation::Length) {
            None | Some(Fault::Drop) => self.inner.length(),
            Some(fault) => Err(refusal(fault)),
        }
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        match self.next(Operation::Read) {
            None | Some(Fault::Drop) => self.inner.read_at(offset, into),
            Some(fault) => Err(refusal(fault)),
        }
    }
}
