//! What a compaction and a rewind make of a session.
//!
//! Guarantees: neither forgets a receipt, a result or a person's word, and no call id becomes free
//! again (TR-06, TR-22); what a model was told in a part that is taken back is told again where the
//! rest needs it; a record that fits nothing changes nothing.

use std::collections::BTreeSet;

use super::{Item, Session};
use crate::recovery::attempt::Attempt;
use crate::recovery::lifecycle::AttemptState;
use crate::transcript::record::{Compacted, Entry, PromptAsked, Rewound, TurnEnded};

/// What a model's view has of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// The call, and its one result once it has one.
    InView,
    /// The call was never in the transcript.
    Never,
    /// The call is no longer in it. What was recorded behind this place was not seen.
    UpTo(u64),
}

/// A message that a rewind takes back.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept<'a> {
    /// The message's text.
    pub text: &'a str,
    /// Attempts from there on that may have had an effect. The rewind undoes none of them.
    pub effects: Vec<&'a Attempt>,
}

impl Session {
    /// The summary that a model gets in place of what was compacted.
    pub fn summary(&self) -> Option<&str> {
        self.items.iter().rev().find_map(|item| match item {
            Item::Compacted { summary, .. } => Some(summary.as_str()),
            Item::User { .. }
            | Item::Note { .. }
            | Item::Assistant { .. }
            | Item::Retry { .. }
            | Item::Rewound { .. } => None,
        })
    }

    /// What a model's view has of a call.
    pub fn sight(&self, call_id: &str) -> Sight {
        match self.call(call_id) {
            None => Sight::Never,
            Some(call) => match call.rewound {
                Some(seen) => Sight::UpTo(seen),
                None if call.seq <= self.compacted_upto => Sight::UpTo(self.compacted_upto),
                None => Sight::InView,
            },
        }
    }

    /// What a rewind to that message takes back and what stays; `None` when no message of a person
    /// in the transcript is at that place.
    pub fn kept_by_rewind(&self, to_seq: u64) -> Option<Kept<'_>> {
        let text = self.items.iter().find_map(|item| match item {
            Item::User { seq, text, .. } if *seq == to_seq => Some(text.as_str()),
            Item::User { .. }
            | Item::Note { .. }
            | Item::Assistant { .. }
            | Item::Retry { .. }
            | Item::Compacted { .. }
            | Item::Rewound { .. } => None,
        })?;
        Some(Kept {
            text,
            effects: self.effects(to_seq, self.last_seq),
        })
    }

    /// Attempts with their receipt in that part of the log that may have had an effect.
    pub fn effects(&self, from_seq: u64, to_seq: u64) -> Vec<&Attempt> {
        self.attempts()
            .filter(|attempt| (from_seq..=to_seq).contains(&attempt.receipt_seq))
            .filter(|attempt| !attempt.read_only && may_have_happened(attempt))
            .collect()
    }

    pub(super) fn compacted(&mut self, entry: &Entry, compacted: &Compacted) {
        self.spent(compacted.usage);
        if compacted.summary.trim().is_empty() {
            return;
        }
        // A summary can't speak for what comes after it.
        let upto_seq = compacted.upto_seq.min(entry.seq);
        self.compacted_upto = upto_seq;
        self.items.push(Item::Compacted {
            seq: entry.seq,
            at: entry.at,
            upto_seq,
            summary: compacted.summary.clone(),
        });
    }

    pub(super) fn rewound(&mut self, entry: &Entry, rewound: &Rewound) {
        let meant = |item: &Item| matches!(item, Item::User { seq, .. } if *seq == rewound.to_seq);
        let Some(place) = self.items.iter().position(meant) else {
            return;
        };
        // What is before it was sent with each later request.
        let seen = self.items.iter().rev().find_map(|item| match item {
            Item::Assistant { seq, .. } | Item::Compacted { seq, .. } => Some(*seq),
            Item::User { .. } | Item::Note { .. } | Item::Retry { .. } | Item::Rewound { .. } => {
                None
            }
        });
        let cut = self.items.split_off(place);
        let mut told = BTreeSet::new();
        for item in &cut {
            match item {
                Item::Assistant { seq, message, .. } => {
                    for proposed in &message.calls {
                        if let Some(call) = self.calls.get_mut(&proposed.call_id)
                            && call.seq == *seq
                        {
                            call.rewound.get_or_insert(seen.unwrap_or_default());
                        }
                    }
                }
                Item::Note { attempts, .. } => told.extend(attempts.iter().cloned()),
                Item::User { turn_id, .. } => self.turn_taken_back(turn_id, &rewound.reason),
                Item::Retry { call_id, .. } => {
                    if let Some(call) = self.calls.get_mut(call_id) {
                        call.rewound.get_or_insert(seen.unwrap_or_default());
                    }
                }
                Item::Compacted { .. } | Item::Rewound { .. } => {}
            }
        }
        // What a note said of a call that stays is unsaid now.
        for id in told {
            let stays = self
                .attempt(&id)
                .and_then(|attempt| self.call(&attempt.identity.call_id))
                .is_none_or(|call| call.rewound.is_none());
            if stays && let Some(attempt) = self.attempts.get_mut(&id) {
                attempt.told = false;
            }
        }
        let is_gone = |asked: &PromptAsked| {
            self.calls
                .get(&asked.call_id)
                .is_some_and(|call| call.rewound.is_some())
        };
        if self.prompt.as_ref().is_some_and(is_gone) || self.approved.as_ref().is_some_and(is_gone)
        {
            self.prompt_closed();
        }
        self.compacted_upto = self.items.iter().rev().find_map(upto).unwrap_or_default();
        self.items.push(Item::Rewound {
            seq: entry.seq,
            at: entry.at,
            to_seq: rewound.to_seq,
            reason: rewound.reason.clone(),
        });
    }

    /// A turn can't go on without its message.
    fn turn_taken_back(&mut self, turn_id: &str, reason: &str) {
        if let Some(turn) = self.turn.as_mut().filter(|turn| turn.id == turn_id) {
            turn.ended.get_or_insert_with(|| TurnEnded {
                turn_id: turn_id.to_owned(),
                status: "cancelled".to_owned(),
                code: "rewound".to_owned(),
                message: reason.to_owned(),
            });
        }
    }
}

fn upto(item: &Item) -> Option<u64> {
    match item {
        Item::Compacted { upto_seq, .. } => Some(*upto_seq),
        Item::User { .. }
        | Item::Note { .. }
        | Item::Assistant { .. }
        | Item::Retry { .. }
        | Item::Rewound { .. } => None,
    }
}

/// It was started, and nothing proves that it did not happen.
fn may_have_happened(attempt: &Attempt) -> bool {
    match attempt.state {
        AttemptState::Started
        | AttemptState::Running
        | AttemptState::Completed
        | AttemptState::Failed
        | AttemptState::Unknown
        | AttemptState::UserConfirmed
        | AttemptState::UserDismissed
        | AttemptState::Interrupted => true,
        AttemptState::Pending | AttemptState::Cancelled | AttemptState::NotStarted => false,
    }
}
