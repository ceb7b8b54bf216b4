//! Attempt after attempt, until a reply is whole, or has failed in a way that asking again would not
//! mend.
//!
//! Guarantee: a request is sent again only while nothing of a reply was delivered, and every time
//! with a `Retrying` before it.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::Endpoint;
use super::attempt::Attempt;
use crate::client::ModelEvent;
use crate::error::ProviderError;

/// The state of one reply's stream.
pub(crate) struct Run {
    endpoint: Arc<Endpoint>,
    body: Bytes,
    model: String,
    /// The attempt that runs or comes next, from 1.
    number: u32,
    phase: Phase,
}

enum Phase {
    Waiting(Duration),
    Streaming(Box<Attempt>),
    Ended,
}

impl Run {
    pub(crate) fn new(endpoint: Arc<Endpoint>, body: Bytes, model: String) -> Self {
        Self {
            endpoint,
            body,
            model,
            number: 1,
            phase: Phase::Waiting(Duration::ZERO),
        }
    }

    /// The next item; `None` after the last one.
    pub(crate) async fn next(&mut self) -> Option<Result<ModelEvent, ProviderError>> {
        loop {
            match &mut self.phase {
                Phase::Ended => return None,
                Phase::Waiting(wait) => {
                    if !wait.is_zero() {
                        tokio::time::sleep(*wait).await;
                    }
                    self.phase = Phase::Streaming(Box::new(Attempt::start(
                        &self.endpoint,
                        self.body.clone(),
                        self.model.clone(),
                    )));
                }
                Phase::Streaming(attempt) => {
                    let item = match attempt.next(&self.endpoint).await {
                        Ok(event @ ModelEvent::Finished(_)) => {
                            self.phase = Phase::Ended;
                            Ok(event)
                        }
                        Ok(event) => Ok(event),
                        Err(cause) => {
                            let partial = attempt.partial();
                            match partial {
                                Some(partial) => {
                                    self.phase = Phase::Ended;
                                    Err(ProviderError::Interrupted {
                                        partial: Box::new(partial),
                                        cause: Box::new(cause),
                                    })
                                }
                                None => self.failed(cause),
                            }
                        }
                    };
                    return Some(item);
                }
            }
        }
    }

    /// Nothing was delivered: wait and ask again, or give up.
    fn failed(&mut self, cause: ProviderError) -> Result<ModelEvent, ProviderError> {
        let limits = &self.endpoint.limits;
        let wait = cause
            .retry()
            .and_then(|asked| limits.wait_after(self.number, asked, (self.endpoint.jitter)()));
        let Some(wait) = wait else {
            self.phase = Phase::Ended;
            return Err(cause);
        };
        let event = ModelEvent::Retrying {
            attempt: self.number,
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
            code: cause.code(),
            message: cause.to_string(),
        };
        self.number += 1;
        self.phase = Phase::Waiting(wait);
        Ok(event)
    }
}
