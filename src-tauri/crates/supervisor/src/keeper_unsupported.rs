//! The supervisor's body where it is not written yet: it starts nothing and says so.

use std::path::Path;

use crate::error::SupervisorError;

/// Starts nothing.
///
/// # Errors
/// Always `unsupported_platform`.
pub fn run(_folder: &Path) -> Result<(), SupervisorError> {
    Err(SupervisorError::UnsupportedPlatform)
}
