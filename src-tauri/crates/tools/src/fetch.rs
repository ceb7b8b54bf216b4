//! `fetch`: GET and HEAD (TR-20).
//!
//! Guarantees: no other method, no credentials, no cookies; every redirect is checked as the first
//! URL was, and one that leads from elsewhere into this machine or its network is refused; time
//! and size are bounded; Stop closes the connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response, Url, redirect};
use tokio_util::sync::CancellationToken;

use crate::arguments::Method;
use crate::error::ToolError;
use crate::text::{Encoding, clean, decode};

const REDIRECTS: usize = 5;

/// Bounds of a fetch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) time: Duration,
    pub(crate) body: usize,
}

/// Checks a URL before anything is sent.
pub(crate) fn check(url: &str) -> Result<Url, ToolError> {
    let refused = |reason: String| ToolError::UrlRefused { reason };
    let url = Url::parse(url).map_err(|error| refused(format!("it is no URL: {error}")))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refused(format!(
            "its scheme is {}, only http and https are fetched",
            url.scheme()
        )));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(refused("it carries a user name or password".to_owned()));
    }
    Ok(url)
}

/// Fetches and describes what came.
pub(crate) async fn fetch(
    url: &str,
    method: Method,
    limits: Limits,
    cancel: &CancellationToken,
) -> Result<String, ToolError> {
    let url = check(url)?;
    tokio::select! {
        biased;
        () = cancel.cancelled() => Err(ToolError::Cancelled),
        result = tokio::time::timeout(limits.time, exchange(url, method, limits)) => {
            result.unwrap_or_else(|_| Err(ToolError::Request {
                reason: format!("no whole answer within {} s", limits.time.as_secs_f32()),
            }))
        }
    }
}

async fn exchange(first: Url, method: Method, limits: Limits) -> Result<String, ToolError> {
    let mut url = first;
    let mut passed = Vec::new();
    loop {
        let response = send(&url, method).await?;
        let Some(next) = redirect_of(&response, &url)? else {
            return describe(response, method, &passed, limits.body).await;
        };
        passed.push(url.to_string());
        if passed.len() > REDIRECTS {
            return Err(ToolError::Request {
                reason: format!("more than {REDIRECTS} redirects"),
            });
        }
        url = next;
    }
}

async fn send(url: &Url, method: Method) -> Result<Response, ToolError> {
    let failed = |error: reqwest::Error| ToolError::Request {
        reason: reasons(&error.without_url()),
    };
    let mut builder = Client::builder()
        .redirect(redirect::Policy::none())
        .connect_timeout(Duration::from_secs(10))
        .user_agent(concat!("holdfast/", env!("CARGO_PKG_VERSION")));
    if is_private(url) {
        builder = builder.no_proxy();
    }
    let client = builder.build().map_err(failed)?;
    let request = match method {
        Method::Get => client.get(url.clone()),
        Method::Head => client.head(url.clone()),
    };
    request.send().await.map_err(failed)
}

/// The chain of causes: the outermost alone rarely says what is wrong.
fn reasons(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        text.push_str(&format!(": {inner}"));
        cause = inner.source();
    }
    text
}

fn redirect_of(response: &Response, from: &Url) -> Result<Option<Url>, ToolError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(target) = response.headers().get(LOCATION) else {
        return Ok(None);
    };
    let refused = |reason: &str| ToolError::UrlRefused {
        reason: format!("it was redirected, and {reason}"),
    };
    let target = target
        .to_str()
        .map_err(|_| refused("the new address is not text"))?;
    let target = from
        .join(target)
        .map_err(|_| refused("the new address is no URL"))?;
    let target = check(target.as_str())?;
    if is_private(&target) && !is_private(from) {
        return Err(refused(
            "the new address is in this machine or its private network",
        ));
    }
    Ok(Some(target))
}

/// By what is written, without asking a name server.
fn is_private(url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return true;
    };
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(IpAddr::V4(ip)) => is_private_v4(ip),
        Ok(IpAddr::V6(ip)) => is_private_v6(ip),
        Err(_) => {
            let host = host.trim_end_matches('.').to_ascii_lowercase();
            host == "localhost" || host.ends_with(".localhost") || host.ends_with(".local")
        }
    }
}

fn is_private_v4(ip: Ipv4Addr) -> bool {
    ip.is_loopback() || ip.is_private() || ip.is_link_local() || ip.is_unspecified()
}

fn is_private_v6(ip: Ipv6Addr) -> bool {
    ip.is_loopback()
        || ip.is_unspecified()
        || ip.is_unique_local()
        || ip.is_unicast_link_local()
        || ip.to_ipv4_mapped().is_some_and(is_private_v4)
}

async fn describe(
    mut response: Response,
    method: Method,
    passed: &[String],
    limit: usize,
) -> Result<String, ToolError> {
    let kind = response
        .headers()
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or("not given")
        .to_owned();
    let mut text = format!("{} {}\n", response.status(), response.url());
    for url in passed {
        text.push_str(&format!("[redirected from {url}]\n"));
    }
    text.push_str(&format!("content type: {kind}\n"));
    if let Some(length) = response.content_length().filter(|_| method == Method::Get) {
        text.push_str(&format!("content length: {length}\n"));
    }
    if method == Method::Head {
        for (name, value) in response.headers() {
            let value = String::from_utf8_lossy(value.as_bytes());
            text.push_str(&format!("{name}: {value}\n"));
        }
        return Ok(clean(&text));
    }
    let mut body = Vec::new();
    let mut cut = false;
    loop {
        let piece = response.chunk().await.map_err(|error| ToolError::Request {
            reason: format!(
                "the answer broke off after {} bytes ({})",
                body.len(),
                reasons(&error.without_url())
            ),
        })?;
        let Some(piece) = piece else { break };
        body.extend_from_slice(&piece);
        if body.len() > limit {
            body.truncate(limit);
            cut = true;
            break;
        }
    }
    let size = if cut {
        format!("more than {limit}")
    } else {
        body.len().to_string()
    };
    if is_text(&kind, &body) {
        text.push('\n');
        text.push_str(&decode(&body).0);
        if cut {
            text.push_str(&format!("\n[cut after {limit} bytes]\n"));
        }
    } else {
        text.push_str(&format!("[binary content, {size} bytes, not shown]\n"));
    }
    Ok(clean(&text))
}

/// By its declared type, and by its bytes where that says nothing.
fn is_text(kind: &str, body: &[u8]) -> bool {
    let kind = kind
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let named = [
        "json",
        "xml",
        "javascript",
        "yaml",
        "toml",
        "x-www-form-urlencoded",
        "graphql",
        "x-sh",
    ]
    .iter()
    .any(|part| kind.contains(part));
    if kind.starts_with("text/") || named {
        return true;
    }
    let unsaid = matches!(kind.as_str(), "not given" | "" | "application/octet-stream");
    unsaid && matches!(decode(body).1, Encoding::Utf8 | Encoding::Utf16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tr_20_only_plain_http_urls_are_fetched() {
        for url in [
            "file:///etc/passwd",
            "ftp://x/",
            "not a url",
            "http://a:b@x/",
            "javascript:1",
        ] {
            assert_eq!(check(url).unwrap_err().code(), "url_refused", "{url}");
        }
        assert!(check("https://example.org/x?y#z").is_ok());
    }

    #[test]
    fn private_addresses_are_known_in_every_spelling() {
        for url in [
            "http://localhost/",
            "http://LOCALHOST./",
            "http://127.1/",
            "http://0x7f000001/",
            "http://10.1.2.3/",
            "http://192.168.0.1/",
            "http://169.254.169.254/",
            "http://[::1]/",
            "http://[::ffff:127.0.0.1]/",
            "http://[fe80::1]/",
            "http://0.0.0.0/",
            "http://printer.local/",
        ] {
            assert!(is_private(&Url::parse(url).unwrap()), "{url}");
        }
        for url in [
            "http://example.org/",
            "http://8.8.8.8/",
            "http://[2001:db8::1]/",
        ] {
            assert!(!is_private(&Url::parse(url).unwrap()), "{url}");
        }
    }
}
