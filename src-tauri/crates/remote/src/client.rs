//! Single exchanges with one host.
//!
//! Guarantees: no redirect is followed, and to this machine no proxy is used, so the token reaches
//! its origin alone; every answer is bounded in bytes and time; an error says whether the request
//! can have reached the host.

use std::time::Duration;

use futures_util::StreamExt;
use holdfast_api::ApiError;
use holdfast_api::error::ErrorBody;
use reqwest::header::{ACCEPT, CONTENT_TYPE, COOKIE, HOST, HeaderMap, HeaderValue};
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
    /// How the token is sent, where it is not a bearer.
    cookie: Option<HeaderValue>,
}

/// A whole answer of success.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
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
            cookie: None,
        })
    }

    /// The same client for a host that takes its token from a cookie of this name alone. It is set
    /// on each request by hand: no cookie of a host is ever stored or sent back.
    ///
    /// # Errors
    /// [`RemoteError::Unauthorized`] for a token that no cookie can hold, which can't be this host's.
    pub(crate) fn with_cookie(&self, name: &str) -> Result<Self, RemoteError> {
        let token = self.token.expose_secret();
        let fits =
            |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b',' | b';' | b'\\');
        if !token.bytes().all(fits) {
            return Err(RemoteError::Unauthorized);
        }
        let mut cookie = HeaderValue::from_str(&format!("{name}={token}"))
            .map_err(|_| RemoteError::Unauthorized)?;
        cookie.set_sensitive(true);
        Ok(Self {
            cookie: Some(cookie),
            ..self.clone()
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
        let request = self
            .http
            .request(method, self.address.route(parts))
            .header(ACCEPT, "application/json");
        self.authorised(request)
    }

    fn authorised(&self, request: RequestBuilder) -> RequestBuilder {
        let request = self.named(request);
        match &self.cookie {
            Some(cookie) => request.header(COOKIE, cookie.clone()),
            None => request.bearer_auth(self.token.expose_secret()),
        }
    }

    /// Whether the one route without a token answers as that of a host of our own.
    ///
    /// # Errors
    /// Those of any request.
    pub(crate) async fn greets(&self) -> Result<bool, RemoteError> {
        let limits = Limits::VERIFICATION;
        let request = self.http.get(self.address.route(&["healthz"]));
        let request = self.named(request);
        match in_time(limits.time, exchange(request, limits.bytes, Some(64))).await {
            Ok(answer) => Ok(answer.body.trim_ascii() == b"ok"),
            // It goes on for longer than that.
            Err(RemoteError::Garbled(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The request of the event stream of all sessions; `last` resumes it (RS-29, RS-30).
    pub(crate) fn events(&self, last: Option<&str>) -> RequestBuilder {
        let request = self
            .stream
            .get(self.address.route(&["events"]))
            .query(&[("all", "1")]);
        let request = self.authorised(request);
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
        json_of(&self.answer(request, limits).await?)
    }

    /// Sends once and answers what came: all of it when it is JSON, else status and headers.
    pub(crate) async fn answer(
        &self,
        request: RequestBuilder,
        limits: Limits,
    ) -> Result<Answer, RemoteError> {
        in_time(limits.time, exchange(request, limits.bytes, None)).await
    }
}

async fn in_time(
    time: Duration,
    exchange: impl Future<Output = Result<Answer, RemoteError>>,
) -> Result<Answer, RemoteError> {
    tokio::time::timeout(time, exchange)
        .await
        .unwrap_or_else(|_| {
            Err(RemoteError::Lost(format!(
                "no answer within {} s",
                time.as_secs()
            )))
        })
}

/// RS-34: an answer that is not JSON is one of a host without the route.
pub(crate) fn json_of(answer: &Answer) -> Result<Value, RemoteError> {
    if answer.status == StatusCode::NO_CONTENT {
        return Ok(Value::Null);
    }
    if !is_json(&answer.headers) {
        return Err(RemoteError::Unsupported);
    }
    serde_json::from_slice(&answer.body).map_err(|error| RemoteError::Garbled(error.to_string()))
}

/// Reads a value as what it must be.
pub(crate) fn decoded<T: DeserializeOwned>(value: Value) -> Result<T, RemoteError> {
    serde_json::from_value(value).map_err(|error| RemoteError::Garbled(error.to_string()))
}

/// `plain` is the most that is read of an answer that is not JSON; nothing of it without.
async fn exchange(
    request: RequestBuilder,
    bytes: usize,
    plain: Option<usize>,
) -> Result<Answer, RemoteError> {
    let response = request.send().await.map_err(sorted)?;
    let status = response.status();
    let headers = response.headers().clone();
    if status.is_success() {
        let body = match plain {
            _ if is_json(&headers) => body(response, bytes).await?,
            Some(bytes) => body(response, bytes).await?,
            None => Vec::new(),
        };
        return Ok(Answer {
            status,
            headers,
            body,
        });
    }
    if status == StatusCode::UNAUTHORIZED {
        return Err(RemoteError::Unauthorized);
    }
    let body = body(response, ERROR_BYTES).await.unwrap_or_default();
    let told = is_json(&headers)
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

fn is_json(headers: &HeaderMap) -> bool {
    headers
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
