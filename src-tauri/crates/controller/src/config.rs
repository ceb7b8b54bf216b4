//! `config.toml`: providers, the default model, and how the agent works.
//!
//! Guarantee: an unknown field, a bad value or a wrong type is an error with file, line and a hint;
//! nothing is ignored in silence.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// Largest configuration file, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The whole file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `provider/model`; the demo model without it.
    pub default_model: Option<String>,
    /// Providers by name; `deepseek`, `openai` and `demo` exist without being spelled out.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// How the agent works.
    pub agent: AgentConfig,
}

/// One provider.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderConfig {
    /// `openai`, or `demo`.
    pub kind: Option<String>,
    /// Up to and including `/v1`.
    pub base_url: Option<String>,
    /// Name of the environment variable that holds the key; never the key itself.
    pub api_key_env: Option<String>,
    /// Models on offer.
    pub models: Vec<String>,
    /// Seconds without a byte of the reply after which a request has failed, 1…3,600; 120 without
    /// it. A reply of comments alone fails after five times as long.
    pub idle_timeout_s: Option<u64>,
}

/// How the agent works.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentConfig {
    /// Permission mode of new sessions.
    pub mode: Mode,
    /// Seconds until a command without its own limit is stopped, 1…86,400.
    pub shell_timeout_s: u64,
    /// What a running command does when the host dies.
    pub on_host_loss: HostLoss,
    /// Names to pass to commands although they look like secrets.
    pub env_keep: Vec<String>,
}

impl Default for AgentConfig {
    fn default() -> Self {
        Self {
            mode: Mode::Ask,
            shell_timeout_s: 120,
            on_host_loss: HostLoss::Finish,
            env_keep: Vec::new(),
        }
    }
}

/// Permission mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every call with an effect is asked.
    Ask,
    /// File edits are allowed, commands are asked.
    Edits,
    /// Everything is allowed.
    Full,
    /// Calls with an effect are refused.
    ReadOnly,
}

impl Mode {
    /// The word in files and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Edits => "edits",
            Self::Full => "full",
            Self::ReadOnly => "read-only",
        }
    }

    /// The mode of that word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Ask, Self::Edits, Self::Full, Self::ReadOnly]
            .into_iter()
            .find(|mode| mode.as_str() == word)
    }
}

/// What a running command does when the host dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HostLoss {
    /// It goes on to its end.
    Finish,
    /// It is stopped.
    Stop,
}

/// A configuration that can't be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It can't be read.
    #[error("{file} can't be read ({reason}); nothing was changed; make it readable or remove it")]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// It can't be understood.
    #[error("{file}, line {line}: {reason}; nothing was changed; correct the line or remove it")]
    Invalid {
        /// The file.
        file: PathBuf,
        /// From 1; 0 when the fault has no line.
        line: usize,
        /// What is wrong.
        reason: String,
    },
}

impl ConfigError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "config_unreadable",
            Self::Invalid { .. } => "config_invalid",
        }
    }
}

/// What the parser found, in words, with the field's name.
fn reason(error: &toml::de::Error, text: &str, line: usize) -> String {
    let found = error.message().replace('\n', " ").replace(
        "expected u64",
        "expected a whole number that is not negative",
    );
    let field = text
        .lines()
        .nth(line.saturating_sub(1))
        .and_then(|line| line.split_once('='))
        .map(|(field, _)| field.trim())
        .filter(|field| !found.contains(field));
    match field {
        Some(field) => format!("{field}: {found}"),
        None => found,
    }
}

impl Config {
    /// Reads `config.toml`; the defaults when there is none.
    ///
    /// # Errors
    /// `config_unreadable`, `config_invalid`.
    pub fn read(file: &Path) -> Result<Self, ConfigError> {
        match holdfast_files::read_bounded(file, MAX_BYTES) {
            Ok(bytes) => Self::parse(&String::from_utf8_lossy(&bytes), file),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(ConfigError::Unreadable {
                file: file.to_path_buf(),
                reason: error.to_string(),
            }),
        }
    }

    /// Reads a text; `file` is named in errors.
    ///
    /// # Errors
    /// `config_invalid`.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ConfigError> {
        let invalid = |line, reason: String| ConfigError::Invalid {
            file: file.to_path_buf(),
            line,
            reason,
        };
        let config: Self = toml::from_str(text).map_err(|error| {
            let line = error
                .span()
                .and_then(|span| text.get(..span.start))
                .map_or(0, |before| before.matches('\n').count() + 1);
            invalid(line, reason(&error, text, line))
        })?;
        let line_of = |word: &str| {
            text.lines()
                .position(|line| line.trim_start().starts_with(word))
                .map_or(0, |index| index + 1)
        };
        if !(1..=86_400).contains(&config.agent.shell_timeout_s) {
            return Err(invalid(
                line_of("shell_timeout_s"),
                "shell_timeout_s must be 1 to 86400 seconds".to_owned(),
            ));
        }
        if let Some(model) = &config.default_model
            && model.split_once('/').is_none()
        {
            return Err(invalid(
                line_of("default_model"),
                format!("default_model is \"provider/model\", not {model:?}"),
            ));
        }
        for (name, provider) in &config.providers {
            let line = line_of(&format!("[providers.{name}]"));
            match provider.kind.as_deref() {
                None | Some("openai" | "demo") => {}
                Some(other) => {
                    return Err(invalid(
                        line,
                        format!("kind {other:?} is not known; use \"openai\" or \"demo\""),
                    ));
                }
            }
            let preset = matches!(name.as_str(), "deepseek" | "openai" | "demo");
            if !preset && provider.kind.as_deref() != Some("demo") && provider.base_url.is_none() {
                return Err(invalid(
                    line,
                    format!("provider {name:?} needs a base_url, such as \"https://host/v1\""),
                ));
            }
            if !(1..=3600).contains(&provider.idle_timeout_s.unwrap_or(1)) {
                return Err(invalid(
                    line_of("idle_timeout_s"),
                    "idle_timeout_s must be 1 to 3600 seconds".to_owned(),
                ));
            }
            if let Some(url) = &provider.base_url
                && !(url.starts_with("http://") || url.starts_with("https://"))
            {
                return Err(invalid(
                    line,
                    format!("base_url must begin with http:// or https://, not {url:?}"),
                ));
            }
        }
        Ok(config)
    }

    /// Names of variables that hold keys; commands never get them.
    pub fn key_names(&self) -> Vec<String> {
        let mut names: Vec<String> = ["DEEPSEEK_API_KEY", "OPENAI_API_KEY"]
            .map(str::to_owned)
            .into();
        names.extend(
            self.providers
                .values()
                .filter_map(|provider| provider.api_key_env.clone()),
        );
        names
    }

    /// The model of new sessions.
    pub fn default_model(&self) -> &str {
        self.default_model.as_deref().unwrap_or("demo/demo")
    }
}
