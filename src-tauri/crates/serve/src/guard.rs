//! What a request must show before anything is done: Host, Origin, token.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use axum::middleware::Next;
use axum::response::Response;

use crate::error::reply;
use crate::login::Logins;
use crate::token::Token;

/// What is allowed.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    pub(crate) token: Token,
    /// Bearers of browsers; they open the app's operations and nothing else.
    pub(crate) logins: Option<Logins>,
    /// Names by which this host may be addressed, without the port, beside loopback names.
    pub(crate) hosts: Arc<Vec<String>>,
    /// The port that it listens on.
    pub(crate) port: u16,
}

/// Exact Host first (a name that a web page made point here is refused), then Origin when there is
/// one.
pub(crate) async fn check_place(
    State(guard): State<Guard>,
    request: Request,
    next: Next,
) -> Response {
    match guard.misplaced(request.headers(), request.uri()) {
        Some(refused) => refused,
        None => next.run(request).await,
    }
}

/// The token, or a browser's bearer where that is enough.
pub(crate) async fn check_token(
    State(guard): State<Guard>,
    request: Request,
    next: Next,
) -> Response {
    match guard.unknown(request.headers(), request.uri()) {
        Some(refused) => refused,
        None => next.run(request).await,
    }
}

impl Guard {
    fn misplaced(&self, headers: &HeaderMap, uri: &Uri) -> Option<Response> {
        let host = text(headers, HOST).or_else(|| uri.authority().map(|a| a.as_str()));
        if !host.is_some_and(|host| self.is_own(host)) {
            return Some(reply(
                403,
                "host_refused",
                "the request's Host is not this server's name; nothing was done; use the address \
                 that the server printed",
            ));
        }
        if let Some(origin) = text(headers, ORIGIN)
            && !self.is_own_origin(origin)
        {
            return Some(reply(
                403,
                "origin_refused",
                "the request comes from a page of another origin; nothing was done",
            ));
        }
        None
    }

    fn unknown(&self, headers: &HeaderMap, uri: &Uri) -> Option<Response> {
        if uri.path() == "/healthz" {
            return None;
        }
        let browser = |given: &str| {
            uri.path().starts_with("/app/")
                && self
                    .logins
                    .as_ref()
                    .is_some_and(|logins| logins.accepts(given))
        };
        match text(headers, AUTHORIZATION).and_then(|value| value.strip_prefix("Bearer ")) {
            Some(given) if self.token.matches(given.trim()) || browser(given.trim()) => None,
            Some(_) => Some(reply(
                401,
                "token_wrong",
                "the token is not this server's; nothing was done; read it from the token file",
            )),
            None => Some(reply(
                401,
                "token_missing",
                "a bearer token is needed; nothing was done; send Authorization: Bearer with the \
                 content of the token file",
            )),
        }
    }

    fn is_own(&self, host: &str) -> bool {
        let (name, port) = split_port(host);
        port.is_none_or(|port| port == self.port) && self.is_own_name(name)
    }

    fn is_own_name(&self, name: &str) -> bool {
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        bare.eq_ignore_ascii_case("localhost")
            || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
            || self.hosts.iter().any(|own| own.eq_ignore_ascii_case(bare))
    }

    fn is_own_origin(&self, origin: &str) -> bool {
        origin
            .strip_prefix("http://")
            .or_else(|| origin.strip_prefix("https://"))
            .is_some_and(|host| {
                let (_, port) = split_port(host);
                port == Some(self.port) && self.is_own(host)
            })
    }
}

/// A header's text. One that is no text is like none that could match.
fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers
        .get(name)
        .map(|value: &HeaderValue| value.to_str().unwrap_or("\u{0}"))
}

/// `name:port`, `[v6]:port`, or a name alone. A port that is no number makes the name not match.
fn split_port(host: &str) -> (&str, Option<u16>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (host, None),
        },
        Some(_) | None => (host, None),
    }
}
