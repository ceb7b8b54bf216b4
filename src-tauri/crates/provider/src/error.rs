//! Why a model gave no whole reply: what happened, what is safe, what to do.
//!
//! Guarantees: no message holds the API key or a URL; a provider's own words are bounded. No tool is
//! started from a reply that did not finish, and every message says so.

use std::time::Duration;

use thiserror::Error;

use crate::client::ModelReply;

/// The end of every message that concerns a failed reply.
const SAFE: &str = "No tool was started from this reply";

/// A failed request or reply.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ProviderError {
    /// 401 or 403.
    #[error(
        "The provider refused the API key (HTTP {status}): {message}. {SAFE}. Check this provider's \
         key, then send again."
    )]
    Auth {
        /// HTTP status.
        status: u16,
        /// The provider's words, bounded.
        message: String,
    },
    /// 429, or its like inside a stream.
    #[error(
        "The provider limits how often it may be asked{}: {message}. {SAFE}. Wait, then send again.",
        asked(*.retry_after)
    )]
    RateLimited {
        /// The provider's words, bounded.
        message: String,
        /// The wait it asked for.
        retry_after: Option<Duration>,
        /// False when waiting does not help, as with a used-up quota.
        passing: bool,
    },
    /// 408, 409, 5xx, no connection, or a connection that broke.
    #[error(
        "The provider can't be reached or is out of order: {message}. {SAFE}. Check the network and \
         the provider's address, then send again."
    )]
    Unavailable {
        /// What the network or the provider said, bounded.
        message: String,
        /// The wait it asked for.
        retry_after: Option<Duration>,
    },
    /// Another 4xx, or an error object of the provider.
    #[error(
        "The provider refused the request: {message}. {SAFE}. Sending the same again will not help: \
         change what the provider objects to."
    )]
    Refused {
        /// The provider's words, bounded.
        message: String,
    },
    /// An answer that is no chat completion.
    #[error(
        "The provider's answer could not be read: {message}. {SAFE}. Check that the provider's \
         address is that of an OpenAI-compatible API."
    )]
    BadReply {
        /// What was found instead.
        message: String,
    },
    /// Nothing came for too long.
    #[error(
        "The provider sent nothing for {} s, so the connection was closed. {SAFE}. Send again.",
        .after.as_secs_f64()
    )]
    Stalled {
        /// The limit that was reached.
        after: Duration,
    },
    /// The reply ended without a finish reason.
    #[error("The provider's reply broke off before its end. {SAFE}. Send again.")]
    Incomplete,
    /// A failure after a part of the reply was delivered; it is not sent again by itself.
    #[error("{cause} What had arrived until then is kept and marked as partial.")]
    Interrupted {
        /// The reply as far as it came. Its calls may be cut short and must not be run.
        partial: Box<ModelReply>,
        /// The failure.
        cause: Box<ProviderError>,
    },
    /// The client can't be set up.
    #[error("This provider is not usable as configured: {message}. Nothing was sent.")]
    Configuration {
        /// What is wrong.
        message: String,
    },
}

impl ProviderError {
    /// Stable code. That of an interrupted reply is the code of its cause.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Auth { .. } => "provider_auth",
            Self::RateLimited { .. } => "provider_rate_limited",
            Self::Unavailable { .. } => "provider_unavailable",
            Self::Refused { .. } => "provider_refused",
            Self::BadReply { .. } => "provider_bad_reply",
            Self::Stalled { .. } => "provider_stalled",
            Self::Incomplete => "provider_incomplete",
            Self::Interrupted { cause, .. } => cause.code(),
            Self::Configuration { .. } => "provider_configuration",
        }
    }

    /// The reply as far as it came, when a part was delivered.
    #[must_use]
    pub fn partial(&self) -> Option<&ModelReply> {
        match self {
            Self::Interrupted { partial, .. } => Some(partial),
            Self::Auth { .. }
            | Self::RateLimited { .. }
            | Self::Unavailable { .. }
            | Self::Refused { .. }
            | Self::BadReply { .. }
            | Self::Stalled { .. }
            | Self::Incomplete
            | Self::Configuration { .. } => None,
        }
    }

    /// Whether the same request may succeed later, and the wait that the provider asked for.
    pub(crate) fn retry(&self) -> Option<Option<Duration>> {
        match self {
            Self::RateLimited {
                retry_after,
                passing: true,
                ..
            }
            | Self::Unavailable { retry_after, .. } => Some(*retry_after),
            Self::Stalled { .. } | Self::Incomplete => Some(None),
            Self::RateLimited { passing: false, .. }
            | Self::Auth { .. }
            | Self::Refused { .. }
            | Self::BadReply { .. }
            | Self::Interrupted { .. }
            | Self::Configuration { .. } => None,
        }
    }
}

fn asked(retry_after: Option<Duration>) -> String {
    retry_after.map_or_else(String::new, |wait| {
        format!(" and asks to wait {} s", wait.as_secs())
    })
}
