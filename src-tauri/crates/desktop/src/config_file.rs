//! Changes of `config.toml` that leave a person's own lines and comments as they are.
//!
//! Guarantee: what would be written is read by the same rules as at a start, before it replaces the
//! file; one change at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_controller::config::Config;
use toml_edit::{Array, DocumentMut, Item, Table, value};

use crate::error::DesktopError;

/// The file.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    file: PathBuf,
    changing: Arc<tokio::sync::Mutex<()>>,
}

/// What is changed.
#[derive(Debug, Clone)]
pub(crate) enum Edit {
    /// Defaults of new sessions.
    Defaults { mode: String, model: String },
    /// A provider. Without an address a preset's own stays.
    Provider {
        name: String,
        base_url: Option<String>,
        models: Vec<String>,
    },
}

impl ConfigFile {
    pub(crate) fn new(data: &Path) -> Self {
        Self {
            file: data.join("config.toml"),
            changing: Arc::default(),
        }
    }

    /// As it is now.
    ///
    /// # Errors
    /// `config_unreadable`, `config_invalid`.
    pub(crate) async fn read(&self) -> Result<Config, DesktopError> {
        let file = self.file.clone();
        tokio::task::spawn_blocking(move || Config::read(&file))
            .await
            .map_err(|_| DesktopError::Defect)?
            .map_err(DesktopError::from)
    }

    /// Makes a change, and returns the configuration that holds from now on.
    ///
    /// # Errors
    /// `config_unreadable`, `config_invalid`, `config_not_saved`: the file is as it was.
    pub(crate) async fn edit(&self, edit: Edit) -> Result<Config, DesktopError> {
        let one = Arc::clone(&self.changing).lock_owned().await;
        let file = self.file.clone();
        tokio::task::spawn_blocking(move || {
            let _one = one;
            // Reads by the strict rules first: a file with a fault is the person's to correct.
            Config::read(&file)?;
            let text = match std::fs::read_to_string(&file) {
                Ok(text) => text,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
                Err(error) => return Err(not_saved(&error)),
            };
            let mut document: DocumentMut = text.parse().map_err(|error| not_saved(&error))?;
            apply(&mut document, edit);
            let text = document.to_string();
            let config = Config::parse(&text, &file)?;
            holdfast_files::write_private(&file, text.as_bytes())
                .map_err(|error| not_saved(&error))?;
            Ok(config)
        })
        .await
        .map_err(|_| DesktopError::Defect)?
    }
}

fn not_saved(error: &dyn std::fmt::Display) -> DesktopError {
    DesktopError::ConfigNotSaved {
        reason: error.to_string(),
    }
}

fn apply(document: &mut DocumentMut, edit: Edit) {
    match edit {
        Edit::Defaults { mode, model } => {
            set(document.as_item_mut(), &["default_model"], value(model));
            set(document.as_item_mut(), &["agent", "mode"], value(mode));
        }
        Edit::Provider {
            name,
            base_url,
            models,
        } => {
            let path = |member| ["providers", name.as_str(), member];
            if let Some(base_url) = base_url {
                set(document.as_item_mut(), &path("base_url"), value(base_url));
            }
            let models: Array = models.into_iter().collect();
            set(document.as_item_mut(), &path("models"), value(models));
        }
    }
}

/// Sets a value and makes the tables on its way. A comment behind an old value stays.
fn set(item: &mut Item, path: &[&str], mut new: Item) {
    let [member, rest @ ..] = path else {
        if let (Some(old), Some(new)) = (item.as_value(), new.as_value_mut()) {
            *new.decor_mut() = old.decor().clone();
        }
        *item = new;
        return;
    };
    if item.as_table_like().is_none() {
        *item = Item::Table(Table::new());
    }
    if let Some(table) = item.as_table_like_mut() {
        let below = table.entry(member).or_insert_with(|| {
            if rest.is_empty() {
                Item::None
            } else {
                let mut table = Table::new();
                table.set_implicit(true);
                Item::Table(table)
            }
        });
        set(below, rest, new);
    }
}
