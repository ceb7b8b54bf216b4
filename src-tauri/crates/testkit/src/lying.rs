//! A network and a host that misbehave: a server in front of a real host that passes everything on
//! until it is told to lie, stall, drop, or let the event stream run dry.
//!
//! Guarantees: without a lie, bytes go through unchanged; each request is counted and kept; when it
//! is dropped all its connections end. HTTP/1.1 by hand, one request for each connection, because a
//! sound server refuses to do what this one is for.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is done with the next requests to a route.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lie {
    /// Answers this, and the host never learns of the request.
    Answer {
        /// HTTP status.
        status: u16,
        /// `Content-Type`.
        content_type: String,
        /// The body.
        body: String,
    },
    /// The host does what it was asked, and the answer is lost.
    DropReply,
    /// The connection ends before the host learns of the request.
    DropRequest,
    /// Nothing happens, for as long as it is so.
    Stall,
}

impl Lie {
    /// An answer in JSON.
    #[must_use]
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        Self::Answer {
            status,
            content_type: "application/json".to_owned(),
            body: body.to_string(),
        }
    }
}

#[derive(Debug, Default)]
struct State {
    ended: bool,
    upstream: Option<SocketAddr>,
    lies: BTreeMap<String, Lie>,
    asked: Vec<String>,
    /// Nothing of event streams goes through, and no end of one either.
    dry: bool,
    /// Grows with each cut; a connection of an earlier one ends.
    cut: u64,
    /// Written into every event stream, in order.
    injected: Vec<String>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The running server.
#[derive(Debug)]
pub struct LyingHost {
    shared: Arc<Shared>,
    address: SocketAddr,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl LyingHost {
    /// Starts on a free port of 127.0.0.1 in front of the host at `upstream`, an `http://` URL; with
    /// none before it, every request without a lie is dropped.
    ///
    /// # Panics
    /// When no port can be had, or the URL names no address.
    #[must_use]
    pub fn start(upstream: Option<&str>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("its own address");
        let shared = Arc::<Shared>::default();
        let server = Self {
            shared: Arc::clone(&shared),
            address,
            thread: Some(std::thread::spawn(move || {
                for stream in listener.incoming() {
                    if shared.lock().ended {
                        return;
                    }
                    let shared = Arc::clone(&shared);
                    if let Ok(stream) = stream {
                        std::thread::spawn(move || serve(stream, &shared));
                    }
                }
            })),
        };
        server.lead_to(upstream);
        server
    }

    /// Its own URL.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Stands in front of another host from now on: it was restarted.
    ///
    /// # Panics
    /// When the URL names no address.
    pub fn lead_to(&self, upstream: Option<&str>) {
        let address = |url: &str| {
            let rest = url.trim_start_matches("http://").trim_end_matches('/');
            rest.parse().expect("an address")
        };
        self.shared.lock().upstream = upstream.map(address);
    }

    /// Requests to this method and path, such as `GET /status`, meet this from now on.
    pub fn lie(&self, route: &str, lie: Lie) {
        self.shared.lock().lies.insert(route.to_owned(), lie);
        self.shared.changed.notify_all();
    }

    /// Requests to it go through again; one that stalls is dropped.
    pub fn tell_the_truth(&self, route: &str) {
        self.shared.lock().lies.remove(route);
        self.shared.changed.notify_all();
    }

    /// Event streams go silent, with their connections open; or speak again.
    pub fn run_dry(&self, dry: bool) {
        self.shared.lock().dry = dry;
        self.shared.changed.notify_all();
    }

    /// All connections end now.
    pub fn cut(&self) {
        self.shared.lock().cut += 1;
        self.shared.changed.notify_all();
    }

    /// Writes into the event streams that are open now.
    pub fn inject(&self, text: &str) {
        self.shared.lock().injected.push(text.to_owned());
        self.shared.changed.notify_all();
    }

    /// How often this method and path was asked.
    #[must_use]
    pub fn count(&self, route: &str) -> usize {
        let state = self.shared.lock();
        state.asked.iter().filter(|asked| *asked == route).count()
    }
}

impl Drop for LyingHost {
    fn drop(&mut self) {
        {
            let mut state = self.shared.lock();
            state.ended = true;
            state.cut += 1;
        }
        self.shared.changed.notify_all();
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Asked {
    route: String,
    head: String,
    body: Vec<u8>,
}

/// Reads one request; its head leaves out what is this connection's alone.
fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    reader.read_line(&mut first).ok()?;
    let mut words = first.split_whitespace();
    let (method, target) = (words.next()?, words.next()?);
    let path = target.split('?').next()?;
    let route = format!("{method} {path}");
    let (mut head, mut length) = (first.clone(), 0);
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 || line == "\r\n" {
            break;
        }
        let name = line
            .split(':')
            .next()
            .unwrap_or_default()
            .to_ascii_lowercase();
        match name.as_str() {
            "host" | "connection" => continue,
            "content-length" => length = line.split(':').nth(1)?.trim().parse().ok()?,
            _ => {}
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { route, head, body })
}

fn serve(stream: TcpStream, shared: &Arc<Shared>) {
    let born = shared.lock().cut;
    let Some(asked) = read(&stream) else {
        return;
    };
    let (lie, upstream) = {
        let mut state = shared.lock();
        state.asked.push(asked.route.clone());
        (state.lies.get(&asked.route).cloned(), state.upstream)
    };
    match lie {
        Some(Lie::Answer {
            status,
            content_type,
            body,
        }) => {
            let _ = write!(
                &stream,
                "HTTP/1.1 {status} Lie\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n{body}",
                body.len()
            );
        }
        Some(Lie::DropRequest) => {}
        Some(Lie::Stall) => {
            let stalls = |state: &mut State| {
                state.cut == born && state.lies.get(&asked.route) == Some(&Lie::Stall)
            };
            drop(shared.changed.wait_while(shared.lock(), stalls));
        }
        Some(Lie::DropReply) => {
            if let Some(mut host) = sent(&asked, upstream) {
                let mut answer = Vec::new();
                let _ = host.read_to_end(&mut answer);
            }
        }
        None => {
            if let Some(host) = sent(&asked, upstream) {
                pass(&stream, &host, shared, born, asked.route == "GET /events");
            }
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

fn sent(asked: &Asked, upstream: Option<SocketAddr>) -> Option<TcpStream> {
    let upstream = upstream?;
    let mut host = TcpStream::connect(upstream).ok()?;
    let head = format!(
        "{}host: {upstream}\r\nconnection: close\r\n\r\n",
        asked.head
    );
    host.write_all(head.as_bytes()).ok()?;
    host.write_all(&asked.body).ok()?;
    Some(host)
}

/// Passes the answer on, piece by piece, until either side or a cut ends it.
fn pass(client: &TcpStream, host: &TcpStream, shared: &Shared, born: u64, is_stream: bool) {
    let (mut client, mut host) = (client, host);
    let _ = host.set_read_timeout(Some(Duration::from_millis(20)));
    let mut injected = shared.lock().injected.len();
    let mut piece = [0; 16 * 1024];
    loop {
        let (cut, dry, fresh) = {
            let state = shared.lock();
            let fresh: Vec<String> = state.injected.iter().skip(injected).cloned().collect();
            (state.cut != born, state.dry && is_stream, fresh)
        };
        if cut {
            return;
        }
        if is_stream && !dry {
            injected += fresh.len();
            for text in fresh {
                // A chunk of its own between those of the host, which ends each piece with a chunk.
                if write!(client, "{:x}\r\n{text}\r\n", text.len()).is_err() {
                    return;
                }
            }
        }
        match host.read(&mut piece) {
            Ok(0) if dry => std::thread::sleep(Duration::from_millis(20)),
            Ok(0) => return,
            Ok(_) if dry => {}
            Ok(count) => {
                if client.write_all(&piece[..count]).is_err() {
                    return;
                }
            }
            Err(error)
                if matches!(
                    error.kind(),
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                ) => {}
            Err(_) => return,
        }
    }
}
