//! From a model's name to a client of its provider.

use std::sync::Arc;
use std::time::Duration;

use holdfast_api::ApiError;
use holdfast_provider::demo::DemoClient;
use holdfast_provider::openai::{OpenAiClient, OpenAiConfig};
use holdfast_provider::{Limits, ModelClient};

use crate::config::Config;

pub use holdfast_provider::Limits as RequestLimits;
pub use holdfast_provider::demo::{TASK as DEMO_TASK, sample_project};

/// Pace of the demo model's stream.
const DEMO_PACE: Duration = Duration::from_millis(12);

/// A reply of comments alone may last this many times as long as one of nothing.
const SILENCE_IDLES: u32 = 5;

/// Finds the client for `provider/model`.
pub trait Models: Send + Sync {
    /// The client, and the provider's name of the model.
    ///
    /// # Errors
    /// `model_unknown`, `provider_key_missing`, `provider_invalid`.
    fn client(&self, model: &str) -> Result<(Arc<dyn ModelClient>, String), ApiError>;
}

/// Models as configured.
#[derive(Debug, Clone)]
pub struct ConfiguredModels {
    config: Config,
    limits: Limits,
}

impl ConfiguredModels {
    /// For a configuration, with bounds for every request.
    pub fn new(config: Config, limits: Limits) -> Self {
        Self { config, limits }
    }
}

impl Models for ConfiguredModels {
    fn client(&self, model: &str) -> Result<(Arc<dyn ModelClient>, String), ApiError> {
        let unknown = |why: &str| {
            ApiError::bad_request(
                "model_unknown",
                format!(
                    "the model {model:?} can't be used: {why}; the session is unchanged; choose \
                     another model or add its provider to config.toml"
                ),
            )
        };
        let (provider, name) = model
            .split_once('/')
            .ok_or_else(|| unknown("it is not of the form provider/model"))?;
        let configured = self.config.providers.get(provider);
        let kind = configured.and_then(|provider| provider.kind.as_deref());
        if kind == Some("demo") || (provider == "demo" && kind.is_none()) {
            return Ok((Arc::new(DemoClient::new(DEMO_PACE)), name.to_owned()));
        }
        let (preset_url, preset_key) = match provider {
            "deepseek" => (
                Some("https://api.deepseek.com/v1"),
                Some("DEEPSEEK_API_KEY"),
            ),
            "openai" => (Some("https://api.openai.com/v1"), Some("OPENAI_API_KEY")),
            _ => (None, None),
        };
        let base_url = configured
            .and_then(|provider| provider.base_url.as_deref())
            .or(preset_url)
            .ok_or_else(|| unknown("no such provider is configured"))?;
        let key_name = configured
            .and_then(|provider| provider.api_key_env.as_deref())
            .or(preset_key);
        let api_key = match key_name {
            None => None,
            Some(name) => Some(std::env::var(name).map_err(|_| {
                ApiError::new(
                    424,
                    "provider_key_missing",
                    format!(
                        "the key of provider {provider:?} is missing: the environment variable \
                         {name} is not set; nothing was sent; set it and start Holdfast again"
                    ),
                )
            })?),
        };
        let config = OpenAiConfig {
            name: provider.to_owned(),
            base_url: base_url.to_owned(),
            api_key: api_key.map(Into::into),
        };
        let mut limits = self.limits.clone();
        if let Some(seconds) = configured.and_then(|provider| provider.idle_timeout_s) {
            limits.idle = Duration::from_secs(seconds);
            limits.silence = limits.idle * SILENCE_IDLES;
        }
        let client =
            OpenAiClient::new(config, limits, Arc::new(rand::random::<f64>)).map_err(|error| {
                ApiError::new(
                    424,
                    "provider_invalid",
                    format!("the provider {provider:?} can't be used: {error}"),
                )
            })?;
        Ok((Arc::new(client), name.to_owned()))
    }
}
