//! Lines of a body: bounded, decoded, one at a time.
//!
//! Guarantees: a line is at most the limit long, is UTF-8, and has one `\n` at its end, whatever
//! mixture of `\n`, `\r\n` and `\r` the server sent and however the network cut it; a byte order
//! mark at the start is gone; memory is bounded by the limit plus one network read.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use tokio::time::timeout;

use crate::error::SseError;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a body line by line.
struct Lines {
    body: BoxStream<'static, Result<Bytes, SseError>>,
    idle: Duration,
    limit: usize,
    buffer: BytesMut,
    /// Bytes of `buffer` that are known to hold no line end.
    scanned: usize,
    /// The last line ended with `\r`: a `\n` right after it belongs to it.
    skip_line_feed: bool,
    at_start: bool,
    /// Bytes of the event that is being read, comments not counted.
    event_bytes: usize,
}

/// Turns a body into lines. The first one is an empty comment, so that the parser behind never
/// looks for a byte order mark of its own.
pub(crate) fn lines(
    body: BoxStream<'static, Result<Bytes, SseError>>,
    idle: Duration,
    limit: usize,
) -> BoxStream<'static, Result<String, SseError>> {
    let reader = Lines {
        body,
        idle,
        limit,
        buffer: BytesMut::new(),
        scanned: 0,
        skip_line_feed: false,
        at_start: true,
        event_bytes: 0,
    };
    let first = stream::once(async { Ok(":\n".to_owned()) });
    let rest = stream::try_unfold(reader, |mut reader| async move {
        Ok(reader.next_line().await?.map(|line| (line, reader)))
    });
    first.chain(rest).boxed()
}

impl Lines {
    async fn next_line(&mut self) -> Result<Option<String>, SseError> {
        loop {
            if let Some(line) = self.take_line()? {
                return Ok(Some(line));
            }
            if self.buffer.len() > self.limit {
                return Err(SseError::TooLarge { limit: self.limit });
            }
            match timeout(self.idle, self.body.next()).await {
                Err(_) => return Err(SseError::Stalled(self.idle)),
                Ok(None) if self.buffer.is_empty() && self.event_bytes == 0 => return Ok(None),
                Ok(None) => return Err(SseError::Ended),
                Ok(Some(Err(error))) => return Err(error),
                Ok(Some(Ok(bytes))) => self.buffer.extend_from_slice(&bytes),
            }
        }
    }

    fn take_line(&mut self) -> Result<Option<String>, SseError> {
        if self.skip_line_feed && !self.buffer.is_empty() {
            self.skip_line_feed = false;
            if self.buffer[0] == b'\n' {
                self.buffer.advance(1);
            }
        }
        let unseen = &self.buffer[self.scanned..];
        let Some(end) = unseen.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            self.scanned = self.buffer.len();
            return Ok(None);
        };
        let mut line = self.buffer.split_to(self.scanned + end);
        self.scanned = 0;
        self.skip_line_feed = self.buffer[0] == b'\r';
        self.buffer.advance(1);
        if std::mem::take(&mut self.at_start) && line.starts_with(BYTE_ORDER_MARK) {
            line.advance(BYTE_ORDER_MARK.len());
        }
        if line.is_empty() {
            self.event_bytes = 0;
        } else if !line.starts_with(b":") {
            self.event_bytes += line.len();
        }
        if self.event_bytes.max(line.len()) > self.limit {
            return Err(SseError::TooLarge { limit: self.limit });
        }
        let mut text = std::str::from_utf8(&line)
            .map_err(|_| SseError::InvalidUtf8)?
            .to_owned();
        text.push('\n');
        Ok(Some(text))
    }
}
