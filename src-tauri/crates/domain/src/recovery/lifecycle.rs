//! The states of an attempt and the moves between them (TR-12).
//!
//! Guarantee: a state that a person set is never overwritten by evidence, and no move leads from
//! an open state to an executed one without a record that says so.

use serde::{Deserialize, Serialize};

/// TR-12: what is known of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, specta::Type)]
#[serde(rename_all = "snake_case")]
pub enum AttemptState {
    /// The receipt is durable, the start is not.
    Pending,
    /// The start record is durable.
    Started,
    /// The executor said that it runs.
    Running,
    /// Ran and succeeded.
    Completed,
    /// Ran and returned an error.
    Failed,
    /// Dispatched, never started.
    Cancelled,
    /// Proven not to have started.
    NotStarted,
    /// Started, and nobody knows the outcome.
    Unknown,
    /// A person says that the effect happened.
    UserConfirmed,
    /// Ended by Stop or timeout, with a proven end of the whole tree; effects may be partial.
    Interrupted,
    /// A person goes on without knowing.
    UserDismissed,
}

impl AttemptState {
    /// The word on the wire and in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Started => "started",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::NotStarted => "not_started",
            Self::Unknown => "unknown",
            Self::UserConfirmed => "user_confirmed",
            Self::Interrupted => "interrupted",
            Self::UserDismissed => "user_dismissed",
        }
    }

    /// All states, for tests that walk them.
    pub const ALL: [Self; 11] = [
        Self::Pending,
        Self::Started,
        Self::Running,
        Self::Completed,
        Self::Failed,
        Self::Cancelled,
        Self::NotStarted,
        Self::Unknown,
        Self::UserConfirmed,
        Self::Interrupted,
        Self::UserDismissed,
    ];

    /// The state of that name; `None` for a word of a newer version.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == word)
    }

    /// Started and without a known end.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Started | Self::Running | Self::Unknown)
    }

    /// A person decided; later evidence is attached and the state stays (TR-10, TR-34).
    pub fn is_by_person(self) -> bool {
        matches!(self, Self::UserConfirmed | Self::UserDismissed)
    }

    /// Whether a record without a result may lead from here to `to` (TR-12): an attempt says that it
    /// runs, is given up as unknown, or is cancelled. What may have had an effect is never
    /// cancelled after its start, and what is settled stays.
    pub fn may_change_to(self, to: Self, read_only: bool) -> bool {
        match (self, to) {
            (Self::Pending, Self::Running | Self::Unknown | Self::Cancelled) => true,
            (Self::Started | Self::Running | Self::Unknown, Self::Running | Self::Unknown) => true,
            (Self::Started | Self::Running | Self::Unknown, Self::Cancelled) => read_only,
            (
                Self::Pending
                | Self::Started
                | Self::Running
                | Self::Unknown
                | Self::Completed
                | Self::Failed
                | Self::Cancelled
                | Self::NotStarted
                | Self::UserConfirmed
                | Self::Interrupted
                | Self::UserDismissed,
                _,
            ) => false,
        }
    }

    /// Nothing more will come by itself.
    pub fn is_final(self) -> bool {
        !matches!(
            self,
            Self::Pending | Self::Started | Self::Running | Self::Unknown
        )
    }
}

/// A state that the reader does not know loads as `unknown` (TR-12).
impl<'de> Deserialize<'de> for AttemptState {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Ok(Self::parse(&word).unwrap_or(Self::Unknown))
    }
}
