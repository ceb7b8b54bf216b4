//! Where a host is: an origin, and nothing else of a URL.
//!
//! Guarantee: a token is never sent in the clear over a network: without TLS only this machine is
//! an address, which is where a tunnel ends.

use reqwest::Url;

use crate::error::RemoteError;

/// An origin to which a token may be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    base: Url,
    loopback: bool,
}

impl Address {
    /// Reads `http://127.0.0.1:1234` or `https://host`.
    ///
    /// # Errors
    /// [`RemoteError::AddressInvalid`] with what is wrong.
    pub fn parse(text: &str) -> Result<Self, RemoteError> {
        let wrong = |why| RemoteError::AddressInvalid { why };
        let base = Url::parse(text.trim()).map_err(|_| wrong("it is not a URL"))?;
        if !base.username().is_empty() || base.password().is_some() {
            return Err(wrong(
                "it carries a name or a password; the token has a field of its own",
            ));
        }
        if base.query().is_some() || base.fragment().is_some() {
            return Err(wrong("it carries a query or a fragment"));
        }
        if !matches!(base.path(), "" | "/") {
            return Err(wrong(
                "it carries a path; only scheme, host and port are needed",
            ));
        }
        let host = base.host_str().ok_or(wrong("it names no host"))?;
        let loopback = matches!(host, "localhost" | "[::1]") || is_loopback(host);
        match base.scheme() {
            "https" => {}
            "http" if loopback => {}
            "http" => {
                return Err(wrong(
                    "http would send the token in the clear; use https, or an SSH tunnel",
                ));
            }
            _ => return Err(wrong("its scheme is neither http nor https")),
        }
        Ok(Self { base, loopback })
    }

    /// It is this machine; no proxy may stand between.
    pub fn is_loopback(&self) -> bool {
        self.loopback
    }

    /// The URL of a route. Every part is encoded, so none leads to another origin or route.
    pub fn route(&self, parts: &[&str]) -> Url {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.clear().extend(parts);
        }
        url
    }
}

fn is_loopback(host: &str) -> bool {
    host.parse::<std::net::IpAddr>()
        .is_ok_and(|address| address.is_loopback())
}

impl std::fmt::Display for Address {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.base.as_str().trim_end_matches('/'))
    }
}
