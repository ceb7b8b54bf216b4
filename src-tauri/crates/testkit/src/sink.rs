//! An authoritative sink: a real HTTP server that has an effect once for each idempotency key,
//! remembers what it was sent, and can refuse an earlier sender for good.
//!
//! Guarantees: an effect stands in the list exactly as often as it happened; a fenced sender has no
//! effect any more, whenever its request arrives; dropping the server ends its thread.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};

/// What the sink does with the next requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Conduct {
    /// Has the effect and says so.
    #[default]
    Apply,
    /// Has the effect and hangs up without a word.
    ApplyAndHangUp,
    /// Puts the request aside, where it may have its effect later, and hangs up without a word.
    HoldAndHangUp,
    /// The same, and says nothing as long as it does this.
    HoldAndStall,
}

/// How the sink answers a look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sight {
    /// As it is.
    #[default]
    Clear,
    /// With an error.
    Dark,
    /// Never.
    Stuck,
}

/// One request for an effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The idempotency key.
    pub key: String,
    /// Who sent it.
    pub sender: String,
}

/// What the sink's threads share.
#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// Conduct or sight are others, or the sink ends.
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Holds a connection open without a word, while it is wanted so.
    fn stall(&self, wanted: impl Fn(&State) -> bool) {
        let waits = |state: &mut State| !state.ended && wanted(state);
        drop(self.changed.wait_while(self.lock(), waits));
    }
}

#[derive(Debug, Default)]
struct State {
    ended: bool,
    conduct: Conduct,
    sight: Sight,
    asked: Vec<Asked>,
    effects: Vec<Asked>,
    held: Vec<Asked>,
    fenced: BTreeSet<String>,
}

impl State {
    /// Exactly one effect for each key, and none for a fenced sender.
    fn apply(&mut self, asked: &Asked) -> Result<bool, &'static str> {
        if self.fenced.contains(&asked.sender) {
            return Err("fenced");
        }
        if self.effects.iter().any(|effect| effect.key == asked.key) {
            return Ok(false);
        }
        self.effects.push(asked.clone());
        Ok(true)
    }

    /// No sender that used the key can have its effect any more.
    fn is_fenced(&self, key: &str) -> bool {
        let mut senders = self.asked.iter().filter(|asked| asked.key == key);
        !self.held.iter().any(|held| held.key == key)
            && senders.clone().count() > 0
            && senders.all(|asked| self.fenced.contains(&asked.sender))
    }
}

/// The running sink.
#[derive(Debug)]
pub struct Sink {
    shared: Arc<Shared>,
    address: SocketAddr,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Sink {
    /// Starts on a free port of 127.0.0.1, in a thread of its own.
    ///
    /// # Panics
    /// When no port can be had.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port for the sink");
        let address = listener.local_addr().expect("the sink's own address");
        let shared = Arc::<Shared>::default();
        let own = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if own.lock().ended {
                    return;
                }
                let shared = Arc::clone(&own);
                if let Ok(stream) = stream {
                    std::thread::spawn(move || serve(&stream, &shared));
                }
            }
        });
        Self {
            shared,
            address,
            thread: Some(thread),
        }
    }

    /// A client, as a tool and its verifier have one.
    #[must_use]
    pub fn client(&self) -> SinkClient {
        SinkClient {
            base: format!("http://{}", self.address),
            client: reqwest::Client::builder()
                .no_proxy()
                .build()
                .expect("an HTTP client"),
        }
    }

    /// What it does from now on.
    pub fn conduct(&self, conduct: Conduct) {
        self.shared.lock().conduct = conduct;
        self.shared.changed.notify_all();
    }

    /// How it answers looks from now on.
    pub fn sight(&self, sight: Sight) {
        self.shared.lock().sight = sight;
        self.shared.changed.notify_all();
    }

    /// What was put aside has its effect now, unless its sender is fenced.
    pub fn commit_held(&self) {
        let mut state = self.shared.lock();
        for asked in std::mem::take(&mut state.held) {
            let _ = state.apply(&asked);
        }
    }

    /// From now on this sender has no effect, whatever arrives and was put aside.
    pub fn fence(&self, sender: &str) {
        let mut state = self.shared.lock();
        state.fenced.insert(sender.to_owned());
        state.held.retain(|held| held.sender != sender);
    }

    /// Requests for effects, in order of arrival.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.shared.lock().asked.clone()
    }

    /// Effects, in order.
    #[must_use]
    pub fn effects(&self) -> Vec<Asked> {
        self.shared.lock().effects.clone()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
        // Wakes the thread that waits for a connection.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// One connection, one request.
fn serve(mut stream: &TcpStream, shared: &Shared) {
    let Some((path, headers)) = request(stream) else {
        return;
    };
    let asked = Asked {
        key: headers.get("idempotency-key").cloned().unwrap_or_default(),
        sender: headers.get("x-sender").cloned().unwrap_or_default(),
    };
    let (status, body) = if path == "/effect" {
        let mut state = shared.lock();
        state.asked.push(asked.clone());
        match state.conduct {
            Conduct::HoldAndHangUp => {
                state.held.push(asked);
                return;
            }
            Conduct::HoldAndStall => {
                state.held.push(asked);
                drop(state);
                shared.stall(|state| state.conduct == Conduct::HoldAndStall);
                return;
            }
            Conduct::ApplyAndHangUp => {
                let _ = state.apply(&asked);
                return;
            }
            Conduct::Apply => match state.apply(&asked) {
                Ok(first) => (200, json!({ "first": first })),
                Err(reason) => (409, json!({ "reason": reason })),
            },
        }
    } else {
        let sight = shared.lock().sight;
        match sight {
            Sight::Stuck => {
                shared.stall(|state| state.sight == Sight::Stuck);
                return;
            }
            Sight::Dark => (503, json!({})),
            Sight::Clear => {
                let state = shared.lock();
                let present = state.effects.iter().any(|effect| effect.key == asked.key);
                let fenced = state.is_fenced(&asked.key);
                (200, json!({ "present": present, "fenced": fenced }))
            }
        }
    };
    let body = body.to_string();
    let _ = write!(
        stream,
        "HTTP/1.1 {status} -\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    );
}

/// The path and the headers, names in lower case. Bodies are empty here.
fn request(stream: &TcpStream) -> Option<(String, BTreeMap<String, String>)> {
    let mut lines = BufReader::new(stream).lines();
    let first = lines.next()?.ok()?;
    let path = first.split_whitespace().nth(1)?.to_owned();
    let mut headers = BTreeMap::new();
    for line in lines {
        let line = line.ok()?;
        let Some((name, value)) = line.split_once(':') else {
            return Some((path, headers));
        };
        headers.insert(name.to_lowercase(), value.trim().to_owned());
    }
    None
}

/// Speaks to a sink.
#[derive(Debug, Clone)]
pub struct SinkClient {
    base: String,
    client: reqwest::Client,
}

impl SinkClient {
    /// Asks for the effect; whether this request was the one that had it.
    ///
    /// # Errors
    /// The sink refused, or said nothing: then it may have had its effect all the same.
    pub async fn effect(&self, key: &str, sender: &str) -> Result<bool, String> {
        let body = self.send("/effect", key, sender).await?;
        Ok(body["first"] == true)
    }

    /// Whether the effect is there, and whether the earlier senders can no longer have it.
    ///
    /// # Errors
    /// The sink can't say.
    pub async fn look(&self, key: &str) -> Result<(bool, bool), String> {
        let body = self.send("/look", key, "").await?;
        Ok((body["present"] == true, body["fenced"] == true))
    }

    async fn send(&self, path: &str, key: &str, sender: &str) -> Result<Value, String> {
        let answer = self
            .client
            .post(format!("{}{path}", self.base))
            .header("idempotency-key", key)
            .header("x-sender", sender)
            .send()
            .await
            .map_err(|error| error.to_string())?;
        let status = answer.status();
        let body: Value = answer.json().await.map_err(|error| error.to_string())?;
        if status.is_success() {
            Ok(body)
        } else {
            Err(format!("the sink answered {status}: {body}"))
        }
    }
}
