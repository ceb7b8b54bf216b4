//! The queue of a session: messages that wait for their turn, and what became of every key (RS-16).
//!
//! Guarantees: a key has one message for ever, whether it was submitted or queued; an item leaves
//! the queue by its `user_message` or by a person's word and by nothing else; every record about
//! something unknown changes nothing.

use std::collections::HashMap;

use super::record::{
    InboxDeleted, InboxEdited, InboxMoved, InboxPaused, InboxQueued, Intent, UserMessage,
};
use crate::canonical::sha256_hex;

/// Items that may wait at once.
pub const CAPACITY: usize = 64;

/// A message that waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedItem {
    /// Its id, and that of the turn that it begins.
    pub id: String,
    /// The client's key; empty for a submitted message that had none.
    pub key: String,
    /// The message as it stands.
    pub text: String,
    /// What the person wants of it.
    pub intent: Intent,
    /// Unix milliseconds at which it was accepted.
    pub at: u64,
    /// It was accepted as a turn's message, and that turn never began.
    pub returned: bool,
}

/// Where the message of a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// It waits.
    Queued,
    /// It is the message of a turn, or part of one.
    Taken,
    /// A person gave it up.
    Deleted,
}

/// What is known of a key, as long as the log is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The item; of a submitted message, its turn.
    pub item_id: String,
    /// The turn that has the message; the one that it will begin while it waits.
    pub turn_id: String,
    /// SHA-256 (hex) of the text that came with the key. An edit does not change it.
    pub input_sha256: String,
    /// It was queued when it came.
    pub was_queued: bool,
    /// Where it is.
    pub place: Place,
}

impl Known {
    /// The key came with this very text.
    pub fn is_same_input(&self, text: &str) -> bool {
        self.input_sha256 == sha256_hex(text.as_bytes())
    }
}

/// The queue.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Inbox {
    items: Vec<QueuedItem>,
    paused: bool,
    by_person: bool,
    recovered: bool,
    reason: String,
    revision: u64,
    keys: HashMap<String, Known>,
}

impl Inbox {
    /// What waits, in the order in which it will run.
    pub fn items(&self) -> &[QueuedItem] {
        &self.items
    }

    /// An item that waits, and its place from 1.
    pub fn item(&self, id: &str) -> Option<(u64, &QueuedItem)> {
        let index = self.items.iter().position(|item| item.id == id)?;
        Some((index as u64 + 1, self.items.get(index)?))
    }

    /// Nothing of it runs until it is resumed.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// It is paused since a host found it at its start.
    pub fn is_recovered(&self) -> bool {
        self.recovered
    }

    /// Why it is paused; empty while it is not.
    pub fn pause_reason(&self) -> &str {
        &self.reason
    }

    /// Place in the log of the latest record that changed it; 0 before any.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The message of a key.
    pub fn known(&self, key: &str) -> Option<&Known> {
        self.keys.get(key)
    }

    /// What runs next. In a paused queue that is what a person wants at once in spite of the pause.
    pub fn next(&self) -> Option<&QueuedItem> {
        self.items
            .first()
            .filter(|item| !self.paused || item.intent == Intent::Steer)
    }

    /// What goes into a running turn when its model is asked once more.
    pub fn next_steer(&self) -> Option<&QueuedItem> {
        self.next().filter(|item| item.intent == Intent::Steer)
    }

    /// A host that opens the session must not go on with what it finds.
    pub fn needs_pause_after_restart(&self) -> bool {
        !(self.items.is_empty() || self.paused && self.recovered)
    }

    pub(super) fn queued(&mut self, seq: u64, at: u64, queued: &InboxQueued) {
        let is_known = self.items.iter().any(|item| item.id == queued.item_id)
            || self.keys.contains_key(&queued.key);
        if is_known || queued.item_id.is_empty() {
            return;
        }
        self.learn(&queued.key, || Known {
            item_id: queued.item_id.clone(),
            turn_id: queued.item_id.clone(),
            input_sha256: sha256_hex(queued.text.as_bytes()),
            was_queued: true,
            place: Place::Queued,
        });
        let item = QueuedItem {
            id: queued.item_id.clone(),
            key: queued.key.clone(),
            text: queued.text.clone(),
            intent: queued.intent,
            at,
            returned: false,
        };
        let index = match queued.intent {
            Intent::Followup => self.items.len(),
            Intent::Steer => self.behind_steers(),
        };
        self.items.insert(index, item);
        self.revision = seq;
    }

    pub(super) fn edited(&mut self, seq: u64, edited: &InboxEdited) {
        let Some(index) = self.index(&edited.item_id) else {
            return;
        };
        let mut item = self.items.remove(index);
        if let Some(text) = &edited.text {
            item.text.clone_from(text);
        }
        let index = match edited.intent {
            Some(Intent::Steer) if item.intent != Intent::Steer => self.behind_steers(),
            Some(Intent::Steer | Intent::Followup) | None => index,
        };
        item.intent = edited.intent.unwrap_or(item.intent);
        self.items.insert(index, item);
        self.revision = seq;
    }

    pub(super) fn moved(&mut self, seq: u64, moved: &InboxMoved) {
        let Some(index) = self.index(&moved.item_id) else {
            return;
        };
        let item = self.items.remove(index);
        let wanted = usize::try_from(moved.position.saturating_sub(1)).unwrap_or(usize::MAX);
        self.items.insert(wanted.min(self.items.len()), item);
        self.revision = seq;
    }

    pub(super) fn deleted(&mut self, seq: u64, deleted: &InboxDeleted) {
        if let Some(item) = self.take(seq, &deleted.item_id) {
            self.set_place(&item.key, Place::Deleted);
        }
    }

    pub(super) fn paused(&mut self, seq: u64, paused: &InboxPaused) {
        self.paused = true;
        // A pause means all that waits.
        for item in &mut self.items {
            item.intent = Intent::Followup;
        }
        self.by_person |= paused.reason == InboxPaused::BY_PERSON;
        self.recovered |= paused.recovered;
        self.reason.clone_from(&paused.reason);
        self.revision = seq;
    }

    pub(super) fn resumed(&mut self, seq: u64) {
        self.goes_on();
        self.revision = seq;
    }

    /// A message began its turn, or came into the turn that runs.
    pub(super) fn said(&mut self, seq: u64, message: &UserMessage) {
        let id = message.item_id();
        self.take(seq, id);
        self.learn(&message.submission_id, || Known {
            item_id: id.to_owned(),
            turn_id: String::new(),
            input_sha256: sha256_hex(message.text.as_bytes()),
            was_queued: false,
            place: Place::Taken,
        });
        if let Some(known) = self.keys.get_mut(&message.submission_id)
            && known.item_id == id
        {
            known.turn_id.clone_from(&message.turn_id);
            known.place = Place::Taken;
        }
    }

    /// The message of a turn that never began.
    pub(super) fn returned(&mut self, seq: u64, item: QueuedItem) {
        if self.index(&item.id).is_some() {
            return;
        }
        self.set_place(&item.key, Place::Queued);
        self.items.insert(0, item);
        self.revision = seq;
    }

    /// The key of an item or of a submitted message.
    pub(super) fn key_of(&self, item_id: &str) -> Option<&str> {
        self.keys
            .iter()
            .find(|(_, known)| known.item_id == item_id)
            .map(|(key, _)| key.as_str())
    }

    fn index(&self, id: &str) -> Option<usize> {
        self.items.iter().position(|item| item.id == id)
    }

    fn behind_steers(&self) -> usize {
        self.items
            .iter()
            .take_while(|item| item.intent == Intent::Steer)
            .count()
    }

    fn learn(&mut self, key: &str, known: impl FnOnce() -> Known) {
        if !key.is_empty() {
            self.keys.entry(key.to_owned()).or_insert_with(known);
        }
    }

    fn set_place(&mut self, key: &str, place: Place) {
        if let Some(known) = self.keys.get_mut(key) {
            known.place = place;
        }
    }

    fn take(&mut self, seq: u64, id: &str) -> Option<QueuedItem> {
        let index = self.index(id)?;
        let item = self.items.remove(index);
        self.revision = seq;
        if self.items.is_empty() {
            // What was found or had failed is dealt with. What a person paused stays so.
            if self.by_person {
                self.recovered = false;
                InboxPaused::BY_PERSON.clone_into(&mut self.reason);
            } else {
                self.goes_on();
            }
        }
        Some(item)
    }

    fn goes_on(&mut self) {
        self.paused = false;
        self.by_person = false;
        self.recovered = false;
        self.reason.clear();
    }
}
