//! A session as the fold of its records.
//!
//! Guarantees: `apply` is total: whatever a log holds, it opens (TR-45); a person's resolution and
//! a stored result are never overwritten (TR-10, TR-38); what was once sent to a model stays as it
//! was sent (TR-15).

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::record::{
    AssistantMessage, AttemptChanged, Entry, PromptAnswered, PromptAsked, ProposedCall, Receipt,
    Record, ResultSource, SessionCreated, ToolResult, TurnEnded, Usage,
};
use crate::recovery::attempt::{Attempt, EFFECT_UNKNOWN, Resolution};
use crate::recovery::barrier::InFlight;
use crate::recovery::lifecycle::AttemptState;

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
    /// The exact subject for commands; empty for file tools, where the grant is for the tool.
    pub subject: String,
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
    /// Ids of prompts that were answered or closed.
    pub answered: BTreeSet<String>,
    /// Allowed for the rest of the session.
    pub grants: BTreeSet<Grant>,
    /// Tokens of the session so far.
    pub usage: Usage,
    /// Calls refused by the barrier (TR-28).
    pub blocked: u64,
    /// Kinds found that this version does not know.
    pub unknown_kinds: BTreeSet<String>,
    calls: HashMap<String, Call>,
    attempts: BTreeMap<String, Attempt>,
    order: Vec<String>,
    submissions: HashMap<String, (String, String)>,
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

    /// Turn and text of a submission (RS-16).
    pub fn submission(&self, key: &str) -> Option<&(String, String)> {
        self.submissions.get(key)
    }

    /// The turn that is not ended.
    pub fn open_turn(&self) -> Option<&Turn> {
        self.turn.as_ref().filter(|turn| turn.ended.is_none())
    }

    /// The one result of a call as a model gets it: what was once sent, else the real result, else
    /// the refusal. `None` while it has none (TR-15).
    pub fn answer(&self, call_id: &str) -> Option<String> {
        let call = self.call(call_id)?;
        if let Some(text) = &call.synthetic {
            return Some(text.clone());
        }
        if let Some((_, text)) = &call.refusal {
            return Some(text.clone());
        }
        let attempt = self.attempt_of(call_id)?;
        match (&attempt.result, attempt.state) {
            (Some(result), _) => Some(result.text.clone()),
            (None, AttemptState::NotStarted | AttemptState::Cancelled) => Some(format!(
                "not started: {}",
                if attempt.effect_summary.is_empty() {
                    "the call was never run"
                } else {
                    &attempt.effect_summary
                }
            )),
            (None, _) => None,
        }
    }

    /// Calls of the latest assistant message of the present turn, in order.
    pub fn latest_calls(&self) -> Vec<&Call> {
        let turn_id = self.turn.as_ref().map(|turn| turn.id.as_str());
        self.items
            .iter()
            .rev()
            .find_map(|item| match item {
                Item::Assistant { message, .. } => Some(message),
                Item::User { .. } | Item::Note { .. } => None,
            })
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
            .filter_map(|item| match item {
                Item::Assistant { message, .. } => Some(message),
                Item::User { .. } | Item::Note { .. } => None,
            })
            .flat_map(|message| &message.calls)
            .filter(|call| self.answer(&call.call_id).is_none())
            .filter_map(|call| self.call(&call.call_id))
            .collect()
    }

    /// Number of attempts behind the barrier.
    pub fn unresolved(&self, in_flight: &InFlight) -> u64 {
        crate::recovery::barrier::unresolved(self.attempts(), in_flight).len() as u64
    }

    /// Adds one record.
    pub fn apply(&mut self, entry: &Entry) {
        self.last_seq = self.last_seq.max(entry.seq);
        self.updated_at = self.updated_at.max(entry.at);
        if self.created_at == 0 {
            self.created_at = entry.at;
        }
        match &entry.record {
            Record::SessionCreated(header) => {
                self.title.clone_from(&header.title);
                self.model.clone_from(&header.model);
                self.mode.clone_from(&header.mode);
                self.header = header.clone();
            }
            Record::SettingsChanged(change) => {
                if let Some(title) = &change.title {
                    self.title.clone_from(title);
                }
                if let Some(model) = &change.model {
                    self.model.clone_from(model);
                }
                if let Some(mode) = &change.mode {
                    self.mode.clone_from(mode);
                }
                self.archived = change.archived.unwrap_or(self.archived);
            }
            Record::SystemPrompt(prompt) => {
                self.system_prompt
                    .get_or_insert_with(|| prompt.text.clone());
            }
            Record::UserMessage(message) => {
                self.prompt_closed();
                if !message.submission_id.is_empty() {
                    self.submissions.insert(
                        message.submission_id.clone(),
                        (message.turn_id.clone(), message.text.clone()),
                    );
                }
                self.turn = Some(Turn {
                    id: message.turn_id.clone(),
                    started: false,
                    continuation: false,
                    ended: None,
                    steps: 0,
                });
                self.items.push(Item::User {
                    seq: entry.seq,
                    at: entry.at,
                    turn_id: message.turn_id.clone(),
                    text: message.text.clone(),
                });
            }
            Record::TurnStarted(started) => {
                if let Some(turn) = self.turn_mut(&started.turn_id) {
                    turn.started = true;
                    turn.continuation |= started.continuation;
                    turn.ended = None;
                }
            }
            Record::AssistantMessage(message) => self.assistant(entry, message),
            Record::PromptAsked(asked) => self.prompt = Some(asked.clone()),
            Record::PromptAnswered(answer) => self.answered_by_person(answer),
            Record::CallRefused(refused) => {
                if refused.code == "recovery_required" {
                    self.blocked += 1;
                }
                let waits = |prompt: &PromptAsked| prompt.call_id == refused.call_id;
                if self.prompt.as_ref().is_some_and(waits) {
                    self.prompt_closed();
                }
                if let Some(call) = self.calls.get_mut(&refused.call_id) {
                    call.refusal
                        .get_or_insert_with(|| (refused.code.clone(), refused.text.clone()));
                }
            }
            Record::Receipt(receipt) => self.receipt(entry, receipt),
            Record::Superseded(superseded) => {
                if let Some(attempt) = self.attempts.get_mut(&superseded.attempt_id) {
                    attempt.superseded_by = Some(superseded.by.clone());
                }
            }
            Record::ToolStarted(started) => {
                if let Some(attempt) = self.attempts.get_mut(&started.attempt_id) {
                    if attempt.state == AttemptState::Pending {
                        attempt.state = AttemptState::Started;
                    }
                    attempt.boot_id.clone_from(&started.boot_id);
                    attempt.started_at = Some(entry.at);
                }
            }
            Record::NotStarted(not_started) => {
                self.not_started(&not_started.attempt_id, &not_started.reason, entry.at);
            }
            Record::ToolResult(result) => self.result(result, entry.at),
            Record::AttemptChanged(change) => self.changed(change, entry.at),
            Record::AttemptPresumed(presumed) => {
                let mut attempt = Attempt::new(presumed.identity.clone(), false, entry.seq);
                attempt.state = AttemptState::Unknown;
                attempt.effect_summary.clone_from(&presumed.reason);
                attempt.supervised = presumed.supervised;
                attempt.found_open = true;
                attempt.started_at = Some(entry.at);
                self.insert(attempt);
            }
            Record::SyntheticResult(synthetic) => {
                if let Some(call) = self.calls.get_mut(&synthetic.call_id) {
                    call.synthetic.get_or_insert_with(|| synthetic.text.clone());
                }
                let attempt = synthetic
                    .attempt_id
                    .as_ref()
                    .and_then(|id| self.attempts.get_mut(id));
                if let Some(attempt) = attempt {
                    attempt.synthetic_sent = true;
                }
            }
            Record::LateEvidence(late) => {
                if let Some(attempt) = self.attempts.get_mut(&late.result.attempt_id) {
                    attempt.late.get_or_insert_with(|| late.result.clone());
                }
            }
            Record::Inspected(inspected) => {
                if let Some(attempt) = self.attempts.get_mut(&inspected.attempt_id) {
                    attempt.inspection = Some(inspected.inspection.clone());
                }
            }
            Record::Resolved(resolved) => {
                self.resolve(
                    &resolved.attempt_id,
                    resolved.resolution,
                    &resolved.source,
                    entry.at,
                );
            }
            Record::JobEnded(ended) => {
                if let Some(attempt) = self.attempts.get_mut(&ended.attempt_id) {
                    attempt.job = false;
                }
            }
            Record::HostNote(note) => {
                for id in &note.attempts {
                    if let Some(attempt) = self.attempts.get_mut(id) {
                        attempt.told = true;
                    }
                }
                self.items.push(Item::Note {
                    seq: entry.seq,
                    at: entry.at,
                    text: note.text.clone(),
                });
            }
            Record::TurnEnded(ended) => {
                if let Some(turn) = self.turn_mut(&ended.turn_id) {
                    turn.ended = Some(ended.clone());
                }
            }
            Record::Restarted(restarted) => {
                for id in &restarted.attempts {
                    if let Some(attempt) = self.attempts.get_mut(id) {
                        attempt.found_open = true;
                    }
                }
            }
            Record::WriteReset(reset) => {
                for id in &reset.not_started {
                    self.not_started(id, "its receipt could not be stored", entry.at);
                }
            }
            Record::Other { kind, .. } => {
                self.unknown_kinds.insert(kind.clone());
            }
        }
    }

    fn turn_mut(&mut self, turn_id: &str) -> Option<&mut Turn> {
        self.turn.as_mut().filter(|turn| turn.id == turn_id)
    }

    fn prompt_closed(&mut self) {
        if let Some(prompt) = self.prompt.take() {
            self.answered.insert(prompt.prompt_id);
        }
    }

    fn answered_by_person(&mut self, answer: &PromptAnswered) {
        let current = |prompt: &PromptAsked| prompt.prompt_id == answer.prompt_id;
        let Some(prompt) = self.prompt.take_if(|prompt| current(prompt)) else {
            return;
        };
        if answer.allow && answer.scope == "session" {
            let subject = match prompt.file {
                Some(_) => String::new(),
                None => prompt.subject.clone(),
            };
            self.grants.insert(Grant {
                tool: prompt.tool.clone(),
                subject,
            });
        }
        self.answered.insert(prompt.prompt_id);
    }

    fn assistant(&mut self, entry: &Entry, message: &AssistantMessage) {
        if let Some(turn) = self.turn_mut(&message.turn_id) {
            turn.started = true;
            turn.steps = turn.steps.max(message.step);
        }
        if let Some(usage) = message.usage {
            self.usage.input += usage.input;
            self.usage.output += usage.output;
            self.usage.cached_input += usage.cached_input;
            self.usage.reasoning += usage.reasoning;
        }
        for proposed in &message.calls {
            self.calls
                .entry(proposed.call_id.clone())
                .or_insert_with(|| Call {
                    proposed: proposed.clone(),
                    turn_id: message.turn_id.clone(),
                    step: message.step,
                    seq: entry.seq,
                    attempt_id: None,
                    refusal: None,
                    synthetic: None,
                });
        }
        self.items.push(Item::Assistant {
            seq: entry.seq,
            at: entry.at,
            message: message.clone(),
        });
    }

    fn insert(&mut self, attempt: Attempt) {
        let id = attempt.identity.attempt_id.clone();
        if let Some(call) = self.calls.get_mut(&attempt.identity.call_id) {
            call.attempt_id = Some(id.clone());
        }
        if self.attempts.insert(id.clone(), attempt).is_none() {
            self.order.push(id);
        }
    }

    fn receipt(&mut self, entry: &Entry, receipt: &Receipt) {
        let mut attempt = Attempt::new(receipt.identity.clone(), receipt.read_only, entry.seq);
        attempt.idempotency_key.clone_from(&receipt.idempotency_key);
        attempt.subject.clone_from(&receipt.subject);
        attempt.file.clone_from(&receipt.file);
        attempt.supervised = receipt.supervised;
        self.insert(attempt);
    }

    fn not_started(&mut self, attempt_id: &str, reason: &str, at: u64) {
        if let Some(attempt) = self.attempts.get_mut(attempt_id)
            && attempt.result.is_none()
            && !attempt.state.is_by_person()
        {
            attempt.state = AttemptState::NotStarted;
            attempt.effect_summary = reason.to_owned();
            attempt.finished_at = Some(at);
        }
    }

    fn changed(&mut self, change: &AttemptChanged, at: u64) {
        if let Some(attempt) = self.attempts.get_mut(&change.attempt_id)
            && attempt.result.is_none()
            && !attempt.state.is_by_person()
        {
            attempt.state = change.state;
            attempt.effect_summary.clone_from(&change.reason);
            attempt.stragglers.clone_from(&change.stragglers);
            if change.state.is_final() {
                attempt.finished_at = Some(at);
            }
        }
    }

    fn result(&mut self, result: &ToolResult, at: u64) {
        let Some(attempt) = self.attempts.get_mut(&result.attempt_id) else {
            return;
        };
        if attempt.state.is_by_person() {
            attempt.late.get_or_insert_with(|| result.clone());
            return;
        }
        if attempt.result.is_some() {
            return;
        }
        attempt.state = result.state;
        attempt.effect_summary.clone_from(&result.effect_summary);
        attempt.job = result
            .exit
            .as_ref()
            .is_some_and(|exit| !exit.survivors.is_empty());
        attempt.stragglers = Vec::new();
        attempt.finished_at = Some(at);
        attempt.result = Some(result.clone());
    }

    fn resolve(&mut self, attempt_id: &str, resolution: Resolution, source: &str, at: u64) {
        let Some(attempt) = self.attempts.get_mut(attempt_id) else {
            return;
        };
        if attempt.state.is_by_person() || !attempt.is_unresolved(false) {
            return;
        }
        attempt.resolution = Some(resolution);
        attempt.resolution_source = source.to_owned();
        attempt.resolved_at = Some(at);
        match resolution {
            Resolution::Confirm => attempt.state = AttemptState::UserConfirmed,
            Resolution::Dismiss => attempt.state = AttemptState::UserDismissed,
            Resolution::Reject => {}
        }
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

/// TR-28.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Statistics {
    /// Unresolved now.
    pub unknown: u64,
    /// Confirmed by a person.
    pub confirmed: u64,
    /// Superseded by a retry.
    pub retried: u64,
    /// A retry was refused by a person.
    pub rejected: u64,
    /// Calls refused by the barrier.
    pub blocked: u64,
    /// Dismissed by a person.
    pub dismissed: u64,
}
