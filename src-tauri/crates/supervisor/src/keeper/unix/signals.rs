//! The supervisor's signals.
//!
//! Guarantees: a child's end wakes the loop; TERM, INT, HUP and QUIT ask for the end of the tree
//! (SV-05); a signal that would only kill the supervisor by accident does nothing. All are handled
//! rather than ignored, since an ignored signal would stay ignored in the command.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fd::{AsFd, BorrowedFd};
use signal_hook::consts::signal;

#[derive(Debug)]
pub(in crate::keeper) struct Signals {
    wake: UnixStream,
    end: Arc<AtomicBool>,
}

impl Signals {
    pub(in crate::keeper) fn install() -> io::Result<Self> {
        let (wake, sender) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let end = Arc::new(AtomicBool::new(false));
        for ending in [
            signal::SIGTERM,
            signal::SIGINT,
            signal::SIGHUP,
            signal::SIGQUIT,
        ] {
            // The flag first: whoever is woken finds it set.
            signal_hook::flag::register(ending, Arc::clone(&end))?;
            signal_hook::low_level::pipe::register(ending, sender.try_clone()?)?;
        }
        signal_hook::low_level::pipe::register(signal::SIGCHLD, sender)?;
        let nobody = Arc::new(AtomicBool::new(false));
        for harmless in [
            signal::SIGUSR1,
            signal::SIGUSR2,
            signal::SIGALRM,
            signal::SIGTSTP,
            signal::SIGTTIN,
            signal::SIGTTOU,
            signal::SIGCONT,
            signal::SIGURG,
            signal::SIGXCPU,
            signal::SIGVTALRM,
            signal::SIGPROF,
            signal::SIGWINCH,
            signal::SIGIO,
            signal::SIGTRAP,
            signal::SIGSYS,
            // A file size limit then fails the write, and the output is marked truncated.
            signal::SIGXFSZ,
        ] {
            signal_hook::flag::register(harmless, Arc::clone(&nobody))?;
        }
        Ok(Self { wake, end })
    }

    /// Empties the wake-up; to be called before looking at what it announces.
    pub(in crate::keeper) fn clear(&mut self) {
        let mut bytes = [0; 64];
        while self.wake.read(&mut bytes).is_ok_and(|read| read > 0) {}
    }

    pub(in crate::keeper) fn asked_to_end(&self) -> bool {
        self.end.load(Ordering::SeqCst)
    }

    /// The wish was carried out as far as it could be; a new one is a new wish.
    pub(in crate::keeper) fn forget(&self) {
        self.end.store(false, Ordering::SeqCst);
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
