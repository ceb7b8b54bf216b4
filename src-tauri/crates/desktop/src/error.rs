//! Why an operation of the app was refused or failed, beyond what the host of a session says.

use std::path::PathBuf;

use holdfast_api::ApiError;
use holdfast_controller::config::ConfigError;

/// An error of the app.
#[derive(Debug, thiserror::Error)]
pub enum DesktopError {
    /// The layout can neither be read nor put aside.
    #[error(
        "{} can't be read and can't be put aside ({reason}); it is untouched; make the data folder \
         writable, then start again", .file.display()
    )]
    LayoutUnusable {
        /// The file.
        file: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// What a person left could not be stored.
    #[error(
        "tabs and drafts could not be stored ({reason}); what is shown is kept until the program \
         ends; make room or make the data folder writable"
    )]
    LayoutNotSaved {
        /// What the system says.
        reason: String,
    },
    /// No such tab.
    #[error("there is no such tab; nothing was done; read the layout again")]
    TabUnknown,
    /// The tab was bound anew while its answer was on the way.
    #[error("the tab shows another session by now; nothing of the answer is shown; read it again")]
    TabChanged,
    /// A setting has a value that it can't have.
    #[error("{what}; no setting was changed; correct it")]
    SettingInvalid {
        /// What is wrong.
        what: String,
    },
    /// The configuration can't be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The configuration could not be written.
    #[error("config.toml could not be written ({reason}); it is as it was; make it writable")]
    ConfigNotSaved {
        /// What the system says.
        reason: String,
    },
    /// A provider's description can't be used.
    #[error("{what}; the provider was not changed; correct it")]
    ProviderInvalid {
        /// What is wrong.
        what: String,
    },
    /// A key could not be kept.
    #[error(
        "the key could not be stored ({reason}); it is kept nowhere; make the data folder writable"
    )]
    KeyNotSaved {
        /// What the system says.
        reason: String,
    },
    /// A key could not be forgotten.
    #[error(
        "the key could not be removed ({reason}); it is still stored; unlock the keychain or make \
         the data folder writable, then try again"
    )]
    KeyNotRemoved {
        /// What the system says.
        reason: String,
    },
    /// No such host.
    #[error("there is no such host; nothing was done; look at the list of hosts")]
    HostUnknown,
    /// A host's description can't be used.
    #[error("{what}; no host was changed; correct it")]
    HostInvalid {
        /// Stable code.
        code: &'static str,
        /// What is wrong.
        what: String,
    },
    /// A project's folder can't be used.
    #[error("{path:?} {why}; no project was added; choose another folder")]
    ProjectInvalid {
        /// The folder.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The sample project could not be written.
    #[error("the sample project could not be written ({reason}); no session was made; make room")]
    DemoFailed {
        /// What the system says.
        reason: String,
    },
    /// A task of the app ended by a defect.
    #[error("the operation ended by a defect; look at the present state before you repeat it")]
    Defect,
}

impl DesktopError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::LayoutUnusable { .. } => "layout_unusable",
            Self::LayoutNotSaved { .. } => "layout_not_saved",
            Self::TabUnknown => "tab_unknown",
            Self::TabChanged => "tab_changed",
            Self::SettingInvalid { .. } => "setting_invalid",
            Self::Config(error) => error.code(),
            Self::ConfigNotSaved { .. } => "config_not_saved",
            Self::ProviderInvalid { .. } => "provider_invalid",
            Self::KeyNotSaved { .. } => "key_not_saved",
            Self::KeyNotRemoved { .. } => "key_not_removed",
            Self::HostUnknown => "host_unknown",
            Self::HostInvalid { code, .. } => code,
            Self::ProjectInvalid { .. } => "project_invalid",
            Self::DemoFailed { .. } => "demo_failed",
            Self::Defect => "internal",
        }
    }

    fn status(&self) -> u16 {
        match self {
            Self::TabUnknown | Self::HostUnknown => 404,
            Self::TabChanged | Self::Config(_) => 409,
            Self::SettingInvalid { .. }
            | Self::ProviderInvalid { .. }
            | Self::HostInvalid { .. }
            | Self::ProjectInvalid { .. } => 400,
            Self::LayoutUnusable { .. }
            | Self::LayoutNotSaved { .. }
            | Self::ConfigNotSaved { .. }
            | Self::KeyNotSaved { .. }
            | Self::KeyNotRemoved { .. }
            | Self::DemoFailed { .. } => 507,
            Self::Defect => 500,
        }
    }
}

impl From<DesktopError> for ApiError {
    fn from(error: DesktopError) -> Self {
        Self::new(error.status(), error.code(), error.to_string())
    }
}
