//! The durable queue of a session (RS-16).
//!
//! Guarantees: what was answered as accepted survives a kill; a key has one message for ever, whether
//! it was submitted or queued.

pub use holdfast_domain::transcript::record::Intent;
use serde::{Deserialize, Serialize};

/// `GET /inbox`: what waits, in the order in which it will run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct InboxView {
    /// Grows with each change; goes on across restarts.
    #[specta(type = f64)]
    pub revision: u64,
    /// Nothing of it runs until it is resumed.
    pub paused: bool,
    /// It is paused since a host found it at its start.
    pub recovered: bool,
    /// Why it is paused: `person`, `host_restarted`, `stopped`, `turn_failed`, `storage_failed`;
    /// empty while it is not.
    pub reason: String,
    /// What waits.
    pub items: Vec<InboxItem>,
    /// How many may wait at once.
    #[specta(type = f64)]
    pub capacity: u64,
}

/// A message that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct InboxItem {
    /// Its id; the turn that it begins has the same.
    pub item_id: String,
    /// The message as it stands.
    pub input: String,
    /// What the person wants of it.
    pub intent: Intent,
    /// Its place, from 1.
    #[specta(type = f64)]
    pub position: u64,
    /// Unix milliseconds at which it was accepted.
    #[specta(type = f64)]
    pub queued_at: u64,
    /// The client's key; empty for a submitted message that had none.
    pub idempotency_key: String,
    /// It was accepted as a turn's message, and the program ended before that turn began.
    pub recovered: bool,
}

/// `POST /inbox/items`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Enqueue {
    /// The message.
    pub input: String,
    /// A turn of its own (without it), or as soon as possible.
    #[serde(default)]
    pub intent: Intent,
    /// The client's key; the same key again is the same message.
    pub idempotency_key: String,
}

/// What became of a message at its acceptance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum Disposition {
    /// It waits.
    QueuedFollowup,
    /// The key was known already; nothing new was stored.
    IdempotentHit,
    /// Nothing was in its way: its turn began.
    Started,
}

/// Reply to an enqueue: durable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct Enqueued {
    /// The item; its turn has the same id.
    pub item_id: String,
    /// What became of it.
    pub disposition: Disposition,
    /// Its place, from 1; 0 for what does not wait.
    #[specta(type = f64)]
    pub position: u64,
}

/// `PATCH /inbox/items/{id}`; absent fields stay.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(default, deny_unknown_fields)]
pub struct EditItem {
    /// The message from now on.
    pub input: Option<String>,
    /// `steer` has it sent as soon as possible, over a pause too.
    pub intent: Option<Intent>,
}

/// `POST /inbox/move`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MoveItem {
    /// The item.
    pub item_id: String,
    /// Its place from now on, from 1; the last one where there are fewer.
    #[specta(type = f64)]
    pub position: u64,
}

/// Where the message of a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptState {
    /// It waits.
    Queued,
    /// Its turn runs.
    Running,
    /// Its turn has ended, however.
    Done,
    /// A person gave it up.
    Deleted,
}

/// `GET /inbox/receipt?key`: what became of the message of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase")]
pub struct InboxReceipt {
    /// The key.
    pub key: String,
    /// The item; of a submitted message, its turn.
    pub item_id: String,
    /// What became of it at its acceptance.
    pub disposition: Disposition,
    /// Where it is now.
    pub state: ReceiptState,
    /// The turn that has it; absent while it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<String>,
}

/// A message in a tab that may have to wait.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TabEnqueue {
    /// Id of the tab.
    pub tab_id: String,
    /// The message.
    pub input: String,
    /// What the person wants of it.
    pub intent: Intent,
    /// The client's key, one namespace with those of `submit`.
    pub idempotency_key: String,
}

/// A key of a tab's session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TabKey {
    /// Id of the tab.
    pub tab_id: String,
    /// The key.
    pub key: String,
}

/// An item of a tab's queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TabItem {
    /// Id of the tab.
    pub tab_id: String,
    /// The item.
    pub item_id: String,
}

/// A change of an item in a tab; what is `null` stays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TabEditItem {
    /// Id of the tab.
    pub tab_id: String,
    /// The item.
    pub item_id: String,
    /// The message from now on.
    pub input: Option<String>,
    /// `steer` has it sent as soon as possible, over a pause too.
    pub intent: Option<Intent>,
}

/// Another place for an item in a tab.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TabMoveItem {
    /// Id of the tab.
    pub tab_id: String,
    /// The item.
    pub item_id: String,
    /// Its place from now on, from 1.
    #[specta(type = f64)]
    pub position: u64,
}
