//! `fetch` against a small server on loopback.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_tools::{FullOutput, Registry, RegistryConfig};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::place::Place;

struct Server {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let seen = Arc::clone(&seen);
                tokio::spawn(async move {
                    let mut request = Vec::new();
                    while !request.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = stream.read_u8().await else {
                            return;
                        };
                        request.push(byte);
                    }
                    let request = String::from_utf8(request).unwrap();
                    let path = request.split(' ').nth(1).unwrap().to_owned();
                    seen.lock().unwrap().push(request);
                    let Some(answer) = answer(&path) else {
                        // Never answers; ends when the client goes.
                        let _ = stream.read_u8().await;
                        seen.lock().unwrap().push("closed".to_owned());
                        return;
                    };
                    let _ = stream.write_all(&answer).await;
                });
            }
        });
        Self { url, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn answer(path: &str) -> Option<Vec<u8>> {
    let with = |head: &str, body: &[u8]| {
        let head = format!(
            "HTTP/1.1 {head}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        Some([head.as_bytes(), body].concat())
    };
    match path {
        "/text" => with("200 OK\r\ncontent-type: text/plain", "hello é\n".as_bytes()),
        "/missing" => with("404 Not Found\r\ncontent-type: text/plain", b"no such page"),
        "/binary" => with("200 OK\r\ncontent-type: image/png", &[0u8; 5000]),
        "/gbk" => with("200 OK\r\ncontent-type: text/html", b"\xd6\xd0\0\x1b[31m"),
        "/big" => with(
            "200 OK\r\ncontent-type: text/plain",
            &b"0123456789abcde\n".repeat(100_000),
        ),
        "/round" => with("302 Found\r\nlocation: /round", b""),
        "/there" => with("301 Moved Permanently\r\nlocation: text", b""),
        "/file" => with("302 Found\r\nlocation: file:///etc/passwd", b""),
        "/broken" => Some(
            b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\ncontent-type: text/plain\r\n\r\nshort"
                .to_vec(),
        ),
        "/silent" => None,
        _ => with("200 OK", b"{}"),
    }
}

#[tokio::test]
async fn tr_20_get_and_head_show_status_type_and_text() {
    let (place, server) = (Place::new(), Server::start().await);
    let url = &server.url;
    let outcome = place
        .call("fetch", json!({"url": format!("{url}/text")}))
        .await;
    assert_eq!(outcome.state, AttemptState::Completed);
    assert_eq!(
        outcome.text,
        format!("200 OK {url}/text\ncontent type: text/plain\ncontent length: 9\n\nhello é\n")
    );
    let outcome = place
        .call("fetch", json!({"url": format!("{url}/missing")}))
        .await;
    assert!(outcome.text.starts_with("404 Not Found") && outcome.text.ends_with("no such page"));
    let outcome = place
        .call(
            "fetch",
            json!({"url": format!("{url}/text"), "method": "HEAD"}),
        )
        .await;
    assert!(outcome.text.contains("content-length: 9\n") && !outcome.text.contains("hello"));
    let requests = server.requests();
    assert!(requests[0].starts_with("GET /text ") && requests[2].starts_with("HEAD /text "));
    let text = requests.concat().to_lowercase();
    assert!(!text.contains("cookie") && !text.contains("authorization"));
}

#[tokio::test]
async fn redirects_are_followed_checked_and_bounded() {
    let (place, server) = (Place::new(), Server::start().await);
    let url = &server.url;
    let outcome = place
        .call("fetch", json!({"url": format!("{url}/there")}))
        .await;
    assert!(outcome.text.starts_with(&format!(
        "200 OK {url}/text\n[redirected from {url}/there]\n"
    )));
    let outcome = place
        .call("fetch", json!({"url": format!("{url}/file")}))
        .await;
    assert_eq!(
        (outcome.state, outcome.code),
        (AttemptState::Failed, Some("url_refused"))
    );
    let before = server.requests().len();
    let outcome = place
        .call("fetch", json!({"url": format!("{url}/round")}))
        .await;
    assert_eq!(outcome.code, Some("request_failed"));
    assert!(
        outcome.text.contains("more than 5 redirects"),
        "{}",
        outcome.text
    );
    assert_eq!(server.requests().len() - before, 6);
}

#[tokio::test]
async fn c11_bodies_are_bounded_and_visible() {
    let (place, server) = (Place::new(), Server::start().await);
    let get = async |path: &str| {
        place
            .call("fetch", json!({"url": format!("{}{path}", server.url)}))
            .await
    };
    let outcome = get("/binary").await;
    assert!(
        outcome
            .text
            .ends_with("content length: 5000\n[binary content, 5000 bytes, not shown]\n")
    );
    let outcome = get("/gbk").await;
    assert!(
        outcome.text.ends_with("\n\u{fffd}\u{fffd}\u{2400}"),
        "{:?}",
        outcome.text
    );
    let outcome = get("/big").await;
    assert!(outcome.text.len() <= 32 * 1024 && outcome.truncated);
    assert!(outcome.text.ends_with("[cut after 1048576 bytes]\n"));
    let FullOutput::Bytes(all) = outcome.full_output else {
        panic!("the whole is kept");
    };
    assert!(all.len() > 1024 * 1024);
    let outcome = get("/other").await;
    assert!(
        outcome
            .text
            .ends_with("content type: not given\ncontent length: 2\n\n{}")
    );
}

#[tokio::test]
async fn failures_stops_and_silence_end_in_a_bounded_time() {
    let (mut place, server) = (Place::new(), Server::start().await);
    let arguments = |path: &str| json!({"url": format!("{}{path}", server.url)});
    let outcome = place.call("fetch", arguments("/broken")).await;
    assert_eq!(outcome.code, Some("request_failed"));
    assert!(
        outcome.text.contains("broke off after 5 bytes"),
        "{}",
        outcome.text
    );

    let prepared = place.prepare("fetch", &arguments("/silent")).unwrap();
    let context = place.context(&prepared);
    let (outcome, ()) = tokio::join!(place.execute(&prepared, &context), async {
        while !server
            .requests()
            .iter()
            .any(|r| r.starts_with("GET /silent"))
        {
            tokio::task::yield_now().await;
        }
        context.cancel.cancel();
    });
    assert_eq!(
        (outcome.state, outcome.code),
        (AttemptState::Cancelled, Some("cancelled"))
    );
    let closed = async {
        while !server.requests().contains(&"closed".to_owned()) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(crate::place::PATIENCE, closed)
        .await
        .expect("the connection is closed");

    let config = RegistryConfig {
        fetch_time: Duration::from_millis(200),
        ..RegistryConfig::default()
    };
    place.registry = Registry::new(config).unwrap();
    let outcome = place.call("fetch", arguments("/silent")).await;
    assert_eq!(outcome.code, Some("request_failed"));
    assert!(
        outcome.text.contains("no whole answer within 0.2 s"),
        "{}",
        outcome.text
    );

    let refused = place
        .call("fetch", json!({"url": "http://127.0.0.1:1/"}))
        .await;
    assert_eq!(refused.code, Some("request_failed"));
    assert_eq!(
        place.refusal("fetch", &json!({"url": "file:///etc/passwd"})),
        "url_refused"
    );
}
