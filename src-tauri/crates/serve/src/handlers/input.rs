//! Reading requests: queries and bodies with exact fields, and the session that is meant.
//!
//! Guarantee: an unknown field, a wrong type, a body that is no JSON or too large is refused with a
//! code before the host is asked.

use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use holdfast_api::ApiError;
use holdfast_api::host::Selector;
use holdfast_api::transcript::PageQuery;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::error::Failure;

/// A query that selects a session.
pub(crate) trait SelectsSession {
    fn session(&self) -> Option<&str>;
}

/// `?session=` alone.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct SessionQuery {
    session: Option<String>,
}

/// An attempt of a session.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AttemptQuery {
    #[serde(default)]
    session: Option<String>,
    pub(crate) attempt: String,
}

/// A part of an attempt's output.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputQuery {
    #[serde(default)]
    session: Option<String>,
    pub(crate) attempt: String,
    #[serde(default)]
    pub(crate) offset: u64,
}

/// The message of a key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyQuery {
    #[serde(default)]
    session: Option<String>,
    pub(crate) key: String,
}

impl SelectsSession for KeyQuery {
    fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

impl SelectsSession for SessionQuery {
    fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

impl SelectsSession for AttemptQuery {
    fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

impl SelectsSession for OutputQuery {
    fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

impl SelectsSession for PageQuery {
    fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }
}

/// A query, and the session that it and the headers mean.
pub(crate) struct Selected<Q> {
    pub(crate) query: Q,
    pub(crate) selector: Selector,
}

impl<S, Q> FromRequestParts<S> for Selected<Q>
where
    S: Send + Sync,
    Q: DeserializeOwned + SelectsSession,
{
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let Query(query) = Query::<Q>::from_request_parts(parts, state)
            .await
            .map_err(|error| bad_query(&error))?;
        let header = |name: &str| {
            parts
                .headers
                .get(name)
                .and_then(|value| value.to_str().ok())
                .filter(|value| !value.is_empty())
                .map(str::to_owned)
        };
        let selector = Selector {
            session: query.session().map(str::to_owned),
            expected_id: header("x-reasonix-expected-session-id"),
            expected_path: header("x-reasonix-expected-session-path"),
        };
        Ok(Self { query, selector })
    }
}

/// A query without a session.
pub(crate) struct Typed<Q>(pub(crate) Q);

impl<S: Send + Sync, Q: DeserializeOwned> FromRequestParts<S> for Typed<Q> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        Query::<Q>::from_request_parts(parts, state)
            .await
            .map(|Query(query)| Self(query))
            .map_err(|error| bad_query(&error))
    }
}

/// A query that can't be read.
pub(crate) fn bad_query(error: &QueryRejection) -> Failure {
    Failure(ApiError::bad_request(
        "query_invalid",
        format!(
            "the query can't be read ({}); nothing was done; correct it",
            error.body_text()
        ),
    ))
}

/// A JSON body with exact fields.
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, state: &S) -> Result<Self, Failure> {
        match axum::Json::<T>::from_request(request, state).await {
            Ok(axum::Json(value)) => Ok(Self(value)),
            Err(error) => Err(Failure(refusal(&error))),
        }
    }
}

fn refusal(error: &JsonRejection) -> ApiError {
    let text = error.body_text();
    match error {
        JsonRejection::MissingJsonContentType(_) => ApiError::new(
            415,
            "content_type_wrong",
            "the body must be sent as application/json; nothing was done",
        ),
        JsonRejection::BytesRejection(_) if error.status().as_u16() == 413 => ApiError::new(
            413,
            "body_too_large",
            "the body is larger than this operation takes; nothing was done; send less",
        ),
        JsonRejection::JsonDataError(_) => ApiError::bad_request(
            "body_invalid",
            format!("the body's fields can't be used ({text}); nothing was done; correct them"),
        ),
        _ => ApiError::bad_request(
            "body_not_json",
            format!("the body can't be read as JSON ({text}); nothing was done; correct it"),
        ),
    }
}
