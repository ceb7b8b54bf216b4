//! OpenAI-compatible chat completions, streamed. DeepSeek is a preset; local servers work too.
//!
//! Guarantees: no redirect is followed, and no proxy is asked for a loopback address; the key is
//! sent to the configured address only.

mod assembly;
mod attempt;
mod body;
mod failure;
mod run;
mod wire;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, Url};
use secrecy::{ExposeSecret, SecretString};

use crate::client::{ModelClient, ModelRequest, ModelStream};
use crate::error::ProviderError;
use crate::limits::{Jitter, Limits};

/// Where a provider is and how it knows us. `Debug` does not show the key.
#[derive(Debug, Clone)]
pub struct OpenAiConfig {
    /// Name for people.
    pub name: String,
    /// Address up to and including `/v1`, or whatever stands before `/chat/completions`.
    pub base_url: String,
    /// The key; local servers often want none.
    pub api_key: Option<SecretString>,
}

impl OpenAiConfig {
    /// The DeepSeek preset.
    #[must_use]
    pub fn deepseek(api_key: SecretString) -> Self {
        Self {
            name: "deepseek".to_owned(),
            base_url: "https://api.deepseek.com/v1".to_owned(),
            api_key: Some(api_key),
        }
    }

    /// The OpenAI preset.
    #[must_use]
    pub fn openai(api_key: SecretString) -> Self {
        Self {
            name: "openai".to_owned(),
            base_url: "https://api.openai.com/v1".to_owned(),
            api_key: Some(api_key),
        }
    }
}

/// A client of one provider. Cheap to clone.
#[derive(Clone)]
pub struct OpenAiClient {
    endpoint: Arc<Endpoint>,
}

/// What all requests of a client share.
struct Endpoint {
    config: OpenAiConfig,
    limits: Limits,
    jitter: Jitter,
    http: Client,
    url: Url,
}

impl std::fmt::Debug for OpenAiClient {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("OpenAiClient")
            .field("config", &self.endpoint.config)
            .field("limits", &self.endpoint.limits)
            .finish_non_exhaustive()
    }
}

impl OpenAiClient {
    /// Sets up a client; nothing is sent yet.
    ///
    /// # Errors
    /// `provider_configuration`: an address that is no http or https URL, or holds a password; a key
    /// with characters that no header may hold.
    pub fn new(
        config: OpenAiConfig,
        limits: Limits,
        jitter: Jitter,
    ) -> Result<Self, ProviderError> {
        let wrong = |message: &str| ProviderError::Configuration {
            message: message.to_owned(),
        };
        let address = format!(
            "{}/chat/completions",
            config.base_url.trim().trim_end_matches('/')
        );
        let url = Url::parse(&address).map_err(|_| wrong("its address is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("its address does not begin with http:// or https://"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong("its address holds a user or password"));
        }
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(key) = &config.api_key {
            let mut value = HeaderValue::try_from(format!("Bearer {}", key.expose_secret().trim()))
                .map_err(|_| wrong("its key holds characters that can't be sent"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let mut builder = Client::builder()
            .user_agent(concat!("holdfast/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .redirect(Policy::none())
            .connect_timeout(limits.connect);
        if is_loopback(&url) {
            builder = builder.no_proxy();
        }
        let http = builder
            .build()
            .map_err(|error| wrong(&error.without_url().to_string()))?;
        Ok(Self {
            endpoint: Arc::new(Endpoint {
                config,
                limits,
                jitter,
                http,
                url,
            }),
        })
    }
}

impl ModelClient for OpenAiClient {
    fn name(&self) -> &str {
        &self.endpoint.config.name
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let run = match body::serialise(&request) {
            Ok(body) => run::Run::new(Arc::clone(&self.endpoint), body.into(), request.model),
            Err(error) => return stream::once(async { Err(error) }).boxed(),
        };
        stream::unfold(run, |mut run| async move {
            run.next().await.map(|item| (item, run))
        })
        .boxed()
    }
}

impl Endpoint {
    fn request(&self, body: Bytes) -> RequestBuilder {
        self.http.post(self.url.clone()).body(body)
    }

    /// Takes the key out of text that came from outside: some servers quote it back.
    fn without_key(&self, text: &str) -> String {
        match &self.config.api_key {
            Some(key) if !key.expose_secret().trim().is_empty() => {
                text.replace(key.expose_secret().trim(), "[key]")
            }
            Some(_) | None => text.to_owned(),
        }
    }
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    host.eq_ignore_ascii_case("localhost")
        || host
            .trim_matches(['[', ']'])
            .parse::<IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}
