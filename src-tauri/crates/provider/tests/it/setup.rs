//! What the tests of the OpenAI-compatible client share.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use holdfast_domain::transcript::outbound::OutboundMessage;
use holdfast_provider::openai::{OpenAiClient, OpenAiConfig};
use holdfast_provider::{Limits, ModelClient, ModelEvent, ModelReply, ModelRequest, ProviderError};
use holdfast_testkit::model_server::Fault;
use holdfast_testkit::{ModelServer, Script, Step};

/// The key of every test; no message may hold it.
pub(crate) const KEY: &str = "sk-canary-5417";

/// Long times, so that only a test which wants a limit meets it; short waits between attempts.
pub(crate) fn limits() -> Limits {
    Limits {
        connect: Duration::from_secs(20),
        idle: Duration::from_secs(20),
        silence: Duration::from_secs(20),
        total: Duration::from_secs(60),
        tail: Duration::from_secs(20),
        backoff: Duration::from_millis(1),
        ..Limits::default()
    }
}

pub(crate) fn client_with(url: &str, limits: Limits) -> OpenAiClient {
    let config = OpenAiConfig {
        name: "scripted".to_owned(),
        base_url: url.to_owned(),
        api_key: Some(KEY.to_owned().into()),
    };
    OpenAiClient::new(config, limits, Arc::new(|| 0.0)).unwrap()
}

pub(crate) fn user(text: &str) -> OutboundMessage {
    OutboundMessage::User {
        text: text.to_owned(),
    }
}

pub(crate) fn request(messages: Vec<OutboundMessage>) -> ModelRequest {
    ModelRequest {
        model: "test-model".to_owned(),
        messages,
        tools: Vec::new(),
    }
}

/// A whole stream: its events, and how it ended.
pub(crate) struct Outcome {
    pub(crate) server: ModelServer,
    pub(crate) events: Vec<ModelEvent>,
    pub(crate) end: Result<ModelReply, ProviderError>,
}

impl Outcome {
    pub(crate) fn reply(&self) -> &ModelReply {
        self.end.as_ref().unwrap()
    }

    pub(crate) fn error(&self) -> &ProviderError {
        self.end.as_ref().unwrap_err()
    }

    /// Codes of the visible retries.
    pub(crate) fn retries(&self) -> Vec<&'static str> {
        self.events
            .iter()
            .filter_map(|event| match event {
                ModelEvent::Retrying { code, .. } => Some(*code),
                ModelEvent::Text(_)
                | ModelEvent::Reasoning(_)
                | ModelEvent::ToolCall { .. }
                | ModelEvent::Finished(_) => None,
            })
            .collect()
    }
}

pub(crate) async fn ask_with(script: impl Into<Script>, limits: Limits) -> Outcome {
    let server = ModelServer::start(script.into().strict());
    let client = client_with(&server.url(), limits);
    let mut stream = client.stream(request(vec![user("hello")]));
    let mut events = Vec::new();
    let mut end = None;
    while let Some(item) = stream.next().await {
        assert!(end.is_none(), "something came after the end: {item:?}");
        match item {
            Ok(ModelEvent::Finished(reply)) => end = Some(Ok(reply)),
            Ok(event) => events.push(event),
            Err(error) => {
                let shown = format!("{error} {error:?}");
                assert!(!shown.contains(KEY), "the key is shown: {shown}");
                end = Some(Err(error));
            }
        }
    }
    Outcome {
        server,
        events,
        end: end.expect("a stream ends with a reply or an error"),
    }
}

pub(crate) async fn ask(script: impl Into<Script>) -> Outcome {
    ask_with(script, limits()).await
}

/// A reply of exactly these events, one `data:` line each.
pub(crate) fn raw(events: &[&str]) -> Step {
    let body: String = events
        .iter()
        .map(|data| format!("data: {data}\n\n"))
        .collect();
    Step::fault(Fault::events(body))
}
