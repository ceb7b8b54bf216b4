//! The records of the queue (RS-16). What runs of it has no record of its own: that is the item's
//! `user_message`.

use serde::{Deserialize, Serialize};

/// What a person wants of a message that can't begin its turn at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum Intent {
    /// A turn of its own, behind what waits.
    #[default]
    Followup,
    /// Before all that waits, and into the turn that runs if its model is asked once more.
    Steer,
}

/// A message waits. A second record with its id or its key changes nothing.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InboxQueued {
    /// Id of the item, and of the turn that it begins.
    pub item_id: String,
    /// The client's key, one namespace with submission ids.
    pub key: String,
    /// The message.
    pub text: String,
    /// Where it goes.
    pub intent: Intent,
}

/// An item says something else, or goes elsewhere; absent fields stay.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InboxEdited {
    /// The item.
    pub item_id: String,
    /// The message from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// `steer` brings it before all others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intent: Option<Intent>,
}

/// An item has another place.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InboxMoved {
    /// The item.
    pub item_id: String,
    /// Its place from now on, from 1; the last one where there are fewer.
    pub position: u64,
}

/// An item is given up. Its key stays taken.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InboxDeleted {
    /// The item.
    pub item_id: String,
}

/// A message whose turn never began waits again, before all others, and is not in the transcript
/// any more. Its turn has ended as `interrupted`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InboxReturned {
    /// The turn, and from now on the item.
    pub turn_id: String,
}

/// Nothing that waits now runs until the queue is resumed, and nothing of what comes behind it but
/// what a person wants at once.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InboxPaused {
    /// A host found the queue at its start.
    pub recovered: bool,
    /// `person`, `host_restarted`, `stopped` or `turn_failed`.
    pub reason: String,
}

impl InboxPaused {
    /// `reason` of a pause that a person asked for. It alone outlasts the last item.
    pub const BY_PERSON: &'static str = "person";
}

/// The queue runs again.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct InboxResumed {
    /// Who asked for it, such as `person`.
    pub reason: String,
}
