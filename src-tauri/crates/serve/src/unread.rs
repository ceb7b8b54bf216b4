//! What is left of a request's body when its answer is ready.
//!
//! Guarantee: a client that is refused in the middle of its body hears why. A connection that is
//! closed while data is still on its way is reset, and the reset takes the answer with it; so the
//! rest is read and thrown away, up to [`MOST_BYTES`] and for [`MOST_TIME`].

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, BodyDataStream, Bytes, HttpBody};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::stream::{Stream, StreamExt};

/// Bytes that are thrown away at most.
const MOST_BYTES: usize = 32 * 1024 * 1024;
/// Time for it.
const MOST_TIME: Duration = Duration::from_secs(5);

/// Reads on behind whoever stops reading.
pub(crate) async fn read_on(request: Request, next: Next) -> Response {
    let request = request.map(|body| {
        if body.is_end_stream() {
            body
        } else {
            Body::from_stream(Rest(Some(body.into_data_stream())))
        }
    });
    next.run(request).await
}

/// A body that is read to its end even when it is dropped before.
struct Rest(Option<BodyDataStream>);

impl Stream for Rest {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(body) = &mut self.0 else {
            return Poll::Ready(None);
        };
        let polled = body.poll_next_unpin(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.0 = None;
        }
        polled
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        if let Some(body) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(tokio::time::timeout(MOST_TIME, throw_away(body)));
        }
    }
}

async fn throw_away(mut body: BodyDataStream) {
    let mut left = MOST_BYTES;
    while let Some(Ok(bytes)) = body.next().await {
        match left.checked_sub(bytes.len()) {
            Some(less) => left = less,
            None => return,
        }
    }
}
