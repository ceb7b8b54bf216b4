//! The files of the user interface, for a browser.
//!
//! Guarantees: only regular files beneath the folder are served; a page runs its own scripts alone
//! and can't be framed; the first page is never kept by a browser, so that an update is seen.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};

use crate::error::reply;

/// What a page may load: its own files, its own server, and pictures that it made itself.
pub const CSP: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    connect-src 'self'; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; \
    frame-ancestors 'none'";

/// Largest file, in bytes.
const MAX_BYTES: u64 = 32 * 1024 * 1024;
const INDEX: &str = "index.html";

/// A folder with a built user interface.
#[derive(Debug, Clone)]
pub struct UiFolder(Arc<PathBuf>);

impl UiFolder {
    /// That folder, if it holds an `index.html`.
    pub fn new(folder: &Path) -> Option<Self> {
        let folder = folder.canonicalize().ok()?;
        folder.join(INDEX).is_file().then(|| Self(Arc::new(folder)))
    }

    /// The file that a path means; `None` for everything that is no regular file beneath.
    fn file(&self, path: &str) -> Option<PathBuf> {
        let wanted = match path.trim_start_matches('/') {
            "" => INDEX,
            path => path,
        };
        let plain = Path::new(wanted)
            .components()
            .all(|part| matches!(part, Component::Normal(_)));
        if !plain || wanted.contains(['\\', '%', '\0', ':']) {
            return None;
        }
        // A link that leads out of the folder is not followed.
        let file = self.0.join(wanted).canonicalize().ok()?;
        (file.starts_with(&*self.0) && file.is_file()).then_some(file)
    }
}

/// Everything that is no operation.
pub(crate) async fn file(State(folder): State<UiFolder>, method: Method, uri: Uri) -> Response {
    if method != Method::GET && method != Method::HEAD {
        return missing();
    }
    let path = uri.path().to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let file = folder.file(&path)?;
        let bytes = holdfast_files::read_bounded(&file, MAX_BYTES).ok()?;
        Some((file, bytes))
    });
    let Ok(Some((file, bytes))) = read.await else {
        return missing();
    };
    let extension = file.extension().and_then(|name| name.to_str());
    // Names of built assets carry a digest of their content.
    let kept = if file
        .parent()
        .is_some_and(|folder| folder.ends_with("assets"))
    {
        "public, max-age=31536000, immutable"
    } else {
        "no-store"
    };
    let mut response = (StatusCode::OK, Body::from(bytes)).into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, content_type(extension)),
        (CACHE_CONTROL, kept),
        (CONTENT_SECURITY_POLICY, CSP),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

fn missing() -> Response {
    reply(
        404,
        "route_unknown",
        "this server has no such route or file; nothing was done",
    )
}

fn content_type(extension: Option<&str>) -> &'static str {
    match extension {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("json" | "map" | "webmanifest") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("txt") => "text/plain; charset=utf-8",
        Some(_) | None => "application/octet-stream",
    }
}
