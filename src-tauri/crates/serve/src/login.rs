//! A browser's way in: a one-time code in a link's fragment, exchanged once for a bearer.
//!
//! Guarantees: a code works once and for 60 s; codes and bearers are compared in constant time and
//! are in memory alone; guessing is limited to ten wrong codes a minute for the whole server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::{DefaultBodyLimit, State};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use holdfast_domain::canonical::hex;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::error::reply;
use crate::handlers::Body;

/// How long a code can be exchanged.
const CODE_LIFE: Duration = Duration::from_secs(60);
/// Wrong codes in [`WINDOW`] after which nobody is asked.
const MAX_WRONG: usize = 10;
const WINDOW: Duration = Duration::from_secs(60);
/// Bearers in memory at most; the oldest goes.
const MAX_BEARERS: usize = 64;

/// Codes and bearers of one server. Clones are the same.
#[derive(Clone, Default)]
pub struct Logins(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    codes: Vec<(String, Instant)>,
    bearers: Vec<String>,
    wrong: Vec<Instant>,
}

impl std::fmt::Debug for Logins {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Logins(..)")
    }
}

/// What became of a code.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Exchanged {
    Bearer(String),
    Refused,
    TooMany,
}

impl Logins {
    /// A new code, 32 hex digits; `random` gives its 16 bytes.
    pub fn code(&self, random: [u8; 16]) -> String {
        self.code_at(random, Instant::now())
    }

    pub(crate) fn code_at(&self, random: [u8; 16], now: Instant) -> String {
        let code = hex(&random);
        let mut inner = self.lock();
        inner
            .codes
            .retain(|(_, made)| now.duration_since(*made) < CODE_LIFE);
        inner.codes.push((code.clone(), now));
        code
    }

    /// Exchanges a code; it is used up by that.
    pub(crate) fn exchange(&self, code: &str, random: [u8; 32], now: Instant) -> Exchanged {
        let mut inner = self.lock();
        inner.wrong.retain(|at| now.duration_since(*at) < WINDOW);
        if inner.wrong.len() >= MAX_WRONG {
            return Exchanged::TooMany;
        }
        inner
            .codes
            .retain(|(_, made)| now.duration_since(*made) < CODE_LIFE);
        let found = inner.codes.iter().position(|(known, _)| same(known, code));
        let Some(index) = found else {
            inner.wrong.push(now);
            return Exchanged::Refused;
        };
        inner.codes.remove(index);
        let bearer = hex(&random);
        if inner.bearers.len() >= MAX_BEARERS {
            inner.bearers.remove(0);
        }
        inner.bearers.push(bearer.clone());
        Exchanged::Bearer(bearer)
    }

    /// A bearer of this server.
    pub(crate) fn accepts(&self, bearer: &str) -> bool {
        // All are looked at, so that the time tells nothing of the place.
        self.lock()
            .bearers
            .iter()
            .fold(false, |found, known| found | same(known, bearer))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn same(a: &str, b: &str) -> bool {
    a.as_bytes().ct_eq(b.as_bytes()).into()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Login {
    code: String,
}

#[derive(Serialize)]
struct LoggedIn {
    token: String,
}

/// `POST /app-login`.
pub(crate) fn route(logins: Logins) -> Router {
    Router::new()
        .route("/app-login", post(login))
        .layer(DefaultBodyLimit::max(1024))
        .with_state(logins)
}

async fn login(State(logins): State<Logins>, Body(request): Body<Login>) -> Response {
    match logins.exchange(&request.code, rand::random(), Instant::now()) {
        Exchanged::Bearer(token) => Json(LoggedIn { token }).into_response(),
        Exchanged::Refused => reply(
            401,
            "code_refused",
            "the code of this link is used up, too old, or not this server's; nothing was done; \
             start holdfast web again for a new link, or give the content of the token file",
        ),
        Exchanged::TooMany => reply(
            429,
            "too_many_attempts",
            "there were too many wrong codes; nothing was done; wait a minute",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_exchanged_once() {
        let logins = Logins::default();
        let now = Instant::now();
        let code = logins.code_at([7; 16], now);
        let bearer = hex(&[1; 32]);
        let first = logins.exchange(&code, [1; 32], now);
        assert_eq!(first, Exchanged::Bearer(bearer.clone()));
        assert_eq!(logins.exchange(&code, [2; 32], now), Exchanged::Refused);
        assert!(logins.accepts(&bearer));
        assert!(!logins.accepts(&hex(&[2; 32])));
        assert!(!logins.accepts(""));
    }

    #[test]
    fn a_code_lives_for_a_minute() {
        let logins = Logins::default();
        let now = Instant::now();
        let early = logins.code_at([7; 16], now);
        let late = logins.code_at([8; 16], now);
        let just_in_time = now + CODE_LIFE - Duration::from_millis(1);
        assert_eq!(
            logins.exchange(&early, [1; 32], just_in_time),
            Exchanged::Bearer(hex(&[1; 32]))
        );
        assert_eq!(
            logins.exchange(&late, [2; 32], now + CODE_LIFE),
            Exchanged::Refused
        );
    }

    #[test]
    fn guessing_is_limited_and_the_limit_passes() {
        let logins = Logins::default();
        let now = Instant::now();
        let code = logins.code_at([7; 16], now + WINDOW);
        for _ in 0..MAX_WRONG {
            assert_eq!(logins.exchange("guess", [1; 32], now), Exchanged::Refused);
        }
        // Even the right one is not looked at.
        assert_eq!(logins.exchange(&code, [1; 32], now), Exchanged::TooMany);
        assert_eq!(
            logins.exchange(&code, [1; 32], now + WINDOW),
            Exchanged::Bearer(hex(&[1; 32]))
        );
    }
}
