//! Reading the states of all sessions of a host: one request for any number of tabs (RS-33).
//!
//! Guarantees: reads in flight are shared; a host without the list is asked for each bound session
//! instead, until the connection is another one (RS-34); doubts that come during a read lead to one
//! more.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures_util::FutureExt;
use holdfast_domain::runtime::observed::{Observed, snapshot_of, status_of};
use holdfast_domain::runtime::remote::{ReadAnswer, ReadBegun};
use holdfast_domain::runtime::snapshot::RuntimeState;
use serde_json::Value;

use crate::client::Limits;
use crate::connection::{Inner, Verification};
use crate::error::RemoteError;

/// Between reads that frames asked for: a host that contradicts itself is not asked without end.
const BREATH: Duration = Duration::from_millis(250);

/// Reads whenever something asks for it.
pub(crate) async fn run(inner: &Arc<Inner>) {
    loop {
        inner.doubt.notified().await;
        shared(inner).await;
        tokio::time::sleep(BREATH).await;
    }
}

/// RS-25: the read that is on its way, or a new one.
pub(crate) async fn shared(inner: &Arc<Inner>) -> bool {
    let reading: Verification = {
        let mut reading = inner.reading.lock().unwrap_or_else(PoisonError::into_inner);
        match &*reading {
            Some(reading) if reading.peek().is_none() => reading.clone(),
            Some(_) | None => {
                let owned = Arc::clone(inner);
                let fresh = async move { read(&owned).await }.boxed().shared();
                *reading = Some(fresh.clone());
                fresh
            }
        }
    };
    reading.await
}

async fn read(inner: &Inner) -> bool {
    if !inner.is_connected() {
        return false;
    }
    let begun = inner.sessions().begin_read();
    let generation = inner.sessions().generation();
    let listed = {
        let without = inner.without_list.lock();
        *without.unwrap_or_else(PoisonError::into_inner) != Some(generation)
    };
    if listed {
        match list(inner).await {
            Err(RemoteError::Unsupported) => {
                *inner
                    .without_list
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = Some(generation);
                one_by_one(inner, begun).await;
            }
            answer => settle(inner, begun, &answered(answer)),
        }
    } else {
        one_by_one(inner, begun).await;
    }
    inner.sink.changed();
    inner.sessions().is_synced()
}

fn settle(inner: &Inner, begun: ReadBegun, answer: &ReadAnswer) {
    let (again, counters) = {
        let mut sessions = inner.sessions();
        (sessions.finish_read(begun, answer), sessions.counters())
    };
    tracing::debug!(
        source = "read",
        stale = counters.stale,
        conflicts = counters.conflicts,
        failures = counters.failures,
        again,
        "states of another host"
    );
    if again {
        inner.doubt.notify_one();
    }
}

fn answered(answer: Result<Vec<(String, Option<RuntimeState>)>, RemoteError>) -> ReadAnswer {
    match answer {
        Ok(rows) => ReadAnswer::List(rows),
        Err(error) => {
            tracing::info!(code = error.code(), "a host's states could not be read");
            match error {
                RemoteError::Garbled(_) => ReadAnswer::Garbled,
                _ => ReadAnswer::Failed,
            }
        }
    }
}

async fn list(inner: &Inner) -> Result<Vec<(String, Option<RuntimeState>)>, RemoteError> {
    let none: [(&str, &str); 0] = [];
    let reply: Value = inner
        .client()?
        .get(&["runtime-states"], &none, Limits::VERIFICATION)
        .await?;
    let garbled = || RemoteError::Garbled("it is no list of states".to_owned());
    reply["sessions"]
        .as_array()
        .ok_or_else(garbled)?
        .iter()
        .map(|row| {
            let path = row["sessionPath"].as_str().ok_or_else(garbled)?;
            Ok((path.to_owned(), snapshot_of(&row["state"]).ok()))
        })
        .collect()
}

/// RS-34: what an older host says of each session that a tab shows.
async fn one_by_one(inner: &Inner, begun: ReadBegun) {
    let bound = inner.sessions().bound();
    for path in bound {
        let answer = match status(inner, &path).await {
            Ok(observed) => ReadAnswer::One(path, observed),
            Err(RemoteError::Garbled(_)) => ReadAnswer::Garbled,
            Err(_) => ReadAnswer::Failed,
        };
        // A host that does not answer is not asked for the others: nothing of it is confirmed.
        let is_over = answer == ReadAnswer::Failed;
        settle(inner, begun, &answer);
        if is_over {
            return;
        }
    }
}

async fn status(inner: &Inner, path: &str) -> Result<Observed, RemoteError> {
    let id = path.strip_prefix("session-id:").unwrap_or(path);
    let reply: Value = inner
        .client()?
        .get(&["status"], &[("session", id)], Limits::VERIFICATION)
        .await?;
    let told = reply["sessionPath"].as_str();
    if told.is_some_and(|told| told != path) {
        return Err(RemoteError::Garbled(
            "it is about another session".to_owned(),
        ));
    }
    status_of(&reply).map_err(|error| RemoteError::Garbled(error.to_string()))
}
