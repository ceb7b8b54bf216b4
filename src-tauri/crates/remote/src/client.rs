//! Single exchanges with one host.
//!
//! Guarantees: no redirect is followed, and to this machine no proxy is used, so the token reaches
//! its origin alone; every answer is bounded in bytes and time; an error says whether the request
//! can have reached the host.

use std::time::Duration;

use futures_util::StreamExt;
use holdfast_api::ApiError;
use holdfast_api::error::ErrorBody;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HOST};
use reqwest::{Method, RequestBuilder, Response, StatusCode, redirect};
use secrecy::{ExposeSecret, SecretString};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::address::Address;
use crate::error::RemoteError;

/// Largest error body that is read, in bytes.
const ERROR_BYTES: usize = 2 * 1024 * 1024;

/// Bounds of one exchange.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Longest time from the request to the whole answer.
    pub time: Duration,
    /// Largest answer, in bytes.
    pub bytes: usize,
}

impl Limits {
    /// RS-33: a verification: 5 s and 4 MiB.
    pub const VERIFICATION: Self = Self::new(5, 4);
    /// TR-42: a recovery snapshot: 2 MiB.
    pub const RECOVERY: Self = Self::new(30, 2);
    /// Everything else.
    pub const ORDINARY: Self = Self::new(30, 16);

    const fn new(seconds: u64, mib: usize) -> Self {
        Self {
            time: Duration::from_secs(seconds),
            bytes: mib * 1024 * 1024,
        }
    }
}

/// A client of one host. Clones share their connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    stream: reqwest::Client,
    address: Address,
    /// What the host calls itself, where a tunnel gives it another port.
    name: Option<String>,
    token: SecretString,
}

impl Client {
    /// A client that sends this token to this origin. `silence` is how long the event stream may be
    /// without a byte (RS-29).
    ///
    /// # Errors
    /// [`RemoteError::NotSent`] when this system has no TLS to offer.
    pub fn new(
        address: Address,
        token: SecretString,
        silence: Duration,
    ) -> Result<Self, RemoteError> {
        let builder = || {
            let builder = reqwest::Client::builder()
                .redirect(redirect::Policy::none())
                .connect_timeout(Duration::from_secs(5));
            if address.is_loopback() {
                builder.no_proxy()
            } else {
                builder
            }
        };
        let failed = |error: reqwest::Error| RemoteError::NotSent(error.to_string());
        Ok(Self {
            http: builder().build().map_err(failed)?,
            stream: builder().read_timeout(silence).build().map_err(failed)?,
            address,
            name: None,
            token,
        })
    }

    /// The same behind a tunnel: the host is asked under its own name, as `127.0.0.1:1234`, since it
    /// answers to no other (its port here is another one).
    #[must_use]
    pub fn under_name(self, name: String) -> Self {
        Self {
            name: Some(name),
            ..self
        }
    }

    fn named(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.name {
            Some(name) => request.header(HOST, name),
            None => request,
        }
    }

    /// Where it sends.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// A request to a route of this host, with its token.
    pub(crate) fn request(&self, method: Method, parts: &[&str]) -> RequestBuilder {
        self.named(self.http.request(method, self.address.route(parts)))
            .header(ACCEPT, "application/json")
            .bearer_auth(self.token.expose_secret())
    }

    /// The request of the event stream of all sessions; `last` resumes it (RS-29, RS-30).
    pub(crate) fn events(&self, last: Option<&str>) -> RequestBuilder {
        let request = self
            .named(self.stream.get(self.address.route(&["events"])))
            .query(&[("all", "1")])
            .bearer_auth(self.token.expose_secret());
        match last {
            Some(last) => request.header("last-event-id", last),
            None => request,
        }
    }

    /// A read, decoded as it is.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        parts: &[&str],
        query: &(impl Serialize + Sync),
        limits: Limits,
    ) -> Result<T, RemoteError> {
        let request = self.request(Method::GET, parts).query(query);
        decoded(self.value(request, limits).await?)
    }

    /// Sends once and answers the JSON; `null` for an answer without a body.
    pub(crate) async fn value(
        &self,
        request: RequestBuilder,
        limits: Limits,
    ) -> Result<Value, RemoteError> {
        tokio::time::timeout(limits.time, exchange(request, limits.bytes))
            .await
            .unwrap_or_else(|_| {
                Err(RemoteError::Lost(format!(
                    "no answer within {} s",
                    limits.time.as_secs()
                )))
            })
    }
}

/// Reads a value as what it must be.
pub(crate) fn decoded<T: DeserializeOwned>(value: Value) -> Result<T, RemoteError> {
    serde_json::from_value(value).map_err(|error| RemoteError::Garbled(error.to_string()))
}

async fn exchange(request: RequestBuilder, bytes: usize) -> Result<Value, RemoteError> {
    let response = request.send().await.map_err(sorted)?;
    let status = response.status();
    let json = is_json(&response);
    if status.is_success() {
        if status == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        if !json {
            return Err(RemoteError::Unsupported);
        }
        let body = body(response, bytes).await?;
        return serde_json::from_slice(&body)
            .map_err(|error| RemoteError::Garbled(error.to_string()));
    }
    if status == StatusCode::UNAUTHORIZED {
        return Err(RemoteError::Unauthorized);
    }
    let body = body(response, ERROR_BYTES).await.unwrap_or_default();
    let told = json
        .then(|| serde_json::from_slice::<ErrorBody>(&body).ok())
        .flatten();
    Err(refusal(status, told, &body))
}

/// Another host's errors may be plain text; then the code is ours and the words are theirs.
fn refusal(status: StatusCode, told: Option<ErrorBody>, body: &[u8]) -> RemoteError {
    let own_route = matches!(
        status,
        StatusCode::NOT_FOUND | StatusCode::NOT_IMPLEMENTED | StatusCode::METHOD_NOT_ALLOWED
    );
    match told {
        Some(told) if told.code == "route_unknown" || told.code == "method_wrong" => {
            RemoteError::Unsupported
        }
        Some(told) => RemoteError::Refused(Box::new(ApiError {
            status: status.as_u16(),
            code: told.code,
            message: told.message,
            snapshot: told.snapshot,
        })),
        None if own_route => RemoteError::Unsupported,
        None => {
            let text: String = String::from_utf8_lossy(body)
                .trim()
                .chars()
                .take(500)
                .collect();
            RemoteError::Refused(Box::new(ApiError::new(
                status.as_u16(),
                "host_refused",
                if text.is_empty() {
                    format!(
                        "the host refused with status {}; nothing was done",
                        status.as_u16()
                    )
                } else {
                    format!("the host refused: {text}")
                },
            )))
        }
    }
}

fn is_json(response: &Response) -> bool {
    response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .is_some_and(|value| {
            let essence = value.split(';').next().unwrap_or_default().trim();
            essence.eq_ignore_ascii_case("application/json")
        })
}

async fn body(response: Response, limit: usize) -> Result<Vec<u8>, RemoteError> {
    let mut body = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| RemoteError::Lost(error.without_url().to_string()))?;
        if body.len() + chunk.len() > limit {
            return Err(RemoteError::Garbled(format!(
                "it is larger than {limit} bytes"
            )));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// Only a connection that was never made proves that nothing was sent.
fn sorted(error: reqwest::Error) -> RemoteError {
    let unmade = error.is_connect() || error.is_builder();
    let text = error.without_url().to_string();
    if unmade {
        RemoteError::NotSent(text)
    } else {
        RemoteError::Lost(text)
    }
}
