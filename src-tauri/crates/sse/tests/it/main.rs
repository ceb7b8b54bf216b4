//! Streams of events from a real server on loopback.

#![allow(clippy::unwrap_used, reason = "a test that can't be set up has failed")]

use std::time::Duration;

use futures_util::StreamExt;
use holdfast_sse::{SseError, SseEvent, SseLimits, open};
use holdfast_testkit::model_server::{Endless, Fault, RawBody};
use holdfast_testkit::{ModelServer, Step};

fn client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// Bounds that are small, but for the time: only tests of stalls wait for that.
fn limits() -> SseLimits {
    SseLimits {
        idle: Duration::from_secs(20),
        event_bytes: 4096,
        other_body_bytes: 100,
    }
}

fn request(server: &ModelServer) -> reqwest::RequestBuilder {
    client()
        .post(format!("{}/chat/completions", server.url()))
        .body("{}")
}

/// The whole stream of one reply, and how often the server was asked.
async fn read(step: Step, limits: SseLimits) -> (Vec<SseEvent>, Option<SseError>) {
    let server = ModelServer::start(step);
    let mut stream = open(request(&server), limits);
    let mut events = Vec::new();
    let mut failure = None;
    while let Some(item) = stream.next().await {
        match item {
            Ok(event) => events.push(event),
            Err(error) => failure = Some(error),
        }
    }
    assert!(stream.next().await.is_none(), "an ended stream stays ended");
    assert_eq!(server.request_count(), 1, "a request is sent once");
    (events, failure)
}

async fn read_raw(body: impl Into<RawBody>, write_size: usize) -> (Vec<String>, Option<SseError>) {
    let fault = Fault::Raw {
        content_type: "text/event-stream; charset=utf-8".to_owned(),
        body: body.into(),
        write_size: Some(write_size),
    };
    let (events, failure) = read(Step::fault(fault), limits()).await;
    (
        events.into_iter().map(|event| event.data).collect(),
        failure,
    )
}

#[tokio::test]
async fn events_have_their_id_name_and_data() {
    let body =
        "id: 7\nevent: note\ndata: one\ndata: two\n\n: comment\n\ndata:three\n\nretry: 5\n\n";
    let (events, failure) = read(Step::fault(Fault::events(body)), limits()).await;
    assert!(failure.is_none(), "{failure:?}");
    let event = |id: &str, event: &str, data: &str| SseEvent {
        id: id.to_owned(),
        event: event.to_owned(),
        data: data.to_owned(),
    };
    assert_eq!(
        events,
        [
            event("7", "note", "one\ntwo"),
            event("7", "message", "three")
        ]
    );
}

#[tokio::test]
async fn lines_are_found_however_they_end_and_wherever_the_network_cuts() {
    let body = "data: é😀\r\n\r\ndata: b\r\rdata: c\u{2028}\n\ndata: d\r\ndata: e\n\r\n";
    for write_size in [1, 2, 3, 5, 1000] {
        let (data, failure) = read_raw(body, write_size).await;
        assert!(failure.is_none(), "{failure:?}");
        assert_eq!(data, ["é😀", "b", "c\u{2028}", "d\ne"], "{write_size}");
    }
}

#[tokio::test]
async fn a_byte_order_mark_is_skipped_and_a_second_one_does_no_harm() {
    let (data, failure) = read_raw("\u{feff}data: a\n\n", 2).await;
    assert_eq!(data, ["a"]);
    assert!(failure.is_none());
    // The second one makes the field unknown, so that the line is ignored.
    let (data, failure) = read_raw("\u{feff}\u{feff}data: a\n\ndata: b\n\n", 1).await;
    assert_eq!(data, ["b"]);
    assert!(failure.is_none());
}

#[tokio::test]
async fn half_an_event_is_an_error_and_is_not_delivered() {
    for body in ["data: a\n\ndata: b", "data: a\n\ndata: b\n"] {
        let (data, failure) = read_raw(body, 1000).await;
        assert_eq!(data, ["a"]);
        assert!(matches!(failure, Some(SseError::Ended)), "{failure:?}");
    }
}

#[tokio::test]
async fn c11_bytes_that_are_not_utf8_are_an_error_at_once() {
    // GBK for two Chinese characters, with more after it.
    let body = b"data: a\n\ndata: \xc4\xe3\xba\xc3\n\ndata: c\n\n".to_vec();
    let (data, failure) = read_raw(body, 1000).await;
    assert_eq!(data, ["a"]);
    assert!(
        matches!(failure, Some(SseError::InvalidUtf8)),
        "{failure:?}"
    );
}

#[tokio::test]
async fn an_event_may_be_as_large_as_the_limit_and_no_larger() {
    let largest = "x".repeat(4096 - "data: ".len());
    let (data, failure) = read_raw(format!("data: {largest}\n\n"), 100).await;
    assert_eq!(data, [largest.as_str()]);
    assert!(failure.is_none());
    let (data, failure) = read_raw(format!("data: {largest}x\n\n"), 100).await;
    assert!(data.is_empty());
    assert!(matches!(failure, Some(SseError::TooLarge { limit: 4096 })));
    // Many lines of one event count together, comments do not count.
    let many = "data: xxxx\n".repeat(500);
    let (_, failure) = read_raw(format!("{many}\n"), 1000).await;
    assert!(matches!(failure, Some(SseError::TooLarge { .. })));
    let comments = ": xxxx\n".repeat(2000);
    let (data, failure) = read_raw(format!("{comments}data: a\n\n"), 1000).await;
    assert_eq!(data, ["a"]);
    assert!(failure.is_none());
}

#[tokio::test]
async fn c28_an_endless_line_ends_at_the_limit_and_the_socket_is_closed() {
    let server = ModelServer::start(Step::fault(Fault::Endless(Endless::Line)));
    let mut stream = open(request(&server), limits());
    let item = stream.next().await;
    assert!(
        matches!(item, Some(Err(SseError::TooLarge { .. }))),
        "{item:?}"
    );
    server.wait_for_abort(0).await;
}

#[tokio::test]
async fn c28_silence_is_an_error_before_the_head_and_in_the_body() {
    let short = SseLimits {
        idle: Duration::from_millis(500),
        ..limits()
    };
    let step = Step::chunks(&["a", "b"]).with_fault(Fault::StallAfter(0));
    let (events, failure) = read(step, short).await;
    assert!(events.is_empty());
    assert!(matches!(failure, Some(SseError::Stalled(_))), "{failure:?}");

    let step = Step::chunks(&["a", "b"]).with_fault(Fault::StallAfter(1));
    let (events, failure) = read(step, short).await;
    assert_eq!(events.len(), 1);
    assert!(matches!(failure, Some(SseError::Stalled(_))), "{failure:?}");
}

#[tokio::test]
async fn a_cut_connection_is_a_transport_error_after_what_came() {
    let step = Step::chunks(&["a", "b", "c"]).with_fault(Fault::DropAfter(2));
    let (events, failure) = read(step, limits()).await;
    assert_eq!(events.len(), 2);
    assert!(
        matches!(failure, Some(SseError::Transport(_))),
        "{failure:?}"
    );
}

#[tokio::test]
async fn no_connection_is_told_apart_from_a_broken_one() {
    let server = ModelServer::start(Step::text("never"));
    let request = request(&server);
    drop(server);
    let mut stream = open(request, limits());
    let item = stream.next().await;
    assert!(matches!(item, Some(Err(SseError::Connect(_)))), "{item:?}");
    assert!(stream.next().await.is_none());
}

#[tokio::test]
async fn another_status_keeps_a_bounded_body_and_retry_after() {
    let step = Step::fault(Fault::Status {
        status: 503,
        body: "é".repeat(1000),
        headers: [("Retry-After".to_owned(), "7".to_owned())].into(),
    });
    let (_, failure) = read(step, limits()).await;
    let Some(SseError::Status {
        status,
        retry_after,
        body,
    }) = failure
    else {
        panic!("{failure:?}");
    };
    assert_eq!((status, retry_after), (503, Some(Duration::from_secs(7))));
    assert_eq!(body.text(), "é".repeat(50));
    assert!(body.truncated);
}

#[tokio::test]
async fn another_content_type_keeps_the_start_of_the_body() {
    let (_, failure) = read(Step::fault(Fault::Html), limits()).await;
    let Some(SseError::ContentType { content_type, body }) = failure else {
        panic!("{failure:?}");
    };
    assert_eq!(content_type, "text/html; charset=utf-8");
    assert_eq!(
        body.text(),
        "<!doctype html><html><body>Welcome</body></html>"
    );
    assert!(!body.truncated);

    let step = Step::fault(Fault::Endless(Endless::Json));
    let (_, failure) = read(step, limits()).await;
    let Some(SseError::ContentType { body, .. }) = failure else {
        panic!("{failure:?}");
    };
    assert_eq!(body.bytes.len(), 100);
    assert!(body.truncated);
}

#[tokio::test]
async fn dropping_or_closing_the_stream_closes_the_socket() {
    let stalls = Step::text("a").with_fault(Fault::StallAfter(1));
    let server = ModelServer::start(vec![stalls.clone(), stalls]);
    let mut stream = open(request(&server), limits());
    assert!(matches!(stream.next().await, Some(Ok(_))));
    drop(stream);
    server.wait_for_abort(0).await;

    let mut stream = open(request(&server), limits());
    assert!(matches!(stream.next().await, Some(Ok(_))));
    stream.close();
    assert!(stream.next().await.is_none());
    server.wait_for_abort(1).await;
}

#[tokio::test]
async fn no_error_holds_the_url() {
    let server = ModelServer::start(Step::text("never"));
    let url = format!("{}/chat/completions?key=canary", server.url());
    drop(server);
    let mut stream = open(client().get(url), limits());
    let Some(Err(error)) = stream.next().await else {
        panic!("no error");
    };
    assert!(
        !format!("{error} {error:?}").contains("canary"),
        "{error:?}"
    );
    assert_eq!(error.code(), "connect");
}
