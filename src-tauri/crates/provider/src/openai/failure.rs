//! What a failed answer means.
//!
//! Guarantee: a provider's words are cut to a bounded length and lose the key before they are shown.

use holdfast_sse::{ErrorBody, SseError};
use serde_json::Value;

use super::Endpoint;
use super::wire;
use crate::error::ProviderError;

/// Most characters of a provider's own words.
const WORDS: usize = 600;

/// Sorts a failure of the stream.
pub(crate) fn of_stream(endpoint: &Endpoint, error: SseError) -> ProviderError {
    match error {
        SseError::Status {
            status,
            retry_after,
            body,
        } => of_status(endpoint, status, retry_after, &body),
        SseError::ContentType { content_type, body } => ProviderError::BadReply {
            message: words(endpoint, &unexpected(&content_type, &body)),
        },
        SseError::Connect(message) | SseError::Transport(message) => ProviderError::Unavailable {
            message: words(endpoint, &message),
            retry_after: None,
        },
        SseError::Stalled(after) => ProviderError::Stalled { after },
        SseError::Ended => ProviderError::Incomplete,
        error @ (SseError::TooLarge { .. } | SseError::InvalidUtf8 | SseError::Grammar(_)) => {
            ProviderError::BadReply {
                message: error.to_string(),
            }
        }
    }
}

/// Sorts an `error` member inside an answer with status 200.
pub(crate) fn of_object(endpoint: &Endpoint, error: &Value) -> ProviderError {
    let message = words(endpoint, &said(error));
    let code = error["code"]
        .as_u64()
        .or_else(|| error["status"].as_u64())
        .or_else(|| error["code"].as_str().and_then(|code| code.parse().ok()))
        .unwrap_or(0);
    let kind = kind(error);
    let has = |part: &str| kind.contains(part);
    if code == 401 || code == 403 || has("authentication") || has("invalid_api_key") {
        ProviderError::Auth {
            status: u16::try_from(code).unwrap_or(200),
            message,
        }
    } else if code == 429 || has("rate_limit") || has("insufficient_quota") {
        ProviderError::RateLimited {
            message,
            retry_after: None,
            passing: !has("insufficient_quota"),
        }
    } else if (500..600).contains(&code) || has("overloaded") || has("server_error") {
        ProviderError::Unavailable {
            message,
            retry_after: None,
        }
    } else {
        ProviderError::Refused { message }
    }
}

fn of_status(
    endpoint: &Endpoint,
    status: u16,
    retry_after: Option<std::time::Duration>,
    body: &ErrorBody,
) -> ProviderError {
    let text = body.text();
    let object = wire::read::<Value>(&text).unwrap_or(Value::Null);
    let error = if object["error"].is_null() {
        &object
    } else {
        &object["error"]
    };
    let own = if object.is_null() {
        plain(&text)
    } else {
        said(error)
    };
    let own = words(endpoint, &own);
    let message = format!("HTTP {status}: {own}");
    match status {
        401 | 403 => ProviderError::Auth {
            status,
            message: own,
        },
        429 => ProviderError::RateLimited {
            message,
            retry_after,
            passing: !kind(error).contains("insufficient_quota"),
        },
        408 | 409 | 500..=599 => ProviderError::Unavailable {
            message,
            retry_after,
        },
        300..=399 => ProviderError::BadReply {
            message: format!("HTTP {status}, a redirect, which is not followed"),
        },
        _ => ProviderError::Refused { message },
    }
}

fn unexpected(content_type: &str, body: &ErrorBody) -> String {
    let text = body.text();
    let start = text.trim_start().to_ascii_lowercase();
    if start.starts_with("<!doctype html") || start.starts_with("<html") {
        "a web page instead of a reply".to_owned()
    } else if body.bytes.is_empty() {
        format!("an empty answer of type {content_type:?}")
    } else {
        format!(
            "an answer of type {content_type:?} that begins: {}",
            plain(&text)
        )
    }
}

/// Type and code of an error object, in lower case.
fn kind(error: &Value) -> String {
    let part = |name: &str| {
        error[name]
            .as_str()
            .unwrap_or_default()
            .to_ascii_lowercase()
    };
    format!("{} {}", part("type"), part("code"))
}

/// The words of an error object, whichever way it holds them.
fn said(error: &Value) -> String {
    ["message", "detail", "error"]
        .iter()
        .find_map(|name| error[*name].as_str())
        .or_else(|| error.as_str())
        .map_or_else(|| error.to_string(), str::to_owned)
}

fn plain(text: &str) -> String {
    let start = text.trim_start();
    if start.is_empty() {
        "no explanation was given".to_owned()
    } else if start.starts_with('<') {
        "a web page instead of an explanation".to_owned()
    } else {
        start.to_owned()
    }
}

/// Bounds foreign text, on one line and without the key.
fn words(endpoint: &Endpoint, text: &str) -> String {
    let text = endpoint.without_key(text);
    let mut out: String = text
        .chars()
        .take(WORDS)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if text.chars().nth(WORDS).is_some() {
        out.push('…');
    }
    out.trim().trim_end_matches('.').to_owned()
}
