//! The demo: a fresh copy of the sample project where a person can find it.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use holdfast_controller::models::sample_project;

use crate::error::DesktopError;

/// Copies of the sample project at most.
const MAX_COPIES: u32 = 10_000;

/// `Holdfast demo` in the person's documents, else at home, else in the temporary folder.
pub fn default_folder() -> PathBuf {
    dirs::document_dir()
        .filter(|folder| folder.is_dir())
        .or_else(|| dirs::home_dir().filter(|folder| folder.is_dir()))
        .unwrap_or_else(std::env::temp_dir)
        .join("Holdfast demo")
}

/// Writes the sample project into the first free `greeting-N`. Blocking.
pub(crate) fn make(folder: &Path) -> Result<PathBuf, DesktopError> {
    let failed = |error: std::io::Error| DesktopError::DemoFailed {
        reason: error.to_string(),
    };
    std::fs::create_dir_all(folder).map_err(failed)?;
    for number in 1..=MAX_COPIES {
        let copy = folder.join(format!("greeting-{number}"));
        match std::fs::create_dir(&copy) {
            Ok(()) => {
                for (path, content) in sample_project() {
                    std::fs::write(copy.join(path), content).map_err(failed)?;
                }
                return Ok(copy);
            }
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Err(failed(std::io::Error::new(
        ErrorKind::AlreadyExists,
        "there are too many copies already; remove some",
    )))
}
