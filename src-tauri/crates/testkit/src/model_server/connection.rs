//! The server's sockets: HTTP/1.1 written by hand, because most of what it must do is what a sound
//! HTTP server refuses to do. One request per connection.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::reply::{chunks, whole};
use super::script::{Endless, Fault, NOW_US, Step};
use super::{RecordedRequest, Shared, lock};

const EVENTS: &str = "text/event-stream";

/// Accepts connections until it is stopped; then cuts those that are open.
pub(crate) async fn serve(
    shared: Arc<Shared>,
    listener: std::net::TcpListener,
    mut stopped: watch::Receiver<bool>,
) {
    let listener = TcpListener::from_std(listener).expect("a listener");
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            _ = stopped.changed() => return,
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(connection(Arc::clone(&shared), stream));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn connection(shared: Arc<Shared>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let (mut reader, writer) = stream.into_split();
    let Ok(request) = read_request(&mut reader).await else {
        return;
    };
    let mut out = Out { writer };
    if let Some(control) = request.path.strip_prefix("/control/") {
        let answer = control_answer(&shared, control, &request);
        let _ = out.plain(200, "application/json", &answer).await;
        return;
    }
    if request.method != "POST" || !request.path.ends_with("/chat/completions") {
        let _ = out.plain(404, "application/json", "{}").await;
        return;
    }
    let json = request.json.clone();
    let index = {
        let mut requests = lock(&shared.requests);
        requests.push(request);
        requests.len() - 1
    };
    let step = shared.next_step(&json);
    tokio::select! {
        done = play(&shared, &mut out, &step, &json["model"]) => match done {
            Ok(()) => {
                lock(&shared.requests)[index].answered = true;
                let _ = out.writer.shutdown().await;
            }
            Err(Cut::ByScript) => {}
            Err(Cut::ByClient) => lock(&shared.requests)[index].aborted = true,
        },
        () = closed(&mut reader) => lock(&shared.requests)[index].aborted = true,
    }
}

/// For scripts in other languages: `POST /control/release/NAME`, `POST /control/push` with a step,
/// `GET /control/requests`.
fn control_answer(shared: &Shared, control: &str, request: &RecordedRequest) -> String {
    if let Some(gate) = control.strip_prefix("release/") {
        shared.release(gate);
    } else if control == "push" {
        match serde_json::from_value::<Step>(request.json.clone()) {
            Ok(step) => lock(&shared.answers).push_back(super::Answer::Step(Box::new(step))),
            Err(error) => return json!({ "error": error.to_string() }).to_string(),
        }
    } else if control == "requests" {
        return json!(*lock(&shared.requests)).to_string();
    } else {
        return json!({ "error": "unknown control" }).to_string();
    }
    json!({ "ok": true }).to_string()
}

/// Resolves when the client has closed its side.
async fn closed(reader: &mut OwnedReadHalf) {
    let mut rest = [0; 1024];
    while matches!(reader.read(&mut rest).await, Ok(count) if count > 0) {}
}

async fn read_request(reader: &mut OwnedReadHalf) -> io::Result<RecordedRequest> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if reader.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    };
    let mut body_bytes = bytes.split_off(head_end + 4);
    let head = String::from_utf8_lossy(&bytes).into_owned();
    let mut lines = head.lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length = headers
        .get("content-length")
        .and_then(|length| length.parse::<usize>().ok())
        .unwrap_or(0);
    while body_bytes.len() < length {
        if reader.read_buf(&mut body_bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(RecordedRequest {
        method,
        path,
        headers,
        json: serde_json::from_slice(&body_bytes).unwrap_or(Value::Null),
        body_bytes,
        aborted: false,
        answered: false,
    })
}

/// Why a reply is not complete.
enum Cut {
    ByScript,
    ByClient,
}

impl From<io::Error> for Cut {
    fn from(_: io::Error) -> Self {
        Self::ByClient
    }
}

async fn play(shared: &Shared, out: &mut Out, step: &Step, model: &Value) -> Result<(), Cut> {
    if let Some(gate) = step.gate.as_ref().filter(|gate| gate.after == 0) {
        shared.pass(&gate.name).await;
    }
    let pause = Duration::from_millis(step.gap_ms);
    match &step.fault {
        Some(Fault::Status {
            status,
            body,
            headers,
        }) => {
            let mut extra: Vec<(&str, &str)> = headers
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            if !headers
                .keys()
                .any(|name| name.eq_ignore_ascii_case("content-type"))
            {
                extra.push(("content-type", "application/json"));
            }
            out.whole(*status, &extra, body.as_bytes()).await?;
        }
        Some(Fault::DropAfter(0)) => return Err(Cut::ByScript),
        Some(Fault::StallAfter(0)) => std::future::pending().await,
        Some(Fault::Html) => {
            let page = "<!doctype html><html><body>Welcome</body></html>";
            out.plain(200, "text/html; charset=utf-8", page).await?;
        }
        Some(Fault::NonStream) => {
            out.plain(200, "application/json", &whole(step, model))
                .await?;
        }
        Some(Fault::Garbage) => {
            out.head(EVENTS).await?;
            out.chunk(b"data: %%% this is no JSON\n\n").await?;
            out.end().await?;
        }
        Some(Fault::EmptyBody) => {
            out.head(EVENTS).await?;
            out.end().await?;
        }
        Some(Fault::Raw {
            content_type,
            body,
            write_size,
        }) => {
            out.head(content_type).await?;
            let bytes = body.bytes();
            for piece in bytes.chunks(write_size.unwrap_or(bytes.len()).max(1)) {
                out.chunk(piece).await?;
            }
            out.end().await?;
        }
        Some(Fault::Endless(kind)) => endless(out, *kind, model, pause).await?,
        Some(Fault::ContentType(content_type)) => {
            stream_chunks(shared, out, step, model, content_type).await?;
        }
        Some(
            Fault::DropAfter(_)
            | Fault::StallAfter(_)
            | Fault::HalfLineAfter(_)
            | Fault::ErrorAfter(..),
        )
        | None => stream_chunks(shared, out, step, model, EVENTS).await?,
    }
    Ok(())
}

async fn stream_chunks(
    shared: &Shared,
    out: &mut Out,
    step: &Step,
    model: &Value,
    content_type: &str,
) -> Result<(), Cut> {
    let line_end = if step.crlf { "\r\n" } else { "\n" };
    out.head(content_type).await?;
    for (index, chunk) in chunks(step, model).into_iter().enumerate() {
        match &step.fault {
            Some(Fault::DropAfter(count)) if *count == index => return Err(Cut::ByScript),
            Some(Fault::StallAfter(count)) if *count == index => std::future::pending().await,
            Some(Fault::HalfLineAfter(count)) if *count == index => {
                let half: String = chunk.chars().take(chunk.chars().count() / 2).collect();
                out.chunk(format!("data: {half}").as_bytes()).await?;
                out.end().await?;
                return Ok(());
            }
            Some(Fault::ErrorAfter(count, error)) if *count == index => {
                let event = json!({ "error": error });
                out.chunk(format!("data: {event}{line_end}{line_end}").as_bytes())
                    .await?;
                out.end().await?;
                return Ok(());
            }
            _ => {}
        }
        if let Some(gate) = &step.gate
            && gate.after == index
        {
            shared.pass(&gate.name).await;
        }
        if step.gap_ms > 0 {
            tokio::time::sleep(Duration::from_millis(step.gap_ms)).await;
        }
        let comment = if step.comments {
            format!(": keep-alive{line_end}{line_end}")
        } else {
            String::new()
        };
        let chunk = stamped(chunk);
        out.chunk(format!("{comment}data: {chunk}{line_end}{line_end}").as_bytes())
            .await?;
    }
    out.end().await?;
    Ok(())
}

/// Fills in the time of writing where a chunk asks for it.
fn stamped(chunk: String) -> String {
    if !chunk.contains(NOW_US) {
        return chunk;
    }
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    chunk.replace(NOW_US, &now.as_micros().to_string())
}

/// Repeats one piece until the client closes.
async fn endless(out: &mut Out, kind: Endless, model: &Value, pause: Duration) -> Result<(), Cut> {
    let (content_type, piece) = match kind {
        Endless::Text => {
            let step = Step {
                without_finish: true,
                without_done: true,
                ..Step::text(&"on and on ".repeat(100))
            };
            (
                EVENTS,
                format!("data: {}\n\n", chunks(&step, model).concat()),
            )
        }
        Endless::Comments => (EVENTS, ": keep-alive\n\n".to_owned()),
        Endless::Line => {
            out.head(EVENTS).await?;
            out.chunk(b"data: ").await?;
            return repeat(out, &"x".repeat(16 << 10), pause).await;
        }
        Endless::Json => ("application/json", " ".repeat(16 << 10)),
    };
    out.head(content_type).await?;
    repeat(out, &piece, pause).await
}

async fn repeat(out: &mut Out, piece: &str, pause: Duration) -> Result<(), Cut> {
    loop {
        out.chunk(piece.as_bytes()).await?;
        if pause.is_zero() {
            // Lets the task that watches for the client's end have its turn.
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(pause).await;
        }
    }
}

/// The answer's side of a connection.
struct Out {
    writer: OwnedWriteHalf,
}

impl Out {
    async fn head(&mut self, content_type: &str) -> io::Result<()> {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {content_type}\r\ntransfer-encoding: chunked\r\n\
             connection: close\r\n\r\n"
        );
        self.writer.write_all(head.as_bytes()).await
    }

    async fn chunk(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut framed = format!("{:x}\r\n", bytes.len()).into_bytes();
        framed.extend_from_slice(bytes);
        framed.extend_from_slice(b"\r\n");
        self.writer.write_all(&framed).await
    }

    async fn end(&mut self) -> io::Result<()> {
        self.writer.write_all(b"0\r\n\r\n").await
    }

    async fn plain(&mut self, status: u16, content_type: &str, body: &str) -> io::Result<()> {
        self.whole(status, &[("content-type", content_type)], body.as_bytes())
            .await
    }

    async fn whole(
        &mut self,
        status: u16,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> io::Result<()> {
        let mut answer = format!(
            "HTTP/1.1 {status} Scripted\r\ncontent-length: {}\r\nconnection: close\r\n",
            body.len()
        );
        for (name, value) in headers {
            answer.push_str(&format!("{name}: {value}\r\n"));
        }
        answer.push_str("\r\n");
        let mut bytes = answer.into_bytes();
        bytes.extend_from_slice(body);
        self.writer.write_all(&bytes).await
    }
}
