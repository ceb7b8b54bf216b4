//! What a message of a person makes of a session, and how one whose turn never began goes back into
//! the queue (RS-16).

use super::{Item, Session, Turn};
use crate::transcript::inbox::QueuedItem;
use crate::transcript::record::{Entry, InboxReturned, Intent, TurnEnded, UserMessage};

impl Session {
    /// The turn whose message was accepted and that never began, if its message is the last thing
    /// that was said: place of the message in the log, and the turn.
    pub fn waiting_message(&self) -> Option<(u64, &str)> {
        let turn = self.open_turn().filter(|turn| !turn.started)?;
        match self.items.last()? {
            Item::User { seq, turn_id, .. } if *turn_id == turn.id => Some((*seq, turn_id)),
            Item::User { .. }
            | Item::Note { .. }
            | Item::Assistant { .. }
            | Item::Retry { .. }
            | Item::Compacted { .. }
            | Item::Rewound { .. } => None,
        }
    }

    pub(super) fn said(&mut self, entry: &Entry, message: &UserMessage) {
        self.inbox.said(entry.seq, message);
        // What comes into a turn while it runs leaves the turn as it is.
        if message.steer_item.is_empty() {
            self.prompt_closed();
            self.turn = Some(Turn {
                id: message.turn_id.clone(),
                started: false,
                continuation: false,
                started_seq: 0,
                ended: None,
                steps: 0,
            });
        }
        self.items.push(Item::User {
            seq: entry.seq,
            at: entry.at,
            turn_id: message.turn_id.clone(),
            text: message.text.clone(),
        });
    }

    pub(super) fn returned(&mut self, entry: &Entry, returned: &InboxReturned) {
        if self
            .waiting_message()
            .is_none_or(|(_, turn_id)| turn_id != returned.turn_id)
        {
            return;
        }
        let Some(Item::User {
            at, turn_id, text, ..
        }) = self.items.pop()
        else {
            return;
        };
        if let Some(turn) = self.turn_mut(&turn_id) {
            turn.ended = Some(TurnEnded {
                turn_id: turn_id.clone(),
                status: "interrupted".to_owned(),
                code: "host_restarted".to_owned(),
                message: "the program ended before this turn began; the message waits in the queue"
                    .to_owned(),
            });
        }
        let item = QueuedItem {
            key: self.inbox.key_of(&turn_id).unwrap_or_default().to_owned(),
            id: turn_id,
            text,
            intent: Intent::Followup,
            at,
            returned: true,
        };
        self.inbox.returned(entry.seq, item);
    }
}
