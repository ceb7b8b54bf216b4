//! A small client for a Holdfast host: JSON with a bearer token, and a reader of its events.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::StreamExt;
use reqwest::Method;
use serde_json::Value;

use crate::wait::until;

/// One event of a host's stream.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// `id:`, empty when the frame has none.
    pub id: String,
    /// `event:`, empty when the frame has none.
    pub event: String,
    /// `data:` as JSON, or as a string when it is none.
    pub data: Value,
}

impl Frame {
    /// The member `kind` of the data.
    #[must_use]
    pub fn kind(&self) -> &str {
        self.data["kind"].as_str().unwrap_or_default()
    }
}

/// A client of one host.
#[derive(Debug, Clone)]
pub struct TestClient {
    client: reqwest::Client,
    base: String,
    token: Option<String>,
}

impl TestClient {
    /// A client that sends this token. No proxy, no redirects.
    ///
    /// # Panics
    /// When the system has no TLS to offer.
    #[must_use]
    pub fn new(base: &str, token: Option<&str>) -> Self {
        Self {
            client: reqwest::Client::builder()
                .no_proxy()
                .redirect(reqwest::redirect::Policy::none())
                .build()
                .expect("an HTTP client"),
            base: base.trim_end_matches('/').to_owned(),
            token: token.map(str::to_owned),
        }
    }

    /// The same host with another token, or none.
    #[must_use]
    pub fn with_token(&self, token: Option<&str>) -> Self {
        Self {
            token: token.map(str::to_owned),
            ..self.clone()
        }
    }

    /// A request with the token, for what the shorthands don't offer.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request and reads its answer: the status, and the body as JSON (`null` when it is
    /// empty, a string when it is no JSON).
    ///
    /// # Errors
    /// When no answer came.
    pub async fn send(request: reqwest::RequestBuilder) -> reqwest::Result<(u16, Value)> {
        let response = request.send().await?;
        let status = response.status().as_u16();
        let text = response.text().await?;
        let body = if text.is_empty() {
            Value::Null
        } else {
            serde_json::from_str(&text).unwrap_or(Value::String(text))
        };
        Ok((status, body))
    }

    /// GET.
    ///
    /// # Panics
    /// When no answer came.
    pub async fn get(&self, path: &str) -> (u16, Value) {
        Self::send(self.request(Method::GET, path))
            .await
            .unwrap_or_else(|error| panic!("GET {path}: {error}"))
    }

    /// POST with a JSON body.
    ///
    /// # Panics
    /// When no answer came.
    pub async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        Self::send(self.request(Method::POST, path).json(body))
            .await
            .unwrap_or_else(|error| panic!("POST {path}: {error}"))
    }

    /// GET that must answer 200.
    ///
    /// # Panics
    /// When it does not.
    pub async fn get_ok(&self, path: &str) -> Value {
        let (status, body) = self.get(path).await;
        assert_eq!(status, 200, "GET {path}: {body}");
        body
    }

    /// POST that must answer 2xx.
    ///
    /// # Panics
    /// When it does not.
    pub async fn post_ok(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.post(path, body).await;
        assert!(
            (200..300).contains(&status),
            "POST {path}: {status} {answer}"
        );
        answer
    }

    /// Opens a stream of events and collects its frames in the background.
    ///
    /// # Panics
    /// When the stream can't be opened.
    pub async fn events(&self, path: &str, last_event_id: Option<&str>) -> SseReader {
        let mut request = self
            .request(Method::GET, path)
            .header("accept", "text/event-stream");
        if let Some(id) = last_event_id {
            request = request.header("last-event-id", id);
        }
        let response = request
            .send()
            .await
            .unwrap_or_else(|error| panic!("GET {path}: {error}"));
        assert_eq!(response.status().as_u16(), 200, "GET {path}");
        SseReader::start(response)
    }
}

#[derive(Debug, Default)]
struct Collected {
    frames: Vec<Frame>,
    ended: bool,
}

/// The frames of one stream, collected by a task; dropping the reader closes the stream.
#[derive(Debug)]
pub struct SseReader {
    collected: Arc<Mutex<Collected>>,
    task: tokio::task::JoinHandle<()>,
}

impl SseReader {
    fn start(response: reqwest::Response) -> Self {
        let collected = Arc::new(Mutex::new(Collected::default()));
        let task = tokio::spawn({
            let collected = Arc::clone(&collected);
            async move {
                let mut body = response.bytes_stream();
                let mut pending = Vec::new();
                while let Some(Ok(bytes)) = body.next().await {
                    pending.extend_from_slice(&bytes);
                    while let Some(end) = pending.windows(2).position(|two| two == b"\n\n") {
                        let rest = pending.split_off(end + 2);
                        let text = String::from_utf8_lossy(&pending).into_owned();
                        pending = rest;
                        if let Some(frame) = frame(&text) {
                            lock(&collected).frames.push(frame);
                        }
                    }
                }
                lock(&collected).ended = true;
            }
        });
        Self { collected, task }
    }

    /// All frames so far.
    #[must_use]
    pub fn frames(&self) -> Vec<Frame> {
        lock(&self.collected).frames.clone()
    }

    /// True when the host ended the stream.
    #[must_use]
    pub fn ended(&self) -> bool {
        lock(&self.collected).ended
    }

    /// Waits until `probe` finds something in the frames so far.
    ///
    /// # Panics
    /// At the deadline, with the kinds that did arrive.
    pub async fn wait_for<T>(
        &self,
        what: &str,
        limit: Duration,
        probe: impl Fn(&[Frame]) -> Option<T>,
    ) -> T {
        let found = tokio::time::timeout(
            limit,
            until(what, limit * 2, || probe(&lock(&self.collected).frames)),
        );
        match found.await {
            Ok(value) => value,
            Err(_) => {
                let kinds: Vec<String> = self
                    .frames()
                    .iter()
                    .map(|frame| frame.kind().to_owned())
                    .collect();
                panic!("waited {limit:?} in vain for: {what}; frames so far: {kinds:?}");
            }
        }
    }

    /// Waits for the first frame that `wanted` accepts.
    ///
    /// # Panics
    /// At the deadline.
    pub async fn wait_for_frame(
        &self,
        what: &str,
        limit: Duration,
        wanted: impl Fn(&Frame) -> bool,
    ) -> Frame {
        self.wait_for(what, limit, |frames| {
            frames.iter().find(|frame| wanted(frame)).cloned()
        })
        .await
    }
}

impl Drop for SseReader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn lock(collected: &Mutex<Collected>) -> std::sync::MutexGuard<'_, Collected> {
    collected.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads one frame; a frame without data (a comment) is none.
fn frame(text: &str) -> Option<Frame> {
    let (mut id, mut event) = (String::new(), String::new());
    let mut data: Vec<&str> = Vec::new();
    for line in text.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => id = value.to_owned(),
            "event" => event = value.to_owned(),
            "data" => data.push(value),
            _ => {}
        }
    }
    if data.is_empty() {
        return None;
    }
    let data = data.join("\n");
    Some(Frame {
        id,
        event,
        data: serde_json::from_str(&data).unwrap_or(Value::String(data)),
    })
}
