//! A disk whose appends wait at a gate, so that a test can act while one is under way.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use holdfast_files::{Disk, Storage, StoredFile};

/// The gate; open at first.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    closed: Mutex<bool>,
    opened: Condvar,
    waiting: AtomicU64,
}

impl Gate {
    /// Closed until the answer is dropped.
    pub(crate) fn close(self: &Arc<Self>) -> Closed {
        *self.closed.lock().unwrap() = true;
        Closed(Arc::clone(self))
    }

    /// Appends that wait now.
    pub(crate) fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::SeqCst)
    }

    fn pass(&self) {
        let closed = self.closed.lock().unwrap();
        if *closed {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            drop(self.opened.wait_while(closed, |closed| *closed).unwrap());
            self.waiting.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

/// Opens the gate when it is dropped.
pub(crate) struct Closed(Arc<Gate>);

impl Drop for Closed {
    fn drop(&mut self) {
        *self.0.closed.lock().unwrap() = false;
        self.0.opened.notify_all();
    }
}

/// The disk behind the gate.
#[derive(Debug)]
pub(crate) struct Gated(pub(crate) Arc<Gate>);

#[derive(Debug)]
struct GatedFile(Box<dyn StoredFile>, Arc<Gate>);

impl Gated {
    fn file(&self, file: Box<dyn StoredFile>) -> Box<dyn StoredFile> {
        Box::new(GatedFile(file, Arc::clone(&self.0)))
    }
}

impl Storage for Gated {
    fn create_folder(&self, path: &Path) -> io::Result<()> {
        Disk.create_folder(path)
    }
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn StoredFile>> {
        Ok(self.file(Disk.create_new(path)?))
    }
    fn open(&self, path: &Path) -> io::Result<Box<dyn StoredFile>> {
        Ok(self.file(Disk.open(path)?))
    }
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn StoredFile>> {
        Disk.open_read(path)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Disk.rename(from, to)
    }
    fn remove(&self, path: &Path) -> io::Result<()> {
        Disk.remove(path)
    }
    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        Disk.sync_folder(path)
    }
}

impl StoredFile for GatedFile {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.1.pass();
        self.0.append(bytes)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.0.sync()
    }
    fn set_length(&mut self, length: u64) -> io::Result<()> {
        self.0.set_length(length)
    }
    fn length(&self) -> io::Result<u64> {
        self.0.length()
    }
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.0.read_at(offset, into)
    }
}
