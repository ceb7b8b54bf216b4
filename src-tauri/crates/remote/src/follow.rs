//! The event stream of a host, followed for as long as the connection is wanted.
//!
//! Guarantees: a stream that ends, stalls or fails leaves all facts unconfirmed before anything
//! else happens; tries are 5, 10, 20, 30, 30 … s apart, but for one at once after a connection
//! that stood.

use std::sync::Arc;
use std::time::Duration;

use holdfast_api::event::Frame;
use holdfast_api::session::session_path;
use holdfast_domain::runtime::observed::snapshot_of;
use holdfast_domain::runtime::remote::RemoteVerdict;
use holdfast_domain::runtime::snapshot::RuntimeState;
use holdfast_sse::{Signal, SseError, SseEvent, Subscription};
use serde_json::Value;

use crate::connection::{Condition, Inner};
use crate::dialect::{self, Dialect};
use crate::error::RemoteError;
use crate::foreign;
use crate::link::LinkError;

/// Seconds between tries (RS-25).
const BACKOFF: [u64; 4] = [5, 10, 20, 30];
/// A stream without a whole event for this long is opened anew; it resumes where it was.
const QUIET: Duration = Duration::from_secs(600);
/// A stream that ends sooner counts as a failure, so that its tries are apart.
const STOOD: Duration = Duration::from_secs(2);

/// Between two times that a host without numbered frames has everything read anew.
const PACE: Duration = Duration::from_millis(500);

/// Why the stream is over.
enum Over {
    /// It stood for a while, and is gone.
    Ended,
    /// It was never there, or went at once.
    Failed(Failure),
}

struct Failure {
    code: String,
    message: String,
    /// Trying again changes nothing until a person has done something.
    lasting: bool,
}

impl Failure {
    fn of_link(error: LinkError) -> Self {
        Self {
            code: error.code.to_owned(),
            message: error.message,
            lasting: error.lasting,
        }
    }

    fn of_stream(error: &SseError) -> Self {
        if matches!(error, SseError::Status { status: 401, .. }) {
            let error = RemoteError::Unauthorized;
            return Self {
                code: error.code().to_owned(),
                message: error.to_string(),
                lasting: true,
            };
        }
        Self {
            code: format!("host_{}", error.code()),
            message: error.to_string(),
            lasting: false,
        }
    }
}

pub(crate) async fn run(inner: &Arc<Inner>) {
    let mut failures = 0_usize;
    let mut last = None;
    loop {
        inner.stand(Condition::Connecting);
        let over = follow(inner, &mut last).await;
        inner.sessions().disconnect();
        let Over::Failed(failure) = over else {
            failures = 0;
            continue;
        };
        let Failure {
            code,
            message,
            lasting,
        } = failure;
        if lasting {
            inner.stand(Condition::Refused { code, message });
            inner.now.notified().await;
            continue;
        }
        let seconds = BACKOFF[failures.min(BACKOFF.len() - 1)];
        failures += 1;
        let until = tokio::time::Instant::now() + Duration::from_secs(seconds);
        inner.stand(Condition::Waiting {
            until,
            code,
            message,
        });
        tokio::select! {
            () = tokio::time::sleep_until(until) => {}
            () = inner.now.notified() => {}
        }
    }
}

async fn follow(inner: &Arc<Inner>, last: &mut Option<String>) -> Over {
    let client = match inner.link.open().await {
        Ok(client) => client,
        Err(error) => return Over::Failed(Failure::of_link(error)),
    };
    let (client, dialect) = dialect::meet(client).await;
    inner.speak(dialect);
    inner.use_client(client.clone());
    let mut stream = match Subscription::new(client.events(last.as_deref()), QUIET) {
        Ok(stream) => stream,
        Err(error) => return Over::Failed(Failure::of_stream(&error)),
    };
    match stream.next().await {
        Some(Ok(Signal::Open)) => {}
        Some(Ok(Signal::Event(_))) | None => {
            return Over::Failed(Failure::of_stream(&SseError::Ended));
        }
        Some(Err(error)) => return Over::Failed(Failure::of_stream(&error)),
    }
    let since = tokio::time::Instant::now();
    let generation = inner.sessions().connect();
    inner.stand(Condition::Connected);
    inner.doubt.notify_one();
    if last.is_none() {
        // A host that gives no ids can't say what was missed.
        missed(inner);
    }
    loop {
        match stream.next().await {
            Some(Ok(Signal::Open)) => {}
            Some(Ok(Signal::Event(event))) => {
                if !event.id.is_empty() {
                    *last = Some(event.id.clone());
                }
                take(inner, generation, &event);
            }
            broken => {
                let error = broken.and_then(Result::err).unwrap_or(SseError::Ended);
                tracing::info!(code = error.code(), "a host's event stream is over");
                return if since.elapsed() < STOOD {
                    Over::Failed(Failure::of_stream(&error))
                } else {
                    Over::Ended
                };
            }
        }
    }
}

fn take(inner: &Inner, generation: u64, event: &SseEvent) {
    let Ok(data) = serde_json::from_str::<Value>(&event.data) else {
        tracing::warn!("a frame of a host is not JSON and was left out");
        return;
    };
    match data["kind"].as_str() {
        Some("runtime_state") => state(inner, generation, &data),
        Some("gap") => {
            missed(inner);
            inner.doubt.notify_one();
        }
        _ => match inner.dialect() {
            Dialect::Own => pass_on(inner, event, data),
            Dialect::Reasonix => unnumbered(inner, &data),
        },
    }
}

/// A frame of a host whose frames have no numbers: which of them a snapshot holds can't be told, so
/// none that adds to the transcript is passed on, and the snapshot is read anew instead.
fn unnumbered(inner: &Inner, data: &Value) {
    if let Some(frame) = foreign::frame(data) {
        inner.sink.frame(&frame);
    }
    if foreign::changes_sessions(data) {
        inner.doubt.notify_one();
    }
    if foreign::is_shown(data) {
        inner.stale.notify_one();
    }
}

/// Has what is shown read anew, at once and then no oftener than [`PACE`].
pub(crate) async fn reread(inner: &Inner) {
    loop {
        inner.stale.notified().await;
        missed(inner);
        tokio::time::sleep(PACE).await;
    }
}

fn missed(inner: &Inner) {
    let bound = inner.sessions().bound();
    inner.sink.gap(&bound);
}

fn state(inner: &Inner, generation: u64, data: &Value) {
    let Some(path) = path_of(data) else {
        inner.doubt.notify_one();
        return;
    };
    let state = snapshot_of(&data["runtimeState"]).ok();
    let verdict = inner.sessions().stream(generation, &path, state.as_ref());
    tell(&verdict, state.as_ref());
    match verdict {
        RemoteVerdict::Accepted => inner.sink.changed(),
        RemoteVerdict::Conflict { resync } => {
            inner.sink.changed();
            if resync {
                inner.doubt.notify_one();
            }
        }
        RemoteVerdict::Invalid => {
            inner.sink.changed();
            inner.doubt.notify_one();
        }
        RemoteVerdict::Deferred => inner.doubt.notify_one(),
        RemoteVerdict::Duplicate | RemoteVerdict::Stale | RemoteVerdict::Fenced => {}
    }
}

/// Whose state it is; another host may say it in the state alone.
fn path_of(data: &Value) -> Option<String> {
    let told = |value: &Value| {
        value
            .as_str()
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    told(&data["sessionPath"])
        .or_else(|| told(&data["runtimeState"]["sessionId"]).map(|id| session_path(&id)))
}

/// RS-37.
fn tell(verdict: &RemoteVerdict, state: Option<&RuntimeState>) {
    let reason = match verdict {
        RemoteVerdict::Accepted | RemoteVerdict::Duplicate => return,
        RemoteVerdict::Stale => "stale",
        RemoteVerdict::Conflict { .. } => "conflict",
        RemoteVerdict::Deferred => "deferred",
        RemoteVerdict::Invalid => "invalid",
        RemoteVerdict::Fenced => "fenced",
    };
    tracing::info!(
        source = "stream",
        epoch = state.map(RuntimeState::epoch_mark),
        revision = state.map(|state| state.revision),
        phase = ?state.map(|state| state.phase),
        reason,
        "runtime state of another host"
    );
}

/// What this program does not know is for others.
fn pass_on(inner: &Inner, event: &SseEvent, data: Value) {
    let Ok(frame) = serde_json::from_value::<Frame>(data) else {
        return;
    };
    let mut places = inner.places();
    if places.wants(&frame.session_id, &event.id) {
        let here = inner.sink.frame(&frame);
        places.note(&event.id, here);
    }
}
