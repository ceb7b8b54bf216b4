//! The reading end of the command's output.
//!
//! Guarantee: reading never waits. A thread does the waiting, and rings when there is something; it
//! holds 1 MiB at most, so a slow disk slows the command rather than filling the memory.

use std::io::{self, PipeReader, Read};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

use super::bell::BELL;

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;
/// Chunks between the two threads.
const CHUNKS: usize = 16;

pub(in crate::keeper) struct Pipe {
    chunks: Receiver<Vec<u8>>,
    chunk: Vec<u8>,
    /// How much of the chunk was taken.
    taken: usize,
}

impl Pipe {
    pub(super) fn of(mut reader: PipeReader) -> Self {
        let (sender, chunks) = sync_channel(CHUNKS);
        std::thread::spawn(move || {
            let mut buffer = vec![0; CHUNK];
            loop {
                match reader.read(&mut buffer) {
                    Ok(0) => break,
                    Ok(read) => {
                        if sender.send(buffer[..read].to_vec()).is_err() {
                            break;
                        }
                        BELL.ring();
                    }
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    Err(_) => break,
                }
            }
            // First the end, then the bell.
            drop(sender);
            BELL.ring();
        });
        Self {
            chunks,
            chunk: Vec::new(),
            taken: 0,
        }
    }
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.chunk.len() {
            match self.chunks.try_recv() {
                Ok(chunk) => {
                    self.chunk = chunk;
                    self.taken = 0;
                }
                Err(TryRecvError::Empty) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(TryRecvError::Disconnected) => return Ok(0),
            }
        }
        let rest = &self.chunk[self.taken..];
        let read = rest.len().min(into.len());
        into[..read].copy_from_slice(&rest[..read]);
        self.taken += read;
        Ok(read)
    }
}
