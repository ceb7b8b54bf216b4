//! The supervisor's end of the socket (SV-07): hints to the host, and its wish to stop.
//!
//! Guarantees: nothing here ever waits, and nothing that happens here changes what the files say.
//! A newer connection replaces the older.

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fd::{AsFd, BorrowedFd};

use crate::runtime_folder::socket_path;

/// Between two words about more output.
const PACE: Duration = Duration::from_millis(10);

pub(in crate::keeper) struct Socket {
    place: Option<(UnixListener, PathBuf)>,
    connection: Option<UnixStream>,
    inbox: Vec<u8>,
    stop: bool,
    announced: Option<Instant>,
    /// More output is in the file than was announced.
    owed: bool,
}

impl Socket {
    /// Listens when the folder is private and the path fits; else there is just no socket.
    pub(in crate::keeper) fn listen(runtime_folder: Option<&Path>, attempt_id: &str) -> Self {
        let place = runtime_folder
            .and_then(|folder| socket_path(folder, attempt_id))
            .and_then(|path| {
                // Only the holder of `alive` comes here, so an existing one is an old one.
                let _ = std::fs::remove_file(&path);
                let listener = UnixListener::bind(&path).ok()?;
                listener.set_nonblocking(true).ok()?;
                Some((listener, path))
            });
        Self {
            place,
            connection: None,
            inbox: Vec::new(),
            stop: false,
            announced: None,
            owed: false,
        }
    }

    /// Accepts, reads, and says what is due.
    pub(in crate::keeper) fn converse(&mut self) {
        self.read();
        while let Some(Ok((newer, _))) = self.place.as_ref().map(|(listener, _)| listener.accept())
        {
            if newer.set_nonblocking(true).is_ok() {
                self.connection = Some(newer);
                self.inbox.clear();
                // What the older one had asked for still counts: it was read before.
                self.read();
            }
        }
        if self.owed && self.announcement_due() == Some(Duration::ZERO) {
            self.owed = false;
            self.announced = Some(Instant::now());
            self.tell("out\n");
        }
    }

    fn read(&mut self) {
        let mut bytes = [0; 256];
        while let Some(connection) = &mut self.connection {
            match connection.read(&mut bytes) {
                Ok(0) => self.connection = None,
                Ok(read) => self.inbox.extend_from_slice(&bytes[..read]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.connection = None,
            }
            while let Some(end) = self.inbox.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.inbox.drain(..=end).collect();
                self.stop |= line == b"stop\n";
            }
            if self.inbox.len() > 256 {
                // Nothing that speaks this protocol sends that.
                self.inbox.clear();
                self.connection = None;
            }
        }
    }

    /// Whether a stop was asked for since the last time.
    pub(in crate::keeper) fn take_stop(&mut self) -> bool {
        std::mem::take(&mut self.stop)
    }

    /// More output is in the file. Said at once, or together with what comes in the next moment.
    pub(in crate::keeper) fn announce_output(&mut self) {
        self.owed = true;
    }

    /// How long until the owed word is due; `None` when none is owed.
    pub(in crate::keeper) fn announcement_due(&self) -> Option<Duration> {
        self.owed.then(|| {
            self.announced
                .map_or(Duration::ZERO, |at| PACE.saturating_sub(at.elapsed()))
        })
    }

    /// Says a word. A connection that does not take it is closed: then the host looks at the files.
    pub(in crate::keeper) fn tell(&mut self, word: &str) {
        if let Some(connection) = &mut self.connection
            && connection.write_all(word.as_bytes()).is_err()
        {
            self.connection = None;
        }
    }

    /// What to wait on: listener and connection.
    pub(in crate::keeper) fn descriptors(&self) -> [Option<BorrowedFd<'_>>; 2] {
        [
            self.place.as_ref().map(|(listener, _)| listener.as_fd()),
            self.connection.as_ref().map(AsFd::as_fd),
        ]
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if let Some((_, path)) = &self.place {
            let _ = std::fs::remove_file(path);
        }
    }
}
