//! A session as the fold of its records.
//!
//! Guarantee: all that is shown of a session is read off this fold, so that no two views can tell
//! different stories. How a record changes it: `fold.rs`.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::inbox::Inbox;
use super::record::{
    AssistantMessage, Entry, FileCheckpoint, PromptAsked, ProposedCall, ResultSource,
    SessionCreated, ToolResult, TurnEnded, Usage,
};
use crate::recovery::attempt::{Attempt, EFFECT_UNKNOWN, Resolution};
use crate::recovery::barrier::InFlight;
use crate::recovery::lifecycle::AttemptState;

mod fold;
mod history;
mod inbox;

pub use history::{Kept, Sight};

/// A proposed call and what became of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// As the model proposed it.
    pub proposed: ProposedCall,
    /// Its turn.
    pub turn_id: String,
    /// Model request within the turn.
    pub step: u32,
    /// Place of the proposal in the log.
    pub seq: u64,
    /// Its attempt, once it has one. The latest, when there are several.
    pub attempt_id: Option<String>,
    /// An ordinary refusal: code and text.
    pub refusal: Option<(String, String)>,
    /// What a model was told in place of a missing result.
    pub synthetic: Option<String>,
    /// The call was taken back: place of the last thing that a model had said by then (TR-22).
    pub rewound: Option<u64>,
}

/// An element of the transcript, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A person's message.
    User {
        /// Place in the log.
        seq: u64,
        /// Unix milliseconds.
        at: u64,
        /// Its turn.
        turn_id: String,
        /// Text.
        text: String,
    },
    /// A host note (TR-15).
    Note {
        /// Place in the log.
        seq: u64,
        /// Unix milliseconds.
        at: u64,
        /// Text as sent.
        text: String,
        /// Attempts that it tells about.
        attempts: Vec<String>,
    },
    /// The model's message; its calls follow it.
    Assistant {
        /// Place in the log.
        seq: u64,
        /// Unix milliseconds.
        at: u64,
        /// The message.
        message: AssistantMessage,
    },
    /// A call that a person had run again (TR-36). No model sees it.
    Retry {
        /// Place in the log.
        seq: u64,
        /// Unix milliseconds.
        at: u64,
        /// Our id of the repeated call.
        call_id: String,
    },
    /// For a model, this takes the place of what is before it.
    Compacted {
        /// Place in the log.
        seq: u64,
        /// Unix milliseconds.
        at: u64,
        /// Last record that the summary speaks for.
        upto_seq: u64,
        /// The summary.
        summary: String,
    },
    /// What stood here was taken back. No model sees this.
    Rewound {
        /// Place in the log.
        seq: u64,
        /// Unix milliseconds.
        at: u64,
        /// Record of the message that was taken back with all that followed.
        to_seq: u64,
        /// Who asked for it.
        reason: String,
    },
}

impl Item {
    /// Place in the log.
    pub fn seq(&self) -> u64 {
        match self {
            Self::User { seq, .. }
            | Self::Note { seq, .. }
            | Self::Assistant { seq, .. }
            | Self::Retry { seq, .. }
            | Self::Compacted { seq, .. }
            | Self::Rewound { seq, .. } => *seq,
        }
    }

    /// The model's message, if it is one.
    pub fn assistant(&self) -> Option<&AssistantMessage> {
        match self {
            Self::Assistant { message, .. } => Some(message),
            Self::User { .. }
            | Self::Note { .. }
            | Self::Retry { .. }
            | Self::Compacted { .. }
            | Self::Rewound { .. } => None,
        }
    }
}

/// A turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// Its id.
    pub id: String,
    /// The loop began; else the message was accepted and nothing more.
    pub started: bool,
    /// It goes on after a restart (TR-51).
    pub continuation: bool,
    /// Place in the log at which its loop began for the last time; 0 before.
    pub started_seq: u64,
    /// Its end.
    pub ended: Option<TurnEnded>,
    /// Model requests answered so far.
    pub steps: u32,
}

/// What a person allowed for the rest of the session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Grant {
    /// Tool name.
    pub tool: String,
    /// Digest of the arguments where exactly this call is allowed, or [`Grant::WHOLE_TOOL`].
    pub key: String,
}

impl Grant {
    /// Every call of the tool is allowed.
    pub const WHOLE_TOOL: &'static str = "*";
}

/// The fold of a session's records.
#[derive(Debug, Clone, Default)]
pub struct Session {
    /// The header.
    pub header: SessionCreated,
    /// Present title.
    pub title: String,
    /// Present model.
    pub model: String,
    /// Present permission mode.
    pub mode: String,
    /// Archived by a person.
    pub archived: bool,
    /// Unix milliseconds of the first record.
    pub created_at: u64,
    /// Unix milliseconds of the last record.
    pub updated_at: u64,
    /// Place of the last record.
    pub last_seq: u64,
    /// The system prompt, once sent.
    pub system_prompt: Option<String>,
    /// Transcript in order.
    pub items: Vec<Item>,
    /// The latest turn.
    pub turn: Option<Turn>,
    /// The question that waits for a person.
    pub prompt: Option<PromptAsked>,
    /// The question that a person answered with yes, until its call is started or refused (TR-51).
    pub approved: Option<PromptAsked>,
    /// Ids of prompts that were answered or closed.
    pub answered: BTreeSet<String>,
    /// Allowed for the rest of the session.
    pub grants: BTreeSet<Grant>,
    /// Tokens of the session so far.
    pub usage: Usage,
    /// Calls refused by the barrier (TR-28).
    pub blocked: u64,
    /// TR-17: files by their resolved path, with their first writer in this session.
    pub file_checkpoints: BTreeMap<String, FileCheckpoint>,
    /// Kinds found that this version does not know.
    pub unknown_kinds: BTreeSet<String>,
    /// Last record for which a summary stands in a model's view; 0 without one.
    pub compacted_upto: u64,
    /// What waits for its turn, and what became of every key (RS-16).
    pub inbox: Inbox,
    calls: HashMap<String, Call>,
    attempts: BTreeMap<String, Attempt>,
    order: Vec<String>,
}

impl Session {
    /// The fold of a whole log.
    pub fn from_entries<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> Self {
        let mut session = Self::default();
        for entry in entries {
            session.apply(entry);
        }
        session
    }

    /// A call by our id.
    pub fn call(&self, call_id: &str) -> Option<&Call> {
        self.calls.get(call_id)
    }

    /// An attempt by id.
    pub fn attempt(&self, attempt_id: &str) -> Option<&Attempt> {
        self.attempts.get(attempt_id)
    }

    /// All attempts in the order of their receipts.
    pub fn attempts(&self) -> impl DoubleEndedIterator<Item = &Attempt> {
        self.order.iter().filter_map(|id| self.attempts.get(id))
    }

    /// The attempt of a call, if it has one.
    pub fn attempt_of(&self, call_id: &str) -> Option<&Attempt> {
        self.call(call_id)
            .and_then(|call| call.attempt_id.as_deref())
            .and_then(|id| self.attempt(id))
    }

    /// The attempt took the place of an earlier one (TR-36).
    pub fn is_retry(&self, attempt_id: &str) -> bool {
        self.attempt(attempt_id)
            .is_some_and(|attempt| attempt.retry_of.is_some())
    }

    /// The turn that is not ended.
    pub fn open_turn(&self) -> Option<&Turn> {
        self.turn.as_ref().filter(|turn| turn.ended.is_none())
    }

    /// The one result of a call as a model gets it: what was once sent, else the refusal, else
    /// that it goes on as a job (TR-50), else the real result. `None` while it has none (TR-15).
    pub fn answer(&self, call_id: &str) -> Option<String> {
        let call = self.call(call_id)?;
        if let Some(text) = &call.synthetic {
            return Some(text.clone());
        }
        if let Some((_, text)) = &call.refusal {
            return Some(text.clone());
        }
        let attempt = self.attempt_of(call_id)?;
        if let Some(job) = &attempt.background {
            return Some(job.text.clone());
        }
        match (&attempt.result, attempt.state) {
            (Some(result), _) => Some(result.text.clone()),
            (None, AttemptState::NotStarted) => Some(reason("not started", attempt)),
            (None, AttemptState::Cancelled) => Some(reason("cancelled", attempt)),
            (None, _) => None,
        }
    }

    /// Calls of the latest assistant message of the present turn, in order.
    pub fn latest_calls(&self) -> Vec<&Call> {
        let turn_id = self.turn.as_ref().map(|turn| turn.id.as_str());
        self.items
            .iter()
            .rev()
            .find_map(Item::assistant)
            .filter(|message| Some(message.turn_id.as_str()) == turn_id)
            .map(|message| {
                message
                    .calls
                    .iter()
                    .filter_map(|call| self.call(&call.call_id))
                    .collect()
            })
            .unwrap_or_default()
    }

    /// Calls of the whole session that have no result yet, in order.
    pub fn unanswered(&self) -> Vec<&Call> {
        self.items
            .iter()
            .filter_map(Item::assistant)
            .flat_map(|message| &message.calls)
            .filter(|call| self.answer(&call.call_id).is_none())
            .filter_map(|call| self.call(&call.call_id))
            .collect()
    }

    /// Number of attempts behind the barrier.
    pub fn unresolved(&self, in_flight: &InFlight) -> u64 {
        crate::recovery::barrier::unresolved(self.attempts(), in_flight).len() as u64
    }

    /// TR-28: the counts of a recovery snapshot, from the evidence that is there.
    pub fn statistics(&self, in_flight: &InFlight) -> Statistics {
        let count = |keep: &dyn Fn(&Attempt) -> bool| {
            self.attempts().filter(|attempt| keep(attempt)).count() as u64
        };
        Statistics {
            unknown: self.unresolved(in_flight),
            confirmed: count(&|a| a.state == AttemptState::UserConfirmed),
            retried: count(&|a| a.superseded_by.is_some()),
            rejected: count(&|a| a.resolution == Some(Resolution::Reject)),
            blocked: self.blocked,
            dismissed: count(&|a| a.state == AttemptState::UserDismissed),
        }
    }

    /// A failure that a model or a person may not read as the end of the matter.
    pub fn failed_open(result: &ToolResult) -> bool {
        result.state == AttemptState::Failed && result.effect_summary == EFFECT_UNKNOWN
    }

    /// Attempts whose real result was found after a restart.
    pub fn recovered(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts().filter(|attempt| {
            attempt
                .result
                .as_ref()
                .is_some_and(|result| result.source == ResultSource::Recovered)
        })
    }
}

/// Result text of an attempt that has none because it did not run to an end.
fn reason(word: &str, attempt: &Attempt) -> String {
    if attempt.effect_summary.is_empty() {
        format!("{word}: the call was never run")
    } else {
        format!("{word}: {}", attempt.effect_summary)
    }
}

/// TR-28.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize, specta::Type,
)]
pub struct Statistics {
    /// Unresolved now.
    #[specta(type = f64)]
    pub unknown: u64,
    /// Confirmed by a person.
    #[specta(type = f64)]
    pub confirmed: u64,
    /// Superseded by a retry.
    #[specta(type = f64)]
    pub retried: u64,
    /// A retry was refused by a person.
    #[specta(type = f64)]
    pub rejected: u64,
    /// Calls refused by the barrier.
    #[specta(type = f64)]
    pub blocked: u64,
    /// Dismissed by a person.
    #[specta(type = f64)]
    pub dismissed: u64,
}
