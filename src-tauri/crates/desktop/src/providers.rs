//! Providers and models: as configured, changed, and tried.
//!
//! Guarantee: a key goes in and never comes out again; what is changed holds for the next request.

use std::collections::BTreeSet;
use std::sync::Arc;

use holdfast_api::ApiError;
use holdfast_api::desktop::{
    ModelList, ModelView, ProviderChange, ProviderCheck, ProviderList, ProviderView,
};
use holdfast_controller::config::Config;
use holdfast_controller::models::{ConfiguredModels, Models, ProbeTarget, probe};

use crate::config_file::Edit;
use crate::desktop::Inner;
use crate::error::DesktopError;

/// Providers that need not be spelled out, with models that are on offer without a configuration.
const PRESETS: [(&str, &[&str]); 3] = [
    ("deepseek", &["deepseek-chat", "deepseek-reasoner"]),
    ("demo", &["demo"]),
    ("openai", &[]),
];
const MAX_NAME: usize = 40;
const MAX_MODELS: usize = 200;
const MAX_TEXT: usize = 500;

impl Inner {
    pub(crate) async fn providers(&self) -> Result<ProviderList, DesktopError> {
        let config = self.config.read().await?;
        self.listed(config).await
    }

    pub(crate) async fn change_provider(
        &self,
        change: ProviderChange,
    ) -> Result<ProviderList, DesktopError> {
        check(&change)?;
        if is_demo(&change.name, &self.config.read().await?) {
            return Err(DesktopError::ProviderInvalid {
                what: format!(
                    "{:?} is the scripted demo, which has no settings",
                    change.name
                ),
            });
        }
        // The key first: a provider without its key would look ready and fail.
        if !change.api_key.is_empty() {
            let keys = Arc::clone(&self.keys);
            let (name, key) = (change.name.clone(), change.api_key);
            tokio::task::spawn_blocking(move || keys.store(&name, key.trim()))
                .await
                .map_err(|_| DesktopError::Defect)??;
        }
        let edit = Edit::Provider {
            name: change.name,
            base_url: Some(change.base_url).filter(|url| !url.is_empty()),
            models: change.models,
        };
        let config = self.config.edit(edit).await?;
        self.models.replace(config.clone());
        self.listed(config).await
    }

    pub(crate) async fn try_provider(
        &self,
        change: ProviderChange,
    ) -> Result<ProviderCheck, ApiError> {
        check(&change)?;
        let config = self.config.read().await?;
        if is_demo(&change.name, &config) {
            return Ok(works());
        }
        let Some(model) = change.models.first().cloned() else {
            return Ok(wrong("model_missing", "name a model to try it with"));
        };
        let base_url = match change.base_url.as_str() {
            "" => self.models.base_url(&change.name).unwrap_or_default(),
            url => url.to_owned(),
        };
        let api_key = if change.api_key.is_empty() {
            let models = self.models.clone();
            let name = change.name.clone();
            let found = blocking(move || models.key(&name)).await?;
            match found {
                Ok(key) => key,
                Err(error) => return Ok(wrong(&error.code, &error.message)),
            }
        } else {
            Some(change.api_key.trim().to_owned())
        };
        let target = ProbeTarget {
            name: change.name,
            base_url,
            model,
            api_key,
        };
        Ok(match probe(target).await {
            Ok(()) => works(),
            Err(error) => wrong(error.code(), &error.to_string()),
        })
    }

    pub(crate) async fn models_on_offer(&self) -> Result<ModelList, DesktopError> {
        let config = self.config.read().await?;
        let default_model = config.default_model().to_owned();
        let mut ids = Vec::new();
        for (provider, models) in offered(&config) {
            ids.extend(models.iter().map(|model| format!("{provider}/{model}")));
        }
        if !ids.contains(&default_model) {
            ids.push(default_model.clone());
        }
        let models = self.models.clone();
        let models = blocking(move || {
            ids.into_iter()
                .map(|id| {
                    let problem = models.client(&id).err();
                    let provider = id.split_once('/').map_or("", |(provider, _)| provider);
                    ModelView {
                        demo: is_demo(provider, &config),
                        problem: problem.map(|error| error.message).unwrap_or_default(),
                        id,
                    }
                })
                .collect()
        })
        .await?;
        Ok(ModelList {
            default_model,
            models,
        })
    }

    async fn listed(&self, config: Config) -> Result<ProviderList, DesktopError> {
        let models = self.models.clone();
        let providers = blocking(move || {
            offered(&config)
                .into_iter()
                .map(|(name, offered)| view(&models, &config, name, offered))
                .collect()
        })
        .await?;
        Ok(ProviderList { providers })
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, DesktopError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|_| DesktopError::Defect)
}

fn view(
    models: &ConfiguredModels,
    config: &Config,
    name: String,
    offered: Vec<String>,
) -> ProviderView {
    let demo = is_demo(&name, config);
    ProviderView {
        base_url: if demo {
            String::new()
        } else {
            models.base_url(&name).unwrap_or_default()
        },
        api_key_env: models.key_name(&name).unwrap_or_default(),
        has_key: !demo && models.key(&name).is_ok_and(|key| key.is_some()),
        models: offered,
        name,
    }
}

/// Names in order, with their models.
fn offered(config: &Config) -> Vec<(String, Vec<String>)> {
    let names: BTreeSet<&str> = PRESETS
        .iter()
        .map(|(name, _)| *name)
        .chain(config.providers.keys().map(String::as_str))
        .collect();
    names
        .into_iter()
        .map(|name| {
            let configured = config
                .providers
                .get(name)
                .map(|provider| provider.models.clone())
                .filter(|models| !models.is_empty());
            let preset = || {
                PRESETS
                    .iter()
                    .find(|(preset, _)| *preset == name)
                    .map(|(_, models)| models.iter().map(|model| (*model).to_owned()).collect())
                    .unwrap_or_default()
            };
            (name.to_owned(), configured.unwrap_or_else(preset))
        })
        .collect()
}

fn is_demo(provider: &str, config: &Config) -> bool {
    let kind = config
        .providers
        .get(provider)
        .and_then(|provider| provider.kind.as_deref());
    kind == Some("demo") || (provider == "demo" && kind.is_none())
}

fn check(change: &ProviderChange) -> Result<(), DesktopError> {
    let wrong = |what: &str| {
        Err(DesktopError::ProviderInvalid {
            what: what.to_owned(),
        })
    };
    let name = &change.name;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(plain) {
        return wrong("a provider's name is 1 to 40 letters, digits, - or _");
    }
    let preset = PRESETS.iter().any(|(preset, _)| preset == name);
    let url = &change.base_url;
    if url.is_empty() && !preset {
        return wrong("the provider needs an address, such as https://host/v1");
    }
    let is_web = url.starts_with("http://") || url.starts_with("https://");
    if !url.is_empty() && (!is_web || url.len() > MAX_TEXT) {
        return wrong("the address must begin with http:// or https://");
    }
    let unfit = |model: &String| {
        model.trim().is_empty() || model.len() > MAX_TEXT || model.chars().any(char::is_control)
    };
    if change.models.len() > MAX_MODELS || change.models.iter().any(unfit) {
        return wrong("models are at most 200 names, none of them empty");
    }
    if change.api_key.chars().any(char::is_control) {
        return wrong("the key holds a line break or another character that no key has");
    }
    Ok(())
}

fn works() -> ProviderCheck {
    ProviderCheck {
        ok: true,
        code: String::new(),
        message: String::new(),
    }
}

fn wrong(code: &str, message: &str) -> ProviderCheck {
    ProviderCheck {
        ok: false,
        code: code.to_owned(),
        message: message.to_owned(),
    }
}
