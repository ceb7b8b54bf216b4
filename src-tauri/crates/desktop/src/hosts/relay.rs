//! Where the frames of a host go: into the stream of all hosts, in our own numbers.
//!
//! Guarantee: a frame is passed on as it came; what it means for titles and lists is noted beside it
//! and done elsewhere, so that passing on never waits.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_api::event::{Event, Frame};
use holdfast_controller::hub::Hub;
use holdfast_remote::FrameSink;
use tokio::sync::Notify;

/// What frames of a host ask for.
#[derive(Debug, Default)]
pub(super) struct News {
    /// There is some.
    pub(super) rang: Notify,
    /// Sessions whose title, mode or model may have changed.
    settings: Mutex<BTreeSet<String>>,
}

impl News {
    /// The sessions to be asked; they are asked once.
    pub(super) fn take_settings(&self) -> BTreeSet<String> {
        let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut settings)
    }

    fn note(&self, frame: &Frame) {
        if matches!(frame.event, Event::SessionChanged { .. }) {
            let mut settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner);
            settings.insert(frame.session_id.clone());
        }
        let rows = matches!(
            frame.event,
            Event::Message { .. } | Event::TurnDone { .. } | Event::SessionChanged { .. }
        );
        if rows {
            self.rang.notify_one();
        }
    }
}

/// The sink of one host's connection.
pub(super) struct Relay {
    pub(super) hub: Arc<Hub>,
    pub(super) news: Arc<News>,
    /// The projection must be made anew.
    pub(super) dirty: Arc<Notify>,
}

impl FrameSink for Relay {
    fn frame(&self, frame: &Frame) -> u64 {
        self.news.note(frame);
        self.hub.publish(frame)
    }

    fn gap(&self, paths: &[String]) {
        for path in paths {
            self.hub.publish(&Frame {
                session_id: path.trim_start_matches("session-id:").to_owned(),
                turn_id: String::new(),
                seq: None,
                event: Event::Gap {},
            });
        }
        self.news.rang.notify_one();
    }

    fn changed(&self) {
        self.dirty.notify_one();
    }

    fn latest(&self) -> u64 {
        self.hub.latest()
    }

    fn id(&self, number: u64) -> String {
        self.hub.id(number)
    }
}
