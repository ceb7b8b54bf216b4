//! What can go wrong with another host, and whether the request may have been acted on.

use holdfast_api::ApiError;
use thiserror::Error;

/// A failed exchange with another host.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum RemoteError {
    /// The address can't be used.
    #[error("this address can't be used: {why}; nothing was sent")]
    AddressInvalid {
        /// What is wrong with it.
        why: &'static str,
    },
    /// There is no connection, so the request was not sent (RS-36).
    #[error(
        "the host is not connected; nothing was sent; what is shown is what was last known, and \
         the connection is tried again by itself"
    )]
    Disconnected,
    /// The request did not reach the host.
    #[error("the host could not be reached ({0}); nothing was sent")]
    NotSent(String),
    /// The request was sent and no whole answer came: what became of it is not known.
    #[error("the host's answer was lost ({0}); whether the request took effect is not known")]
    Lost(String),
    /// The host refused, with its own code and words.
    #[error("{}", .0.message)]
    Refused(Box<ApiError>),
    /// The host does not know the token.
    #[error("the host does not accept the token; nothing was done; check the token of this host")]
    Unauthorized,
    /// The host doesn't know this route (RS-34).
    #[error("this host has no such operation; nothing was done")]
    Unsupported,
    /// The answer is not what it must be.
    #[error("the host's answer can't be understood: {0}; nothing of it is used")]
    Garbled(String),
}

impl RemoteError {
    /// Stable code; the host's own when it refused.
    pub fn code(&self) -> &str {
        match self {
            Self::Refused(error) => &error.code,
            other => other.stable_code(),
        }
    }

    /// Stable code, without the host's own.
    pub fn stable_code(&self) -> &'static str {
        match self {
            Self::AddressInvalid { .. } => "host_address_invalid",
            Self::Disconnected => "host_disconnected",
            Self::NotSent(_) => "host_unreachable",
            Self::Lost(_) => "reply_lost",
            Self::Refused(_) => "host_refused",
            Self::Unauthorized => "host_unauthorized",
            Self::Unsupported => "host_unsupported",
            Self::Garbled(_) => "host_reply_invalid",
        }
    }

    /// The request may have been acted on.
    pub fn is_lost(&self) -> bool {
        match self {
            Self::Lost(_) | Self::Garbled(_) => true,
            Self::AddressInvalid { .. }
            | Self::Disconnected
            | Self::NotSent(_)
            | Self::Refused(_)
            | Self::Unauthorized
            | Self::Unsupported => false,
        }
    }
}

impl From<RemoteError> for ApiError {
    fn from(error: RemoteError) -> Self {
        let status = match &error {
            RemoteError::Refused(refused) => return (**refused).clone(),
            RemoteError::AddressInvalid { .. } => 400,
            RemoteError::Disconnected | RemoteError::NotSent(_) => 503,
            RemoteError::Lost(_) => 504,
            RemoteError::Unauthorized => 401,
            RemoteError::Unsupported => 501,
            RemoteError::Garbled(_) => 502,
        };
        Self::new(status, error.code(), error.to_string())
    }
}
