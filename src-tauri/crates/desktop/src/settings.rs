//! Settings of the app: looks are remembered by the app, defaults of sessions are in `config.toml`.

use holdfast_api::desktop::Settings;
use holdfast_controller::config::{Config, Mode};

use crate::config_file::Edit;
use crate::desktop::Inner;
use crate::error::DesktopError;
use crate::remembered::Looks;

/// Pixels of the base font.
const FONT_SIZES: std::ops::RangeInclusive<u32> = 11..=18;
const THEMES: [&str; 3] = ["system", "light", "dark"];
const LANGUAGES: [&str; 3] = ["system", "en", "zh-CN"];

impl Inner {
    pub(crate) async fn settings(&self) -> Result<Settings, DesktopError> {
        let config = self.config.read().await?;
        Ok(self.settings_with(&config))
    }

    /// Stores what changed; `data_folder`, `retry_enabled` and `version` are not changed by it.
    pub(crate) async fn store_settings(&self, wanted: Settings) -> Result<Settings, DesktopError> {
        check(&wanted)?;
        let mut config = self.config.read().await?;
        let same =
            config.agent.mode.as_str() == wanted.mode && config.default_model() == wanted.model;
        if !same {
            let edit = Edit::Defaults {
                mode: wanted.mode,
                model: wanted.model,
            };
            config = self.config.edit(edit).await?;
            self.models.replace(config.clone());
        }
        self.shelf.change(|remembered| {
            remembered.looks = Looks {
                theme: wanted.theme,
                language: wanted.language,
                font_size: wanted.font_size,
            };
        });
        self.shelf.save().await?;
        Ok(self.settings_with(&config))
    }

    fn settings_with(&self, config: &Config) -> Settings {
        let looks = self.shelf.read(|remembered| remembered.looks.clone());
        Settings {
            theme: looks.theme,
            language: looks.language,
            font_size: looks.font_size,
            mode: config.agent.mode.as_str().to_owned(),
            model: config.default_model().to_owned(),
            data_folder: self.data.to_string_lossy().into_owned(),
            retry_enabled: self.retry_enabled,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

fn check(settings: &Settings) -> Result<(), DesktopError> {
    let wrong = |what: String| Err(DesktopError::SettingInvalid { what });
    if !THEMES.contains(&settings.theme.as_str()) {
        return wrong(format!("the theme {:?} is not known", settings.theme));
    }
    if !LANGUAGES.contains(&settings.language.as_str()) {
        return wrong(format!("the language {:?} is not known", settings.language));
    }
    if !FONT_SIZES.contains(&settings.font_size) {
        return wrong("the font size must be 11 to 18 pixels".to_owned());
    }
    if Mode::parse(&settings.mode).is_none() {
        return wrong(format!("the mode {:?} is not known", settings.mode));
    }
    match settings.model.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(()),
        Some(_) | None => wrong("the model must be of the form provider/model".to_owned()),
    }
}
