//! What can go wrong with a stream of events, with enough of the answer to explain it.
//!
//! Guarantee: no error carries a URL, a header that was sent, or more than the bounded start of a
//! body.

use std::time::Duration;

use thiserror::Error;

/// The bounded start of a body that was not a stream of events.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ErrorBody {
    /// At most [`crate::SseLimits::other_body_bytes`] bytes.
    pub bytes: Vec<u8>,
    /// True when the body went on, stalled or broke off.
    pub truncated: bool,
}

impl ErrorBody {
    /// The bytes as text, with U+FFFD for what is not UTF-8.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// Why a stream of events ended early. After an error the stream yields nothing more.
#[derive(Debug, Error)]
pub enum SseError {
    /// The server answered with another status than 2xx.
    #[error("the server answered {status}; nothing was streamed")]
    Status {
        /// HTTP status.
        status: u16,
        /// What `Retry-After` asked for, when it could be understood.
        retry_after: Option<Duration>,
        /// Bounded start of the body.
        body: ErrorBody,
    },
    /// The server answered 2xx with something that is not `text/event-stream`.
    #[error("the server answered with {content_type:?} instead of a stream of events")]
    ContentType {
        /// The content type as sent, empty when there was none.
        content_type: String,
        /// Bounded start of the body.
        body: ErrorBody,
    },
    /// No connection was made: the request did not reach the server.
    #[error("no connection: {0}; the request did not reach the server")]
    Connect(String),
    /// The connection broke. Whether the server acted on the request is not known.
    #[error("the connection broke: {0}")]
    Transport(String),
    /// No byte came for the idle limit.
    #[error("no byte came for {} ms, and the connection was closed", .0.as_millis())]
    Stalled(Duration),
    /// The body ended in the middle of an event; the half event is not delivered.
    #[error("the stream ended in the middle of an event")]
    Ended,
    /// One event, or one line of it, is larger than the limit.
    #[error("an event is larger than {limit} bytes; the connection was closed")]
    TooLarge {
        /// [`crate::SseLimits::event_bytes`].
        limit: usize,
    },
    /// A line is not UTF-8.
    #[error("the stream holds bytes that are not UTF-8; the connection was closed")]
    InvalidUtf8,
    /// A line that the grammar of event streams does not know.
    #[error("the stream is not a stream of events: {0}")]
    Grammar(String),
}

impl SseError {
    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Status { .. } => "status",
            Self::ContentType { .. } => "content_type",
            Self::Connect(_) => "connect",
            Self::Transport(_) => "transport",
            Self::Stalled(_) => "stalled",
            Self::Ended => "ended",
            Self::TooLarge { .. } => "too_large",
            Self::InvalidUtf8 => "invalid_utf8",
            Self::Grammar(_) => "grammar",
        }
    }

    /// Sorts an error of the HTTP client, without its URL (which may hold a secret).
    pub(crate) fn from_http(error: reqwest::Error) -> Self {
        let connect = error.is_connect();
        let error = error.without_url();
        let mut message = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            message.push_str(": ");
            message.push_str(&cause.to_string());
            source = cause.source();
        }
        if connect {
            Self::Connect(message)
        } else {
            Self::Transport(message)
        }
    }
}
