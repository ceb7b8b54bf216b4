//! The events of the app: frames of all sessions in batches, changes of the projection, resyncs.
//!
//! Guarantees: each reader pulls at its own pace; frames keep their order; while text streams, a
//! batch goes out at most once in 16 ms, everything else at once; a reader that fell behind is told
//! to read everything again (RS-25).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::stream::{BoxStream, StreamExt};
use holdfast_api::desktop::{
    AppEvent, NumberedFrame, RemoteTab, Resync, RuntimeStateProjection, SessionFrames,
};
use holdfast_api::event::{Event, Frame};
use holdfast_controller::hub::{Outgoing, Reader};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::desktop::Inner;
use crate::hosts::Changes;

/// Between two batches while text streams: one frame of a screen.
const PACE: Duration = Duration::from_millis(16);

/// One reader of the app's events.
#[derive(Debug)]
pub struct Events {
    reader: Reader,
    /// Frames of other machines.
    relayed: Reader,
    hosts: watch::Receiver<Changes>,
    /// What of their connections was told.
    told: Changes,
    inner: Weak<Inner>,
    projection: watch::Receiver<RuntimeStateProjection>,
    recovery_version: Arc<AtomicU64>,
    waiting: VecDeque<AppEvent>,
    /// The next batch goes out no earlier.
    not_before: Instant,
}

impl Events {
    pub(crate) fn new(inner: &Arc<Inner>) -> Self {
        let first = inner.first_words.iter().map(|frame| NumberedFrame {
            id: String::new(),
            frame: frame.clone(),
        });
        let first: Vec<NumberedFrame> = first.collect();
        Self {
            reader: inner.hub.reader(true, None, None),
            relayed: inner.hosts.relay.reader(true, None, None),
            hosts: inner.hosts.changes(),
            told: inner.hosts.changes().borrow().clone(),
            inner: Arc::downgrade(inner),
            projection: inner.board.subscribe(),
            recovery_version: Arc::clone(&inner.recovery_version),
            waiting: (!first.is_empty())
                .then_some(AppEvent::SessionFrames(SessionFrames { frames: first }))
                .into_iter()
                .collect(),
            not_before: Instant::now(),
        }
    }

    /// Waits for the next event. Nothing is lost when the wait is given up.
    pub async fn next(&mut self) -> AppEvent {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return event;
            }
            let not_before = self.not_before;
            let (reader, relayed) = (&mut self.reader, &mut self.relayed);
            let batch = async {
                tokio::time::sleep_until(not_before).await;
                tokio::select! {
                    batch = reader.next() => batch,
                    batch = relayed.next() => batch,
                }
            };
            tokio::select! {
                changed = self.projection.changed() => {
                    if changed.is_err() {
                        // The app has ended, and with it its events.
                        std::future::pending::<()>().await;
                    }
                    let projection = self.projection.borrow_and_update().clone();
                    return AppEvent::RuntimeStateChanged(projection);
                }
                changed = self.hosts.changed() => {
                    if changed.is_err() {
                        std::future::pending::<()>().await;
                    }
                    self.connections();
                }
                batch = batch => self.sort(batch),
            }
        }
    }

    /// The same as a stream.
    pub fn into_stream(self) -> BoxStream<'static, AppEvent> {
        futures_util::stream::unfold(self, |mut events| async move {
            let event = events.next().await;
            Some((event, events))
        })
        .boxed()
    }

    /// RS-25: one event for each connection that changed.
    fn connections(&mut self) {
        let now = self.hosts.borrow_and_update().clone();
        let told = std::mem::replace(&mut self.told, now.clone());
        let Some(inner) = self.inner.upgrade() else {
            return;
        };
        for (host_id, count) in now {
            if told.get(&host_id) == Some(&count) {
                continue;
            }
            let tab_ids = inner.shelf.read(|remembered| {
                let tabs = remembered.tabs.iter();
                let own = tabs.filter(|tab| tab.host_id == host_id);
                own.map(|tab| tab.tab_id.clone()).collect()
            });
            let tab = RemoteTab { host_id, tab_ids };
            self.waiting.push_back(AppEvent::RemoteTabUpdated(tab));
        }
    }

    fn sort(&mut self, batch: Vec<Outgoing>) {
        let mut frames = Vec::new();
        let mut streaming = false;
        for Outgoing { id, data } in batch {
            let frame: Frame = match serde_json::from_str(&data) {
                Ok(frame) => frame,
                Err(error) => {
                    tracing::error!("a frame could not be read back: {error}");
                    self.resync();
                    continue;
                }
            };
            match &frame.event {
                // The projection is the one source of states (RS-21).
                Event::RuntimeState { .. } => continue,
                // One session's gap is its own affair.
                Event::Gap {} if !frame.session_id.is_empty() => {}
                Event::Gap {} => {
                    self.resync();
                    continue;
                }
                Event::Text { .. } | Event::Reasoning { .. } | Event::ToolProgress { .. } => {
                    streaming = true;
                }
                Event::TurnStarted { .. }
                | Event::Message { .. }
                | Event::Usage { .. }
                | Event::ToolDispatch { .. }
                | Event::ToolStarted { .. }
                | Event::ToolResult { .. }
                | Event::ApprovalRequest { .. }
                | Event::PromptAnswered { .. }
                | Event::InboxChanged { .. }
                | Event::JobChanged { .. }
                | Event::Retrying { .. }
                | Event::Notice { .. }
                | Event::TurnDone { .. }
                | Event::Rewound { .. }
                | Event::SessionChanged { .. } => {}
            }
            frames.push(NumberedFrame {
                id: id.unwrap_or_default(),
                frame,
            });
        }
        if streaming {
            self.not_before = Instant::now() + PACE;
        }
        if !frames.is_empty() {
            self.waiting
                .push_back(AppEvent::SessionFrames(SessionFrames { frames }));
        }
    }

    fn resync(&mut self) {
        let recovery_version = self.recovery_version.fetch_add(1, Ordering::Relaxed) + 1;
        self.waiting
            .push_back(AppEvent::Resync(Resync { recovery_version }));
    }
}
