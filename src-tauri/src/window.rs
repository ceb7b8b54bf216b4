//! The one window: what it may load, and where it keeps its own state.
//!
//! Guarantees: it shows nothing but the program's own pages, opens no further windows, and keeps
//! what the web view stores in the data folder.

use std::path::Path;

use tauri::webview::NewWindowResponse;
use tauri::{AppHandle, Manager, Runtime, Url, WebviewWindowBuilder};

use crate::events::WINDOW;

/// Makes the window as the configuration describes it.
///
/// # Errors
/// The configuration has no such window, or the system can't make it.
pub(crate) fn open<R: Runtime>(handle: &AppHandle<R>, data: &Path) -> tauri::Result<()> {
    let config = handle.config();
    let Some(window) = config
        .app
        .windows
        .iter()
        .find(|window| window.label == WINDOW)
    else {
        return Err(tauri::Error::WindowNotFound);
    };
    let development = if tauri::is_dev() {
        config.build.dev_url.clone()
    } else {
        None
    };
    WebviewWindowBuilder::from_config(handle, window)?
        .data_directory(data.join("webview"))
        .on_navigation(move |url| is_own(url, development.as_ref()))
        .on_new_window(|_, _| NewWindowResponse::Deny)
        .build()?;
    Ok(())
}

/// Brings the window to the front.
pub(crate) fn show<R: Runtime>(handle: &AppHandle<R>) {
    let Some(window) = handle.get_webview_window(WINDOW) else {
        return;
    };
    let shown = window
        .unminimize()
        .and_then(|()| window.show())
        .and_then(|()| window.set_focus());
    if let Err(error) = shown {
        tracing::warn!(%error, "the window can't be brought to the front");
    }
}

/// A page of the program itself, or of the development server in a development build.
fn is_own(url: &Url, development: Option<&Url>) -> bool {
    let origin = |url: &Url| {
        let host = url.host_str().map(str::to_owned);
        (url.scheme().to_owned(), host, url.port_or_known_default())
    };
    let embedded = match url.scheme() {
        "tauri" => url.host_str() == Some("localhost"),
        "http" | "https" => url.host_str() == Some("tauri.localhost") && url.port().is_none(),
        _ => false,
    };
    embedded || development.is_some_and(|development| origin(development) == origin(url))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_stays_on_its_own_pages() {
        let development: Url = "http://localhost:5173".parse().unwrap();
        let cases = [
            ("tauri://localhost/index.html", true, true),
            ("http://tauri.localhost/", true, true),
            ("http://localhost:5173/src/main.ts", true, false),
            ("http://localhost:5174/", false, false),
            ("https://example.com/", false, false),
            ("tauri://example.com/", false, false),
            ("http://tauri.localhost:8080/", false, false),
            ("http://tauri.localhost.example.com/", false, false),
            ("file:///etc/passwd", false, false),
            ("data:text/html,x", false, false),
            ("about:blank", false, false),
        ];
        for (url, in_development, installed) in cases {
            let parsed: Url = url.parse().unwrap();
            assert_eq!(is_own(&parsed, Some(&development)), in_development, "{url}");
            assert_eq!(is_own(&parsed, None), installed, "{url}");
        }
    }
}
