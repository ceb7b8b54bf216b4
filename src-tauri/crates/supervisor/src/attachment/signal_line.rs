//! The host's end of the socket: a hint when to look at the files.
//!
//! Guarantee: `changed` always returns within 200 ms, with or without a socket.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// Between two looks while the socket works.
#[cfg(unix)]
const CONNECTED: Duration = Duration::from_millis(200);
/// Between two looks without it, at most; it begins with 1 ms.
const ALONE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub(super) struct SignalLine {
    path: Option<PathBuf>,
    pause: Duration,
    #[cfg(unix)]
    stream: Option<tokio::net::UnixStream>,
}

impl SignalLine {
    pub(super) fn new(runtime_folder: Option<&Path>, attempt_id: &str) -> Self {
        Self {
            path: runtime_folder
                .and_then(|folder| crate::runtime_folder::socket_path(folder, attempt_id)),
            pause: Duration::from_millis(1),
            #[cfg(unix)]
            stream: None,
        }
    }

    /// Waits for a hint, or for the time of the next look.
    #[cfg(unix)]
    pub(super) async fn changed(&mut self) {
        self.connect();
        let Some(stream) = &self.stream else {
            return self.rest().await;
        };
        let mut words = [0; 256];
        let closed = tokio::select! {
            ready = stream.readable() => {
                // Which word it is does not matter: the files say what happened.
                ready.is_err() || match stream.try_read(&mut words) {
                    Ok(read) => read == 0,
                    Err(error) => error.kind() != std::io::ErrorKind::WouldBlock,
                }
            }
            () = tokio::time::sleep(CONNECTED) => false,
        };
        if closed {
            // Not again: a newer attachment may have taken the place, and the two would fight.
            self.stream = None;
            self.path = None;
            self.pause = Duration::from_millis(1);
        }
    }

    /// Waits for the time of the next look.
    #[cfg(not(unix))]
    pub(super) async fn changed(&mut self) {
        self.rest().await;
    }

    async fn rest(&mut self) {
        tokio::time::sleep(self.pause).await;
        self.pause = (self.pause * 2).min(ALONE);
    }

    #[cfg(unix)]
    fn connect(&mut self) {
        if self.stream.is_some() {
            return;
        }
        let Some(path) = &self.path else { return };
        // Connecting to a Unix socket does not wait. What fails now is tried again at the next look.
        self.stream = std::os::unix::net::UnixStream::connect(path)
            .and_then(|stream| {
                stream.set_nonblocking(true)?;
                tokio::net::UnixStream::from_std(stream)
            })
            .ok();
    }

    /// Sends the wish to stop; false when there is no socket to carry it.
    #[cfg(unix)]
    pub(super) fn send_stop(&mut self) -> bool {
        self.connect();
        self.stream
            .as_ref()
            .is_some_and(|stream| stream.try_write(b"stop\n").is_ok_and(|sent| sent == 5))
    }

    /// There is no socket here.
    #[cfg(not(unix))]
    pub(super) fn send_stop(&mut self) -> bool {
        let _ = &self.path;
        false
    }
}
