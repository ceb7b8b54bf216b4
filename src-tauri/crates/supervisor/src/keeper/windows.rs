//! The Windows side of the supervisor. One thread decides; beside it stand threads that only wait
//! for one thing each (output, the root process, the host) and ring a bell, since Windows has no
//! one call that waits for all of them.
//!
//! Guarantees: the command is in a kill-on-close job object before its first instruction, and has
//! no leave to break away, so that "no process in the job" means that nothing of the tree is left
//! (SV-03), and the loss of the supervisor ends the tree.

mod bell;
mod command;
mod pipe;
mod tree;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::error::SupervisorError;
use crate::request::HostIdentity;
use crate::win32::{self, Process};
use bell::BELL;
pub(super) use command::spawn;
pub(super) use pipe::Pipe;
pub(super) use tree::Tree;

/// Time awake since the boot: what time limits are measured by (SV-02).
pub(super) fn awake() -> Duration {
    win32::awake()
}

/// Leaves behind what came from the launcher: only its working folder, since a launched supervisor
/// inherits no handle and has a console of its own.
pub(super) fn isolate() -> Result<(), SupervisorError> {
    std::env::set_current_dir("/").map_err(SupervisorError::io("changing to the folder \\"))
}

/// Whether this process can live on when its host's job ends.
pub(super) fn survives_host() -> bool {
    win32::own_job() == win32::OwnJob::None
}

/// A watch on the host.
pub(super) struct Host(Arc<AtomicBool>);

impl Host {
    /// `None` when that very process is not there.
    pub(super) fn watch(host: HostIdentity) -> Option<Self> {
        let process = Process::open(host.pid)?;
        // Compared after opening: then the handle is that very process's (SV-06).
        if process.created_at() != Some(host.start_time) || process.has_ended() {
            return None;
        }
        let gone = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&gone);
        std::thread::spawn(move || {
            process.wait();
            told.store(true, Ordering::SeqCst);
            BELL.ring();
        });
        Some(Self(gone))
    }
}

/// Set by the console's handler.
static ASKED_TO_END: AtomicBool = AtomicBool::new(false);

/// What the console or the system asks: Ctrl+Break, closing, logging off, shutting down.
pub(super) struct Signals;

impl Signals {
    pub(super) fn install() -> io::Result<Self> {
        win32::on_console_end(|| {
            ASKED_TO_END.store(true, Ordering::SeqCst);
            BELL.ring();
        })?;
        Ok(Self)
    }

    /// Silences the bell; to be called before looking at what it announces.
    pub(super) fn clear(&mut self) {
        BELL.silence();
    }

    pub(super) fn asked_to_end(&self) -> bool {
        ASKED_TO_END.load(Ordering::SeqCst)
    }

    /// The wish was carried out as far as it could be; a new one is a new wish.
    pub(super) fn forget(&self) {
        ASKED_TO_END.store(false, Ordering::SeqCst);
    }
}

/// There is no socket here: the host looks at the files, and stops by the file `stop` (SV-07).
pub(super) struct Socket;

impl Socket {
    pub(super) fn listen(_runtime_folder: Option<&Path>, _attempt_id: &str) -> Self {
        Self
    }

    pub(super) fn converse(&mut self) {}

    pub(super) fn take_stop(&mut self) -> bool {
        false
    }

    pub(super) fn announce_output(&mut self) {}

    pub(super) fn announcement_due(&self) -> Option<Duration> {
        None
    }

    pub(super) fn tell(&mut self, _word: &str) {}
}

/// Waits for something to happen, or for the time; true when the host is gone.
pub(super) fn wait(
    _signals: &Signals,
    _pipe: Option<&Pipe>,
    _socket: &Socket,
    host: Option<&Host>,
    timeout: Duration,
) -> bool {
    BELL.wait(timeout);
    host.is_some_and(|Host(gone)| gone.load(Ordering::SeqCst))
}
