//! One reader's place in the stream: what it gets next.
//!
//! Guarantee: frames in their order, and behind them the states that changed; at most 256 frames at
//! once. What is only there to be written as JSON is written after the lock was let go.

use std::sync::Arc;

use holdfast_api::event::{Event, Frame};
use holdfast_api::session::session_path;

use super::parts::{Bell, Ear, Lock, Parts};
use super::ring::Inner;
use super::{Outgoing, Stream, json_of};

/// Frames handed out at once.
const BATCH_FRAMES: usize = 256;

/// One reader's place in the stream.
#[derive(Debug)]
pub struct Reader<P: Parts> {
    hub: Arc<Stream<P>>,
    ear: <P::Bell as Bell>::Ear,
    place: Place,
}

#[derive(Debug)]
struct Place {
    position: u64,
    stamp: u64,
    /// The latest stamp when the reader came.
    born: u64,
    all: bool,
    session: Option<String>,
    gap: bool,
}

/// What was found, before it is JSON.
#[derive(Debug, Default)]
struct Found {
    /// The position behind which nothing is known.
    gap: Option<u64>,
    kept: Vec<(u64, Arc<str>)>,
    states: Vec<Frame>,
}

impl<P: Parts> Reader<P> {
    pub(super) fn new(
        hub: &Arc<Stream<P>>,
        all: bool,
        session: Option<String>,
        last_event_id: Option<&str>,
    ) -> Self {
        let ear = hub.bell.ear();
        let (latest, born, oldest) = hub
            .inner
            .with(|inner| (inner.next, inner.stamp, inner.oldest()));
        let resumed = last_event_id.map(|id| {
            id.strip_prefix(&hub.epoch)
                .and_then(|rest| rest.strip_prefix('.'))
                .and_then(|n| n.parse::<u64>().ok())
                .filter(|n| *n <= latest && *n + 1 >= oldest)
        });
        let (position, gap) = match resumed {
            None => (latest, false),
            Some(Some(position)) => (position, false),
            Some(None) => (latest, true),
        };
        Self {
            hub: Arc::clone(hub),
            ear,
            place: Place {
                position,
                stamp: 0,
                born,
                all,
                session,
                gap,
            },
        }
    }

    /// Waits until there is something for this reader; at most 256 frames at once.
    pub async fn next(&mut self) -> Vec<Outgoing> {
        loop {
            // Before the look: a ring during it is heard by the wait.
            self.ear.forget();
            let batch = self.take();
            if !batch.is_empty() {
                return batch;
            }
            // The hub outlives its readers, so the bell can't be gone.
            if !self.ear.rung().await {
                return Vec::new();
            }
        }
    }

    fn take(&mut self) -> Vec<Outgoing> {
        let place = &mut self.place;
        let found = self.hub.inner.with(|inner| place.find(inner));
        let epoch = &self.hub.epoch;
        let gap = found.gap.and_then(|position| {
            let frame = Frame {
                session_id: String::new(),
                turn_id: String::new(),
                seq: None,
                event: Event::Gap {},
            };
            Some((position, json_of(&frame)?.into()))
        });
        let numbered = gap.into_iter().chain(found.kept).map(|(n, data)| Outgoing {
            id: Some(format!("{epoch}.{n}")),
            data,
        });
        let states = found.states.iter().filter_map(|frame| {
            Some(Outgoing {
                id: None,
                data: json_of(frame)?.into(),
            })
        });
        numbered.chain(states).collect()
    }
}

impl Place {
    fn find(&mut self, inner: &Inner) -> Found {
        let mut found = Found::default();
        let oldest = inner.oldest();
        if self.position + 1 < oldest {
            self.gap = true;
            self.position = inner.next;
        }
        if self.gap {
            self.gap = false;
            self.stamp = 0;
            found.gap = Some(self.position);
        }
        let skip = usize::try_from((self.position + 1).saturating_sub(oldest)).unwrap_or(0);
        for kept in inner.ring.iter().skip(skip) {
            if found.kept.len() >= BATCH_FRAMES {
                return found;
            }
            self.position = kept.n;
            if self.wants(&kept.session_id, kept.current) {
                found.kept.push((kept.n, Arc::clone(&kept.data)));
            }
        }
        for (session_id, slot) in &inner.states {
            let is_current = slot.ended_as_current || *session_id == inner.current;
            let is_news = slot.stamp > self.stamp && (slot.open || slot.stamp > self.born);
            if is_news && self.wants(session_id, is_current) {
                found.states.push(Frame {
                    session_id: session_id.clone(),
                    turn_id: slot.state.turn_id.clone(),
                    seq: None,
                    event: Event::RuntimeState {
                        session_path: session_path(session_id),
                        session_current: *session_id == inner.current,
                        runtime_state: slot.state.clone(),
                    },
                });
            }
        }
        self.stamp = inner.stamp;
        found
    }

    fn wants(&self, session_id: &str, is_current: bool) -> bool {
        if self.all || session_id.is_empty() {
            return true;
        }
        match &self.session {
            Some(wanted) => wanted == session_id,
            None => is_current,
        }
    }
}
