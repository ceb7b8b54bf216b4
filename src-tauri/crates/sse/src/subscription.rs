//! A stream of events that a host of sessions sends for as long as it lives, read through
//! `reqwest-eventsource`.
//!
//! Guarantees: one request and no other; the library's own retries are off, and after an end or an
//! error the connection is closed, so that the caller alone decides when to come back. A panic
//! inside the parser is an error of this stream and of nothing else. Silence is the request's own
//! matter: its client needs a read timeout, which sees the comments that the library hides.
//!
//! Not bounded here is the memory of one unfinished line. The other side is a host that the person
//! named and whose token they gave; `quiet` bounds how long such a line may grow.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::{FutureExt, StreamExt};
use reqwest::RequestBuilder;
use reqwest_eventsource::retry::Never;
use reqwest_eventsource::{Error, Event, EventSource};
use tokio::time::timeout;

use crate::error::{ErrorBody, SseError};
use crate::stream::SseEvent;

/// Largest event of a subscription, in bytes of its data.
const EVENT_BYTES: usize = 16 << 20;

/// What a subscription yields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signal {
    /// The host answered; events follow.
    Open,
    /// An event.
    Event(SseEvent),
}

/// A subscription to one host.
pub struct Subscription {
    source: Option<EventSource>,
    quiet: Duration,
}

impl std::fmt::Debug for Subscription {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Subscription")
            .field("open", &self.source.is_some())
            .finish_non_exhaustive()
    }
}

impl Subscription {
    /// Prepares the request; it is sent when the subscription is first asked. `quiet` is the longest
    /// time without a whole event, after which it ends.
    ///
    /// # Errors
    /// [`SseError::Connect`] for a request whose body can't be sent.
    pub fn new(request: RequestBuilder, quiet: Duration) -> Result<Self, SseError> {
        let mut source =
            EventSource::new(request).map_err(|error| SseError::Connect(error.to_string()))?;
        source.set_retry_policy(Box::new(Never));
        Ok(Self {
            source: Some(source),
            quiet,
        })
    }

    /// What comes next; `None` once it is over.
    pub async fn next(&mut self) -> Option<Result<Signal, SseError>> {
        let source = self.source.as_mut()?;
        let polled = AssertUnwindSafe(source.next()).catch_unwind();
        let outcome = match timeout(self.quiet, polled).await {
            Err(_) => Err(SseError::Stalled(self.quiet)),
            Ok(Err(_)) => Err(SseError::Grammar("the parser gave up".to_owned())),
            Ok(Ok(None)) => {
                self.close();
                return None;
            }
            Ok(Ok(Some(Err(Error::StreamEnded)))) => {
                self.close();
                return None;
            }
            Ok(Ok(Some(Err(error)))) => Err(explained(error)),
            Ok(Ok(Some(Ok(Event::Open)))) => Ok(Signal::Open),
            Ok(Ok(Some(Ok(Event::Message(message))))) => {
                if message.data.len() > EVENT_BYTES {
                    Err(SseError::TooLarge { limit: EVENT_BYTES })
                } else {
                    Ok(Signal::Event(SseEvent {
                        id: message.id,
                        event: message.event,
                        data: message.data,
                    }))
                }
            }
        };
        if outcome.is_err() {
            self.close();
        }
        Some(outcome)
    }

    /// Closes the connection now.
    pub fn close(&mut self) {
        if let Some(mut source) = self.source.take() {
            source.close();
        }
    }
}

fn explained(error: Error) -> SseError {
    match error {
        Error::InvalidStatusCode(status, _) => SseError::Status {
            status: status.as_u16(),
            retry_after: None,
            body: ErrorBody::default(),
        },
        Error::InvalidContentType(content_type, _) => SseError::ContentType {
            content_type: String::from_utf8_lossy(content_type.as_bytes()).into_owned(),
            body: ErrorBody::default(),
        },
        Error::Transport(error) => SseError::from_http(error),
        Error::Utf8(_) => SseError::InvalidUtf8,
        Error::Parser(error) => SseError::Grammar(error.to_string()),
        Error::InvalidLastEventId(_) => SseError::Grammar("an id can't be sent back".to_owned()),
        Error::StreamEnded => SseError::Ended,
    }
}
