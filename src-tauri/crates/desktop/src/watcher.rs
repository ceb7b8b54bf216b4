//! The tasks that keep the projection and the list of sessions true.
//!
//! Guarantees: text that streams makes no work here (RS-11); what waits is done once; reading the
//! list never holds up the projection.

use std::sync::Arc;

use holdfast_api::host::Selector;
use holdfast_controller::hub::{Outgoing, Reader};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::desktop::Inner;

/// What of a frame decides.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Head {
    kind: String,
    session_id: String,
}

/// What a batch asks for.
#[derive(Debug, Default)]
struct Work {
    states: bool,
    rows: bool,
    /// Sessions whose title, mode or model may have changed.
    settings: Vec<String>,
}

/// Starts both tasks.
pub(crate) fn start(inner: &Arc<Inner>, stopped: &CancellationToken) {
    let reader = inner.hub.reader(true, None, None);
    tokio::spawn({
        let (inner, stopped) = (Arc::clone(inner), stopped.clone());
        async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                () = watch(&inner, reader) => {}
            }
        }
    });
    tokio::spawn({
        let (inner, stopped) = (Arc::clone(inner), stopped.clone());
        async move {
            tokio::select! {
                () = stopped.cancelled() => {}
                () = list(&inner) => {}
            }
        }
    });
}

async fn watch(inner: &Arc<Inner>, mut reader: Reader) {
    loop {
        let work = tokio::select! {
            batch = reader.next() => Work::of(&batch),
            () = inner.dirty.notified() => Work { states: true, ..Work::default() },
        };
        if work.rows {
            inner.rows_changed.notify_one();
        }
        for session_id in work.settings {
            tokio::spawn(learn(Arc::clone(inner), session_id));
        }
        if work.states {
            inner.refreshed();
        }
    }
}

async fn list(inner: &Inner) {
    let mut read = inner.catalogue.read_all(&*inner.host).await;
    loop {
        if let Err(error) = read {
            tracing::warn!(code = %error.code, "the list of sessions could not be read");
        }
        inner.dirty.notify_one();
        inner.rows_changed.notified().await;
        read = inner.catalogue.read_latest(&*inner.host).await;
    }
}

/// Asks a session that tabs show for its title, mode and model.
async fn learn(inner: Arc<Inner>, session_id: String) {
    let shown = inner
        .shelf
        .read(|remembered| remembered.tab_of("", &session_id).is_some());
    if !shown {
        return;
    }
    // A session that can't answer keeps what is known of it.
    let Ok(status) = inner.host.status(&Selector::of(&session_id)).await else {
        return;
    };
    inner.shelf.change(|remembered| {
        for tab in &mut remembered.tabs {
            if tab.shows("", &session_id) {
                tab.learn(&status);
            }
        }
    });
    if let Err(error) = inner.shelf.save().await {
        tracing::warn!(code = error.code(), "{error}");
    }
    inner.dirty.notify_one();
}

impl Work {
    fn of(batch: &[Outgoing]) -> Self {
        let mut work = Self::default();
        for frame in batch {
            let head: Head = serde_json::from_str(&frame.data).unwrap_or_default();
            match head.kind.as_str() {
                "runtime_state" => work.states = true,
                "message" | "turn_done" => work.rows = true,
                "session_changed" => {
                    work.states = true;
                    work.rows = true;
                    work.settings.push(head.session_id);
                }
                "gap" => {
                    work.states = true;
                    work.rows = true;
                }
                _ => {}
            }
        }
        work
    }
}
