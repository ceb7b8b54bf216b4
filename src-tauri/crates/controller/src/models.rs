//! From a model's name to a client of its provider.

mod probe;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use holdfast_api::ApiError;
use holdfast_provider::demo::DemoClient;
use holdfast_provider::openai::{OpenAiClient, OpenAiConfig};
use holdfast_provider::{Limits, ModelClient};

use crate::config::{Config, ProviderConfig};

pub use self::probe::{ProbeTarget, probe};
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

/// Finds keys that are kept outside the environment.
pub trait Keys: Send + Sync {
    /// The key of that provider; `None` when none is kept.
    ///
    /// # Errors
    /// Why the place can't be read now, for a person; never with a key in it.
    fn key(&self, provider: &str) -> Result<Option<String>, String>;
}

/// Models as configured. Clones share the configuration, so that a change reaches all of them.
#[derive(Clone)]
pub struct ConfiguredModels {
    config: Arc<RwLock<Config>>,
    limits: Limits,
    keys: Option<Arc<dyn Keys>>,
}

impl std::fmt::Debug for ConfiguredModels {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ConfiguredModels")
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

/// Address and key variable of a provider that needs not be spelled out.
fn preset(provider: &str) -> (Option<&'static str>, Option<&'static str>) {
    match provider {
        "deepseek" => (
            Some("https://api.deepseek.com/v1"),
            Some("DEEPSEEK_API_KEY"),
        ),
        "openai" => (Some("https://api.openai.com/v1"), Some("OPENAI_API_KEY")),
        _ => (None, None),
    }
}

impl ConfiguredModels {
    /// For a configuration, with bounds for every request. Keys come from the environment alone.
    pub fn new(config: Config, limits: Limits) -> Self {
        Self {
            config: Arc::new(RwLock::new(config)),
            limits,
            keys: None,
        }
    }

    /// The same, with a place for keys that are not in the environment; the environment wins.
    #[must_use]
    pub fn with_keys(self, keys: Arc<dyn Keys>) -> Self {
        Self {
            keys: Some(keys),
            ..self
        }
    }

    /// Takes another configuration for all requests that begin from now on.
    pub fn replace(&self, config: Config) {
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
    }

    fn configured(&self, provider: &str) -> Option<ProviderConfig> {
        let config = self.config.read().unwrap_or_else(PoisonError::into_inner);
        config.providers.get(provider).cloned()
    }

    /// Name of the environment variable that holds that provider's key, if it has one.
    pub fn key_name(&self, provider: &str) -> Option<String> {
        self.configured(provider)
            .and_then(|provider| provider.api_key_env)
            .or_else(|| preset(provider).1.map(str::to_owned))
    }

    /// Address of that provider, if it has one.
    pub fn base_url(&self, provider: &str) -> Option<String> {
        self.configured(provider)
            .and_then(|provider| provider.base_url)
            .or_else(|| preset(provider).0.map(str::to_owned))
    }

    /// The key of that provider: the environment's, else the kept one; `None` when it needs none.
    ///
    /// # Errors
    /// `provider_key_missing`, `provider_key_unreadable`.
    pub fn key(&self, provider: &str) -> Result<Option<String>, ApiError> {
        let name = self.key_name(provider);
        if let Some(key) = name.as_ref().and_then(|name| std::env::var(name).ok()) {
            return Ok(Some(key));
        }
        let kept = match &self.keys {
            None => None,
            Some(keys) => keys.key(provider).map_err(|reason| {
                ApiError::new(
                    424,
                    "provider_key_unreadable",
                    format!(
                        "the key of provider {provider:?} can't be read ({reason}); nothing was \
                         sent; unlock the place where keys are kept, or enter the key again"
                    ),
                )
            })?,
        };
        match (kept, name) {
            (Some(key), _) => Ok(Some(key)),
            (None, None) => Ok(None),
            (None, Some(name)) => Err(ApiError::new(
                424,
                "provider_key_missing",
                format!(
                    "the key of provider {provider:?} is missing: the environment variable \
                     {name} is not set{}; nothing was sent; set it and start Holdfast again{}",
                    if self.keys.is_some() {
                        " and no key is stored"
                    } else {
                        ""
                    },
                    if self.keys.is_some() {
                        ", or enter the key in the settings"
                    } else {
                        ""
                    },
                ),
            )),
        }
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
        let configured = self.configured(provider);
        let kind = configured
            .as_ref()
            .and_then(|provider| provider.kind.as_deref());
        if kind == Some("demo") || (provider == "demo" && kind.is_none()) {
            return Ok((Arc::new(DemoClient::new(DEMO_PACE)), name.to_owned()));
        }
        let base_url = self
            .base_url(provider)
            .ok_or_else(|| unknown("no such provider is configured"))?;
        let config = OpenAiConfig {
            name: provider.to_owned(),
            base_url,
            api_key: self.key(provider)?.map(Into::into),
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
