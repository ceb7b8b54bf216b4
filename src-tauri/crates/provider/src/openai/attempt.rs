//! One request on one connection, until its reply is whole or has failed.
//!
//! Guarantee: it ends within [`Limits::total`](crate::Limits), whatever the server does (C28).

use std::collections::VecDeque;
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use holdfast_sse::{SseError, SseEvent, SseLimits, SseStream, open};
use tokio::time::{Instant, timeout_at};

use super::assembly::Assembly;
use super::wire::Chunk;
use super::{Endpoint, failure, wire};
use crate::client::{ModelEvent, ModelReply};
use crate::error::ProviderError;

/// The running request.
pub(crate) struct Attempt {
    events: SseStream,
    assembly: Assembly,
    ready: VecDeque<ModelEvent>,
    /// The reply is whole; the connection is closed.
    done: bool,
    delivered: bool,
    /// When the whole attempt is over.
    end: Instant,
    total: Duration,
    silence: Duration,
    tail: Duration,
}

impl Attempt {
    pub(crate) fn start(endpoint: &Endpoint, body: Bytes, model: String) -> Self {
        let limits = &endpoint.limits;
        let bounds = SseLimits {
            idle: limits.idle,
            // A reply that was not streamed comes as one body.
            other_body_bytes: limits.reply_bytes,
            ..SseLimits::default()
        };
        Self {
            events: open(endpoint.request(body), bounds),
            assembly: Assembly::new(model, limits),
            ready: VecDeque::new(),
            done: false,
            delivered: false,
            end: Instant::now() + limits.total,
            total: limits.total,
            silence: limits.silence,
            tail: limits.tail,
        }
    }

    /// The next event; `Finished` is the last one. Cancel-safe.
    pub(crate) async fn next(&mut self, endpoint: &Endpoint) -> Result<ModelEvent, ProviderError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                self.delivered = true;
                return Ok(event);
            }
            if self.done {
                return Ok(ModelEvent::Finished(self.assembly.take()));
            }
            let wait = if self.assembly.is_finished() {
                self.tail
            } else {
                self.silence
            };
            let until = self.end.min(Instant::now() + wait);
            let item = timeout_at(until, self.events.next()).await;
            let last = match item {
                Err(_) if until == self.end => Err(ProviderError::Stalled { after: self.total }),
                Err(_) => Err(ProviderError::Stalled { after: wait }),
                Ok(None) => Err(ProviderError::Incomplete),
                Ok(Some(Ok(event))) => self.take_event(endpoint, &event),
                Ok(Some(Err(error))) => self.take_failure(endpoint, error),
            };
            match last {
                Ok(()) => {}
                // What goes wrong after the finish reason takes nothing from a whole reply.
                Err(_) if self.assembly.is_finished() => {
                    self.events.close();
                    self.done = true;
                }
                Err(error) => {
                    self.events.close();
                    return Err(error);
                }
            }
        }
    }

    /// The reply as far as it came, when something of it was delivered.
    pub(crate) fn partial(&mut self) -> Option<ModelReply> {
        self.delivered.then(|| self.assembly.take())
    }

    fn take_event(&mut self, endpoint: &Endpoint, event: &SseEvent) -> Result<(), ProviderError> {
        if event.data.trim() == "[DONE]" {
            // With a finish reason before it this closes a whole reply: see `next`.
            return Err(ProviderError::Incomplete);
        }
        let chunk = wire::read(&event.data).map_err(|error| ProviderError::BadReply {
            message: format!("an event is not a chunk of a reply ({error})"),
        })?;
        self.take_chunk(endpoint, chunk)
    }

    fn take_chunk(&mut self, endpoint: &Endpoint, chunk: Chunk) -> Result<(), ProviderError> {
        if let Some(error) = chunk.error.as_ref().filter(|error| !error.is_null()) {
            return Err(failure::of_object(endpoint, error));
        }
        self.ready.extend(self.assembly.add(chunk)?);
        Ok(())
    }

    /// A server that ignores `stream` answers with the whole reply as JSON; anything else failed.
    fn take_failure(&mut self, endpoint: &Endpoint, error: SseError) -> Result<(), ProviderError> {
        if let SseError::ContentType { content_type, body } = &error
            && content_type.to_ascii_lowercase().contains("json")
            && !body.truncated
            && let Ok(chunk) = wire::read::<Chunk>(&body.text())
            && (chunk.choices.is_some() || chunk.error.is_some())
        {
            return self.take_chunk(endpoint, chunk);
        }
        Err(failure::of_stream(endpoint, error))
    }
}
