//! A Reasonix serve as a host of sessions: one of another make, met at its own interface.
//!
//! Guarantees: every request names its session and asserts it, and a reply that does not say whose
//! it is gets held against one that does; a command goes out once; what such a host can't do is
//! `host_unsupported`, and what it does not say stays unknown (RS-03). docs/WIRE.md has the facts
//! that this rests on.

mod commands;
mod frames;
mod moment;
mod operations;
mod shapes;
#[cfg(test)]
mod tests;
mod transcript;
mod waiting;

use std::sync::Arc;

use holdfast_api::{ApiError, Selector};
use reqwest::{Method, RequestBuilder, StatusCode};
use serde_json::Value;

pub(crate) use frames::{changes_sessions, frame, is_shown};

use crate::client::{Answer, Limits, json_of};
use crate::connection::Inner;
use crate::error::RemoteError;

/// The cookie in which such a host takes its token.
pub(crate) const COOKIE: &str = "reasonix_token";
/// Asserts the session of a command, there as here.
const EXPECTED: &str = "x-reasonix-expected-session-id";
/// Says which session a change of the current one led to.
const NOW: &str = "x-reasonix-session-id";

/// A host that speaks so.
pub(crate) struct ForeignHost {
    pub(crate) inner: Arc<Inner>,
}

/// What such a host can't do.
fn unsupported<T>(what: &str) -> Result<T, ApiError> {
    Err(ApiError::new(
        501,
        RemoteError::Unsupported.code(),
        format!("a Reasonix host can't do this from here: {what}; nothing was sent"),
    ))
}

/// The session that is meant.
fn named(selector: &Selector) -> Result<&str, RemoteError> {
    selector.session.as_deref().ok_or_else(|| {
        RemoteError::Refused(Box::new(ApiError::bad_request(
            "session_missing",
            "a request to another host has to name its session; nothing was sent",
        )))
    })
}

impl ForeignHost {
    /// A request about one session, selected and asserted.
    fn request(
        &self,
        method: Method,
        parts: &[&str],
        selector: &Selector,
    ) -> Result<RequestBuilder, RemoteError> {
        let id = named(selector)?;
        let path = holdfast_api::session::session_path(id);
        Ok(self
            .inner
            .client()?
            .request(method, parts)
            .query(&[("session", path)])
            .header(EXPECTED, id))
    }

    async fn read(
        &self,
        parts: &[&str],
        selector: &Selector,
        query: &[(&str, &str)],
        limits: Limits,
    ) -> Result<Value, RemoteError> {
        let request = self.request(Method::GET, parts, selector)?.query(query);
        let read = self.inner.client()?.value(request, limits).await;
        read.map_err(shapes::recoded)
    }

    /// A read about the host as a whole.
    async fn read_all(&self, parts: &[&str], limits: Limits) -> Result<Value, RemoteError> {
        let client = self.inner.client()?;
        let request = client.request(Method::GET, parts);
        client.value(request, limits).await.map_err(shapes::recoded)
    }

    /// Sends a command about one session, once, while the connection stands.
    async fn command(
        &self,
        method: Method,
        parts: &[&str],
        selector: &Selector,
        body: Option<&Value>,
    ) -> Result<Answer, RemoteError> {
        let request = self.request(method, parts, selector)?;
        self.send(request, body).await
    }

    /// RS-36.
    fn connected(&self) -> Result<(), RemoteError> {
        if self.inner.is_connected() {
            Ok(())
        } else {
            Err(RemoteError::Disconnected)
        }
    }

    async fn send(
        &self,
        request: RequestBuilder,
        body: Option<&Value>,
    ) -> Result<Answer, RemoteError> {
        self.connected()?;
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let client = self.inner.client()?;
        let answer = client.answer(request, Limits::ORDINARY).await;
        let answer = answer.map_err(shapes::recoded)?;
        // Anything else may be the web page that it has for whatever it doesn't know.
        match answer.status {
            StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(answer),
            _ => json_of(&answer).map(|_| answer),
        }
    }

    /// The session that the host says is the current one now.
    fn now_current(answer: &Answer) -> Result<String, RemoteError> {
        let told = answer.headers.get(NOW).and_then(|id| id.to_str().ok());
        let told = told.filter(|id| !id.is_empty()).map(str::to_owned);
        told.ok_or_else(|| RemoteError::Garbled("it names no session".to_owned()))
    }

    /// The transcript, as it is told; of the current session alone.
    async fn told_transcript(&self, selector: &Selector) -> Result<Value, RemoteError> {
        let parts = ["transcript", "snapshot"];
        let told = self.read(&parts, selector, &[], Limits::ORDINARY).await?;
        if told["identity"]["sessionId"].as_str() == Some(named(selector)?) {
            Ok(told)
        } else {
            Err(shapes::of_another_session())
        }
    }

    /// The status of that session, which says whose it is.
    async fn told_status(&self, selector: &Selector) -> Result<Value, RemoteError> {
        let told = self.read(&["status"], selector, &[], Limits::ORDINARY);
        let told = told.await?;
        if told["sessionId"].as_str() == Some(named(selector)?) {
            Ok(told)
        } else {
            Err(shapes::of_another_session())
        }
    }

    /// The questions of that session. Their route doesn't look at which session is meant, so those of
    /// another one are told by their turn.
    async fn told_prompts(&self, selector: &Selector) -> Result<Vec<waiting::Asked>, RemoteError> {
        let none = self.read(&["pending-prompts"], selector, &[], Limits::ORDINARY);
        let told = none.await?;
        let status = self.told_status(selector).await?;
        waiting::asked(&told, &waiting::turns(&status))
    }
}
