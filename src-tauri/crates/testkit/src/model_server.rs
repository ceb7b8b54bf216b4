//! A scripted model server: real HTTP on loopback, OpenAI-compatible chat completions, and every
//! way in which such a server is known to misbehave.
//!
//! Guarantees: one step of the script answers one request, in order of arrival; each request is
//! kept with its exact body; a client that closes its connection early is noticed and marked
//! `aborted`; dropping the server ends its thread.

mod connection;
mod reply;
mod script;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;
use tokio::sync::{Notify, watch};

pub use script::{Call, Endless, Exhausted, Fault, Gate, NOW_US, RawBody, Script, Step, Usage};

use crate::wait::{SOON, until, wait_until};

/// One request as it arrived.
#[derive(Debug, Clone, Serialize)]
pub struct RecordedRequest {
    /// Method.
    pub method: String,
    /// Path with its query.
    pub path: String,
    /// Headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The exact body.
    #[serde(skip)]
    pub body_bytes: Vec<u8>,
    /// The body as JSON, `null` when it is none.
    pub json: Value,
    /// The client closed the connection before the answer was complete.
    pub aborted: bool,
    /// The whole answer was written.
    pub answered: bool,
}

type Function = Box<dyn FnOnce(&Value) -> Step + Send>;

enum Answer {
    Step(Box<Step>),
    Function(Function),
}

/// What the server's tasks share with the test.
struct Shared {
    answers: Mutex<VecDeque<Answer>>,
    exhausted: Exhausted,
    requests: Mutex<Vec<RecordedRequest>>,
    open_gates: Mutex<BTreeSet<String>>,
    gates_changed: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The running server.
pub struct ModelServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl ModelServer {
    /// Starts a server on a free port of 127.0.0.1, in a thread of its own.
    ///
    /// # Panics
    /// When no port can be had.
    #[must_use]
    pub fn start(script: impl Into<Script>) -> Self {
        Self::start_on("127.0.0.1:0", script)
    }

    /// Starts a server on a given loopback address.
    ///
    /// # Panics
    /// When the address can't be had.
    #[must_use]
    pub fn start_on(address: &str, script: impl Into<Script>) -> Self {
        let script = script.into();
        let listener = TcpListener::bind(address).expect("a loopback port");
        listener.set_nonblocking(true).expect("a listener");
        let address = listener.local_addr().expect("the listener's address");
        let shared = Arc::new(Shared {
            answers: Mutex::new(
                script
                    .steps
                    .into_iter()
                    .map(|step| Answer::Step(Box::new(step)))
                    .collect(),
            ),
            exhausted: script.when_exhausted,
            requests: Mutex::default(),
            open_gates: Mutex::default(),
            gates_changed: Notify::new(),
        });
        let (stop, stopped) = watch::channel(false);
        let thread = std::thread::spawn({
            let shared = Arc::clone(&shared);
            move || {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .expect("a runtime");
                runtime.block_on(connection::serve(shared, listener, stopped));
            }
        });
        Self {
            shared,
            address,
            stop,
            thread: Some(thread),
        }
    }

    /// The base URL to configure, ending in `/v1`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Adds a step to the end of the script.
    pub fn push(&self, step: Step) {
        lock(&self.shared.answers).push_back(Answer::Step(Box::new(step)));
    }

    /// Adds a step that is made from the request's JSON when it arrives.
    pub fn push_fn(&self, function: impl FnOnce(&Value) -> Step + Send + 'static) {
        lock(&self.shared.answers).push_back(Answer::Function(Box::new(function)));
    }

    /// Opens a gate, for ever.
    pub fn release(&self, gate: &str) {
        self.shared.release(gate);
    }

    /// All requests so far, in order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<RecordedRequest> {
        lock(&self.shared.requests).clone()
    }

    /// How many requests have arrived.
    #[must_use]
    pub fn request_count(&self) -> usize {
        lock(&self.shared.requests).len()
    }

    /// Waits until `count` requests have arrived.
    ///
    /// # Panics
    /// After 20 s.
    pub async fn wait_for_requests(&self, count: usize) -> Vec<RecordedRequest> {
        until("requests to the model server", SOON, || {
            (self.request_count() >= count).then(|| self.requests())
        })
        .await
    }

    /// [`Self::wait_for_requests`] for a test without a runtime.
    ///
    /// # Panics
    /// After 20 s.
    #[must_use]
    pub fn wait_for_requests_blocking(&self, count: usize) -> Vec<RecordedRequest> {
        wait_until("requests to the model server", SOON, || {
            (self.request_count() >= count).then(|| self.requests())
        })
    }

    /// Waits until the client has closed the connection of this request (0 is the first) before
    /// its answer was complete.
    ///
    /// # Panics
    /// After 20 s.
    pub async fn wait_for_abort(&self, index: usize) {
        until("the client to close its connection", SOON, || {
            lock(&self.shared.requests)
                .get(index)
                .filter(|request| request.aborted)
                .map(|_| ())
        })
        .await;
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn release(&self, gate: &str) {
        lock(&self.open_gates).insert(gate.to_owned());
        self.gates_changed.notify_waiters();
    }

    async fn pass(&self, gate: &str) {
        loop {
            let changed = self.gates_changed.notified();
            tokio::pin!(changed);
            // Registered before the look, so that a release in between is not missed.
            changed.as_mut().enable();
            if lock(&self.open_gates).contains(gate) {
                return;
            }
            changed.await;
        }
    }

    fn next_step(&self, json: &Value) -> Step {
        let answer = lock(&self.answers).pop_front();
        match answer {
            Some(Answer::Step(step)) => *step,
            Some(Answer::Function(function)) => function(json),
            None => match self.exhausted {
                Exhausted::Done => Step::text("done"),
                Exhausted::Fail => Step::fault(Fault::Status {
                    status: 400,
                    body: r#"{"error":{"message":"the script is used up"}}"#.to_owned(),
                    headers: BTreeMap::new(),
                }),
            },
        }
    }
}
