//! The command's output, from the pipe into the file.
//!
//! Guarantees: the pipe is always drained, so that a command never waits for its supervisor; the
//! length and digest are of the bytes that were written, whatever the disk did; what was discarded
//! is admitted.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Instant;

use sha2::{Digest, Sha256};

use super::system::Pipe;
use crate::folder::{OUTPUT, create_new};
use crate::receipt::hex;

/// Bytes that are drained before the loop looks at anything else.
const ROUND: usize = 1 << 20;

pub(super) struct Output {
    pipe: Option<Pipe>,
    file: File,
    /// False after a disk error: later bytes would not be where the reader expects them.
    writable: bool,
    cap: u64,
    length: u64,
    hash: Sha256,
    truncated: bool,
    last_read: Option<Instant>,
    buffer: Vec<u8>,
}

impl Output {
    pub(super) fn create(folder: &Path, cap: u64) -> io::Result<Self> {
        Ok(Self {
            pipe: None,
            file: create_new(&folder.join(OUTPUT))?,
            writable: true,
            cap,
            length: 0,
            hash: Sha256::new(),
            truncated: false,
            last_read: None,
            buffer: vec![0; 64 << 10],
        })
    }

    pub(super) fn read_from(&mut self, pipe: Pipe) {
        self.pipe = Some(pipe);
    }

    /// Takes what is in the pipe; true when the file grew.
    pub(super) fn drain(&mut self) -> bool {
        let before = self.length;
        let mut taken = 0;
        while taken < ROUND {
            let Some(pipe) = &mut self.pipe else { break };
            match pipe.read(&mut self.buffer) {
                Ok(0) => self.pipe = None,
                Ok(read) => {
                    taken += read;
                    self.last_read = Some(Instant::now());
                    self.keep(read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => self.pipe = None,
            }
        }
        self.length > before
    }

    /// Writes the first `read` bytes of the buffer, as far as cap and disk allow.
    fn keep(&mut self, read: usize) {
        let room = usize::try_from(self.cap - self.length).unwrap_or(usize::MAX);
        let wanted = read.min(room);
        let mut done = 0;
        while self.writable && done < wanted {
            match self.file.write(&self.buffer[done..wanted]) {
                Ok(0) => self.writable = false,
                Ok(written) => {
                    self.hash.update(&self.buffer[done..done + written]);
                    done += written;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.writable = false,
            }
        }
        self.length += done as u64;
        self.truncated |= done < read;
    }

    /// Nobody holds the other end any more.
    pub(super) fn at_end(&self) -> bool {
        self.pipe.is_none()
    }

    /// What to wait on, while it is open.
    pub(super) fn pipe(&self) -> Option<&Pipe> {
        self.pipe.as_ref()
    }

    pub(super) fn last_read(&self) -> Option<Instant> {
        self.last_read
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }

    pub(super) fn length(&self) -> u64 {
        self.length
    }

    pub(super) fn truncated(&self) -> bool {
        self.truncated
    }

    /// SHA-256 of what was written so far.
    pub(super) fn digest(&self) -> String {
        hex(&self.hash.clone().finalize())
    }
}
