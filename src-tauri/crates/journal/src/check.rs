//! Names that become part of a path or of a checksum: checked once, so that none leads elsewhere.

use crate::error::JournalError;

const MAX_NAME_BYTES: usize = 128;

/// A session id: 1 to 128 of ASCII letters, digits, `-`, `_`, `.`, not starting with a dot.
pub(crate) fn session_id(id: &str) -> Result<(), JournalError> {
    let fine = id
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    if fine && !id.is_empty() && id.len() <= MAX_NAME_BYTES && !id.starts_with('.') {
        Ok(())
    } else {
        Err(JournalError::NameInvalid {
            what: "session id",
            allowed: "letters, digits, '-', '_' and '.', 128 at most",
        })
    }
}

/// A spill file's name: 1 to 128 of `[a-z0-9_-]`.
pub(crate) fn spill_name(name: &str) -> Result<(), JournalError> {
    let fine = name.bytes().all(|byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_')
    });
    if fine && !name.is_empty() && name.len() <= MAX_NAME_BYTES {
        Ok(())
    } else {
        Err(JournalError::NameInvalid {
            what: "spill file name",
            allowed: "a-z, 0-9, '-' and '_', 128 at most",
        })
    }
}
