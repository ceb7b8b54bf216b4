//! Errors as they leave a host: a stable code, a sentence, and for HTTP a status.

use serde::{Deserialize, Serialize};

use crate::recovery::ToolRecoverySnapshot;

/// An operation was refused or failed. The message says what happened, what is safe, what to do.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status.
    pub status: u16,
    /// Stable code; user interfaces match it and never the message.
    pub code: String,
    /// For a person.
    pub message: String,
    /// TR-41: a refused recovery action carries the present snapshot.
    pub snapshot: Option<Box<ToolRecoverySnapshot>>,
}

/// The body of an error reply.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, specta::Type)]
pub struct ErrorBody {
    /// Stable code.
    pub code: String,
    /// For a person.
    pub message: String,
    /// TR-41.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<Box<ToolRecoverySnapshot>>,
}

impl ApiError {
    /// An error with a status of its own.
    pub fn new(status: u16, code: &str, message: impl Into<String>) -> Self {
        Self {
            status,
            code: code.to_owned(),
            message: message.into(),
            snapshot: None,
        }
    }

    /// The request can't be understood (400).
    pub fn bad_request(code: &str, message: impl Into<String>) -> Self {
        Self::new(400, code, message)
    }

    /// There is no such thing (404).
    pub fn not_found(code: &str, message: impl Into<String>) -> Self {
        Self::new(404, code, message)
    }

    /// The present state does not allow it (409).
    pub fn conflict(code: &str, message: impl Into<String>) -> Self {
        Self::new(409, code, message)
    }

    /// The host could not do it (500).
    pub fn internal(code: &str, message: impl Into<String>) -> Self {
        Self::new(500, code, message)
    }

    /// Nothing can be stored now (507).
    pub fn storage(code: &str, message: impl Into<String>) -> Self {
        Self::new(507, code, message)
    }

    /// The body of the reply.
    pub fn body(&self) -> ErrorBody {
        ErrorBody {
            code: self.code.clone(),
            message: self.message.clone(),
            snapshot: self.snapshot.clone(),
        }
    }
}
