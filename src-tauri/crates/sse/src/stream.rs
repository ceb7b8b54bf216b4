//! Opening a stream of events and reading it to its end.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime};

use eventsource_stream::{EventStream, EventStreamError};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use reqwest::{RequestBuilder, Response};
use tokio::time::{Instant, timeout, timeout_at};

use crate::error::{ErrorBody, SseError};
use crate::lines::lines;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The last `id:` seen in the stream so far, empty when there was none.
    pub id: String,
    /// `event:`, or `message`.
    pub event: String,
    /// The `data:` lines, joined with `\n`.
    pub data: String,
}

/// Bounds of one stream.
#[derive(Debug, Clone, Copy)]
pub struct SseLimits {
    /// Longest wait for the answer's head, and then for the next byte. A body that is not a stream
    /// of events has this time as a whole.
    pub idle: Duration,
    /// Largest event, in bytes of its lines.
    pub event_bytes: usize,
    /// How much is kept of a body that is not a stream of events.
    pub other_body_bytes: usize,
}

impl Default for SseLimits {
    /// 120 s, 8 MiB, 64 KiB.
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(120),
            event_bytes: 8 << 20,
            other_body_bytes: 64 << 10,
        }
    }
}

/// The events of one request. Ends with `None` after a whole last event, or after one error.
pub struct SseStream {
    /// `None` once over: the connection is then closed.
    inner: Option<BoxStream<'static, Result<SseEvent, SseError>>>,
}

impl std::fmt::Debug for SseStream {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SseStream")
            .field("open", &self.inner.is_some())
            .finish()
    }
}

impl SseStream {
    /// Closes the connection now; the stream then ends.
    pub fn close(&mut self) {
        self.inner = None;
    }
}

impl Stream for SseStream {
    type Item = Result<SseEvent, SseError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(inner) = self.inner.as_mut() else {
            return Poll::Ready(None);
        };
        let item = std::task::ready!(inner.as_mut().poll_next(context));
        if !matches!(item, Some(Ok(_))) {
            self.inner = None;
        }
        Poll::Ready(item)
    }
}

/// Sends the request, once, when the stream is first polled, and streams the answer's events.
#[must_use]
pub fn open(request: RequestBuilder, limits: SseLimits) -> SseStream {
    let events = stream::once(connect(request, limits))
        .map_ok(move |response| events(response, limits))
        .try_flatten();
    SseStream {
        inner: Some(events.boxed()),
    }
}

async fn connect(request: RequestBuilder, limits: SseLimits) -> Result<Response, SseError> {
    let sent = request.header(ACCEPT, "text/event-stream").send();
    let response = timeout(limits.idle, sent)
        .await
        .map_err(|_| SseError::Stalled(limits.idle))?
        .map_err(SseError::from_http)?;
    let status = response.status();
    if !status.is_success() {
        return Err(SseError::Status {
            status: status.as_u16(),
            retry_after: retry_after(response.headers(), SystemTime::now()),
            body: bounded_body(response, limits).await,
        });
    }
    let content_type = response
        .headers()
        .get(CONTENT_TYPE)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        .unwrap_or_default();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    if !essence.eq_ignore_ascii_case("text/event-stream") {
        return Err(SseError::ContentType {
            body: bounded_body(response, limits).await,
            content_type,
        });
    }
    Ok(response)
}

fn events(response: Response, limits: SseLimits) -> BoxStream<'static, Result<SseEvent, SseError>> {
    let body = response.bytes_stream().map_err(SseError::from_http).boxed();
    EventStream::new(lines(body, limits.idle, limits.event_bytes))
        .map_ok(|event| SseEvent {
            id: event.id,
            event: event.event,
            data: event.data,
        })
        .map_err(|error| match error {
            EventStreamError::Transport(error) => error,
            EventStreamError::Utf8(_) => SseError::InvalidUtf8,
            EventStreamError::Parser(error) => SseError::Grammar(format!("{:?}", error.code)),
        })
        .boxed()
}

/// The start of a body that only explains something: what arrives within the limits.
async fn bounded_body(response: Response, limits: SseLimits) -> ErrorBody {
    let deadline = Instant::now() + limits.idle;
    let mut stream = response.bytes_stream();
    let mut body = ErrorBody::default();
    loop {
        match timeout_at(deadline, stream.next()).await {
            Ok(None) => return body,
            Ok(Some(Ok(bytes))) => {
                let room = limits.other_body_bytes - body.bytes.len();
                body.bytes
                    .extend_from_slice(&bytes[..bytes.len().min(room)]);
                if bytes.len() > room {
                    body.truncated = true;
                    return body;
                }
            }
            Ok(Some(Err(_))) | Err(_) => {
                body.truncated = true;
                return body;
            }
        }
    }
}

/// `Retry-After` as seconds or as a date; a date in the past is zero.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let value = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_read_as_seconds_and_as_a_date() {
        let read = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, value.parse().unwrap());
            retry_after(&headers, SystemTime::UNIX_EPOCH + Duration::from_secs(100))
        };
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        assert_eq!(
            read("Thu, 01 Jan 1970 00:02:00 GMT"),
            Some(Duration::from_secs(20))
        );
        assert_eq!(read("Thu, 01 Jan 1970 00:00:01 GMT"), Some(Duration::ZERO));
        assert_eq!(read("soon"), None);
    }
}
