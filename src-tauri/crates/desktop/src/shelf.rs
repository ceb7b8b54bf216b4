//! `desktop.json`: what the app remembers, in memory behind the app's lock and on disk.
//!
//! Guarantees: the lock is never held over a wait; a change is on disk before `save` returns, and
//! changes that wait together are written once; a file that can't be understood is kept aside as
//! `desktop.json.bad-N` before anything is written.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::DesktopError;
use crate::remembered::{Remembered, VERSION};

const FILE: &str = "desktop.json";
/// Largest file, in bytes: drafts are text that a person wrote.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// Files kept aside at most.
const MAX_ASIDE: u32 = 10_000;

/// The shelf.
#[derive(Debug)]
pub(crate) struct Shelf {
    file: PathBuf,
    held: Mutex<Held>,
    /// Which change is on disk.
    written: Arc<tokio::sync::Mutex<u64>>,
}

#[derive(Debug, Default)]
struct Held {
    remembered: Remembered,
    changes: u64,
}

impl Shelf {
    /// Reads the file of that data folder. The second value names a file that was kept aside.
    ///
    /// # Errors
    /// `layout_unusable`.
    pub(crate) fn open(data: &Path) -> Result<(Self, Option<String>), DesktopError> {
        let file = data.join(FILE);
        let (remembered, aside) = match holdfast_files::read_bounded(&file, MAX_BYTES) {
            Ok(bytes) => match understood(&bytes) {
                Some(remembered) => (remembered.bound(), None),
                None => (Remembered::default(), Some(put_aside(&file)?)),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                (Remembered::default(), None)
            }
            Err(_) => (Remembered::default(), Some(put_aside(&file)?)),
        };
        let shelf = Self {
            file,
            held: Mutex::new(Held {
                remembered,
                changes: 0,
            }),
            written: Arc::default(),
        };
        Ok((shelf, aside))
    }

    /// Looks at what is remembered.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Remembered) -> T) -> T {
        look(
            &self
                .held
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .remembered,
        )
    }

    /// Changes what is remembered; `save` puts it on disk.
    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut Remembered) -> T) -> T {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.changes += 1;
        change(&mut held.remembered)
    }

    /// Puts all changes so far on disk.
    ///
    /// # Errors
    /// `layout_not_saved`: the file is as it was; the next save tries again.
    pub(crate) async fn save(&self) -> Result<(), DesktopError> {
        let wanted = self.changes();
        // The guard moves into the writing, so that two never cross even if a caller goes away.
        let mut written = Arc::clone(&self.written).lock_owned().await;
        if *written >= wanted {
            return Ok(());
        }
        let not_saved = |reason: String| DesktopError::LayoutNotSaved { reason };
        let (text, changes) = {
            let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            let text = serde_json::to_vec_pretty(&held.remembered)
                .map_err(|error| not_saved(error.to_string()))?;
            (text, held.changes)
        };
        let file = self.file.clone();
        tokio::task::spawn_blocking(move || {
            let done = holdfast_files::write_private(&file, &text);
            if done.is_ok() {
                *written = changes;
            }
            done
        })
        .await
        .map_err(|_| DesktopError::Defect)?
        .map_err(|error| not_saved(error.to_string()))
    }

    fn changes(&self) -> u64 {
        self.held
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .changes
    }
}

fn understood(bytes: &[u8]) -> Option<Remembered> {
    serde_json::from_slice::<Remembered>(bytes)
        .ok()
        .filter(|remembered| remembered.version == VERSION)
}

/// The first free `desktop.json.bad-N` takes the file.
fn put_aside(file: &Path) -> Result<String, DesktopError> {
    let unusable = |reason: String| DesktopError::LayoutUnusable {
        file: file.to_path_buf(),
        reason,
    };
    for number in 1..=MAX_ASIDE {
        let name = format!("{FILE}.bad-{number}");
        let target = file.with_file_name(&name);
        if target.symlink_metadata().is_ok() {
            continue;
        }
        return std::fs::rename(file, &target)
            .map(|()| name)
            .map_err(|error| unusable(error.to_string()));
    }
    Err(unusable("too many files are kept aside already".to_owned()))
}
