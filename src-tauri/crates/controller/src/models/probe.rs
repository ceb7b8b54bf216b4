//! One short question to a provider, to learn whether it can be used and what is wrong if not.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use holdfast_domain::transcript::outbound::OutboundMessage;
use holdfast_provider::openai::{OpenAiClient, OpenAiConfig};
use holdfast_provider::{Limits, ModelClient, ModelEvent, ModelRequest, ProviderError};

/// Longest time of a trial.
const PATIENCE: Duration = Duration::from_secs(20);

/// Who is asked. `Debug` is left out because of the key.
pub struct ProbeTarget {
    /// Name for people.
    pub name: String,
    /// Up to and including `/v1`.
    pub base_url: String,
    /// The provider's name of the model.
    pub model: String,
    /// The key; local servers often want none.
    pub api_key: Option<String>,
}

/// Asks once, at most 20 s, without retries and without tools.
///
/// # Errors
/// The provider's own error: its code and message say what is wrong.
pub async fn probe(target: ProbeTarget) -> Result<(), ProviderError> {
    let config = OpenAiConfig {
        name: target.name,
        base_url: target.base_url,
        api_key: target.api_key.map(Into::into),
    };
    let limits = Limits {
        idle: PATIENCE,
        silence: PATIENCE,
        total: PATIENCE,
        attempts: 1,
        ..Limits::default()
    };
    let client = OpenAiClient::new(config, limits, Arc::new(|| 0.0))?;
    let mut reply = client.stream(ModelRequest {
        model: target.model,
        messages: vec![OutboundMessage::User {
            text: "Answer with the one word: ready".to_owned(),
        }],
        tools: Vec::new(),
    });
    while let Some(event) = reply.next().await {
        match event? {
            ModelEvent::Finished(_) => return Ok(()),
            ModelEvent::Text(_)
            | ModelEvent::Reasoning(_)
            | ModelEvent::ToolCall { .. }
            | ModelEvent::Retrying { .. } => {}
        }
    }
    Err(ProviderError::Incomplete)
}
