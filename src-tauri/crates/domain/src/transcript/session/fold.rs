//! How one record changes a session.
//!
//! Guarantees: `apply` is total: whatever a log holds, it opens (TR-45); a person's resolution and
//! a stored result are never overwritten (TR-10, TR-38); a call that has its answer keeps it, byte
//! for byte (TR-15).

use super::{Call, Grant, Item, Session, Turn};
use crate::recovery::attempt::{Attempt, Resolution};
use crate::recovery::identity::Identity;
use crate::recovery::lifecycle::AttemptState;
use crate::recovery::repeat;
use crate::transcript::record::{
    AssistantMessage, AttemptChanged, CallRefused, Entry, JobStarted, PromptAnswered, PromptAsked,
    ProposedCall, Receipt, Record, Superseded, SyntheticResult, ToolResult, ToolStarted, TurnEnded,
    Usage,
};

impl Session {
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
            Record::UserMessage(message) => self.said(entry, message),
            Record::TurnStarted(started) => {
                if let Some(turn) = self.turn_mut(&started.turn_id) {
                    turn.started = true;
                    turn.continuation |= started.continuation;
                    turn.started_seq = entry.seq;
                    turn.ended = None;
                }
            }
            Record::AssistantMessage(message) => self.assistant(entry, message),
            Record::PromptAsked(asked) => self.asked(asked),
            Record::PromptAnswered(answer) => self.answered_by_person(answer),
            Record::CallRefused(refused) => self.refused(refused),
            Record::Receipt(receipt) => self.receipt(entry, receipt),
            Record::FileCheckpoint(checkpoint) => {
                // A second writer does not rebind.
                self.file_checkpoints
                    .entry(checkpoint.resolved_path.clone())
                    .or_insert_with(|| checkpoint.clone());
            }
            Record::Superseded(superseded) => self.superseded(entry, superseded),
            Record::ToolStarted(started) => self.started(entry, started),
            Record::NotStarted(not_started) => {
                self.not_started(&not_started.attempt_id, &not_started.reason, entry.at);
            }
            Record::ToolResult(result) => self.result(entry, result),
            Record::AttemptChanged(change) => self.changed(change, entry.at),
            Record::AttemptPresumed(presumed) => {
                let mut attempt = Attempt::new(presumed.identity.clone(), false, entry.seq);
                attempt.state = AttemptState::Unknown;
                attempt.effect_summary.clone_from(&presumed.reason);
                attempt.supervised = presumed.supervised;
                attempt.found_open = true;
                attempt.found_seq = entry.seq;
                attempt.started_at = Some(entry.at);
                self.insert(attempt);
            }
            Record::SyntheticResult(synthetic) => self.synthetic(synthetic),
            Record::LateEvidence(late) => self.attach_late(&late.result),
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
            Record::JobStarted(started) => self.job_started(started),
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
                    attempts: note.attempts.clone(),
                });
            }
            Record::TurnEnded(ended) => self.turn_ended(ended),
            Record::Compacted(compacted) => self.compacted(entry, compacted),
            Record::Rewound(rewound) => self.rewound(entry, rewound),
            Record::InboxQueued(queued) => self.inbox.queued(entry.seq, entry.at, queued),
            Record::InboxEdited(edited) => self.inbox.edited(entry.seq, edited),
            Record::InboxMoved(moved) => self.inbox.moved(entry.seq, moved),
            Record::InboxDeleted(deleted) => self.inbox.deleted(entry.seq, deleted),
            Record::InboxReturned(returned) => self.returned(entry, returned),
            Record::InboxPaused(paused) => self.inbox.paused(entry.seq, paused),
            Record::InboxResumed(_) => self.inbox.resumed(entry.seq),
            Record::Restarted(restarted) => {
                for id in &restarted.attempts {
                    if let Some(attempt) = self.attempts.get_mut(id) {
                        attempt.found_open = true;
                        attempt.found_seq = entry.seq;
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

    fn turn_ended(&mut self, ended: &TurnEnded) {
        let Some(turn) = self.turn_mut(&ended.turn_id) else {
            return;
        };
        turn.ended = Some(ended.clone());
        let began = turn.started_seq;
        // A turn that was cut short says nothing of what its model would still have run.
        if ended.status != "completed" {
            return;
        }
        for attempt in self.attempts.values_mut() {
            let found_before = attempt.found_seq != 0 && attempt.found_seq < began;
            attempt.first_turn_over |= found_before && repeat::has_guarding_end(attempt);
        }
    }

    pub(super) fn turn_mut(&mut self, turn_id: &str) -> Option<&mut Turn> {
        self.turn.as_mut().filter(|turn| turn.id == turn_id)
    }

    pub(super) fn prompt_closed(&mut self) {
        self.approved = None;
        if let Some(prompt) = self.prompt.take() {
            self.answered.insert(prompt.prompt_id);
        }
    }

    fn answered_by_person(&mut self, answer: &PromptAnswered) {
        // An answer is bound to the state that the person was shown (TR-51).
        let current = |prompt: &PromptAsked| {
            prompt.prompt_id == answer.prompt_id && prompt.generation == answer.generation
        };
        let Some(prompt) = self.prompt.take_if(|prompt| current(prompt)) else {
            return;
        };
        // A question that names nothing to allow, of another version, allows nothing further.
        if answer.allow && answer.scope == "session" && !prompt.grant.is_empty() {
            self.grants.insert(Grant {
                tool: prompt.tool.clone(),
                key: prompt.grant.clone(),
            });
        }
        self.answered.insert(prompt.prompt_id.clone());
        self.approved = answer.allow.then_some(prompt);
    }

    fn assistant(&mut self, entry: &Entry, message: &AssistantMessage) {
        if let Some(turn) = self.turn_mut(&message.turn_id) {
            turn.started = true;
            turn.steps = turn.steps.max(message.step);
        }
        self.spent(message.usage);
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
                    rewound: None,
                });
        }
        self.items.push(Item::Assistant {
            seq: entry.seq,
            at: entry.at,
            message: message.clone(),
        });
    }

    pub(super) fn spent(&mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.usage.input += usage.input;
            self.usage.output += usage.output;
            self.usage.cached_input += usage.cached_input;
            self.usage.reasoning += usage.reasoning;
        }
    }

    /// The first record of an attempt counts; a second one could undo what a person said.
    fn insert(&mut self, attempt: Attempt) {
        let id = attempt.identity.attempt_id.clone();
        if self.attempts.contains_key(&id) {
            return;
        }
        let call_id = &attempt.identity.call_id;
        if self.answer(call_id).is_none()
            && let Some(call) = self.calls.get_mut(call_id)
        {
            call.attempt_id = Some(id.clone());
        }
        self.attempts.insert(id.clone(), attempt);
        self.order.push(id);
        self.approved = None;
    }

    fn asked(&mut self, asked: &PromptAsked) {
        let is_older = self.prompt.as_ref().is_some_and(|prompt| {
            prompt.prompt_id == asked.prompt_id && prompt.generation > asked.generation
        });
        if !is_older {
            self.prompt = Some(asked.clone());
            self.approved = None;
        }
    }

    fn refused(&mut self, refused: &CallRefused) {
        let waits = |prompt: &PromptAsked| prompt.call_id == refused.call_id;
        if self.prompt.as_ref().is_some_and(waits) {
            self.prompt_closed();
        }
        self.approved.take_if(|prompt| waits(prompt));
        if self.answer(&refused.call_id).is_some() {
            return;
        }
        if let Some(call) = self.calls.get_mut(&refused.call_id) {
            call.refusal = Some((refused.code.clone(), refused.text.clone()));
            if refused.code == "recovery_required" {
                self.blocked += 1;
            }
        }
    }

    fn synthetic(&mut self, synthetic: &SyntheticResult) {
        if self.answer(&synthetic.call_id).is_some() {
            return;
        }
        if let Some(call) = self.calls.get_mut(&synthetic.call_id) {
            call.synthetic = Some(synthetic.text.clone());
        }
        let attempt = synthetic
            .attempt_id
            .as_ref()
            .and_then(|id| self.attempts.get_mut(id));
        if let Some(attempt) = attempt {
            attempt.synthetic_sent = true;
        }
    }

    fn started(&mut self, entry: &Entry, started: &ToolStarted) {
        if !self.attempts.contains_key(&started.attempt_id) {
            // Its receipt is damaged or of a newer version: that it started is still known, and
            // what it does is not, so it counts as mutating (TR-14).
            self.insert(Attempt::new(
                Identity {
                    session_id: self.header.session_id.clone(),
                    turn_id: String::new(),
                    step: 0,
                    call_id: String::new(),
                    canonical_tool: String::new(),
                    argument_digest: String::new(),
                    attempt_id: started.attempt_id.clone(),
                    resource_scope: format!("session:{}", self.header.session_id),
                },
                false,
                entry.seq,
            ));
        }
        if let Some(attempt) = self.attempts.get_mut(&started.attempt_id) {
            if attempt.state == AttemptState::Pending {
                attempt.state = AttemptState::Started;
            }
            if attempt.started_at.is_none() && !attempt.state.is_final() {
                attempt.boot_id.clone_from(&started.boot_id);
                attempt.started_at = Some(entry.at);
            }
        }
    }

    fn receipt(&mut self, entry: &Entry, receipt: &Receipt) {
        let mut attempt = Attempt::new(receipt.identity.clone(), receipt.read_only, entry.seq);
        attempt.idempotency_key.clone_from(&receipt.idempotency_key);
        attempt.subject.clone_from(&receipt.subject);
        attempt.file.clone_from(&receipt.file);
        attempt.supervised = receipt.supervised;
        attempt.allowed_repeat = self.approved.as_ref().is_some_and(|asked| {
            asked.prompt == PromptAsked::REPEAT && asked.call_id == receipt.identity.call_id
        });
        self.insert(attempt);
    }

    /// TR-36: the retry's call is the original's once more. Its result never goes into the original
    /// call's place, and no model sees it but in a note.
    fn superseded(&mut self, entry: &Entry, superseded: &Superseded) {
        let Some(original) = self.attempts.get(&superseded.attempt_id) else {
            return;
        };
        let Some(retry) = self.attempts.get(&superseded.by) else {
            // A place that nothing has taken would lift the barrier for nothing.
            return;
        };
        // An attempt is retried once; an old request can't run anything again. A retry's receipt is
        // always the later one, so that a damaged log can't lead in circles.
        if original.superseded_by.is_some()
            || retry.retry_of.is_some()
            || retry.receipt_seq <= original.receipt_seq
        {
            return;
        }
        let original_call = original.identity.call_id.clone();
        let call_id = retry.identity.call_id.clone();
        if let Some(retry) = self.attempts.get_mut(&superseded.by) {
            retry.retry_of = Some(superseded.attempt_id.clone());
        }
        if let Some(original) = self.attempts.get_mut(&superseded.attempt_id) {
            original.superseded_by = Some(superseded.by.clone());
        }
        self.is_news(&superseded.attempt_id);
        let Some(call) = self.calls.get(&original_call) else {
            return;
        };
        if self.calls.contains_key(&call_id) {
            return;
        }
        let call = Call {
            proposed: ProposedCall {
                call_id: call_id.clone(),
                provider_id: String::new(),
                ..call.proposed.clone()
            },
            turn_id: call.turn_id.clone(),
            step: call.step,
            seq: entry.seq,
            attempt_id: Some(superseded.by.clone()),
            refusal: None,
            synthetic: None,
            rewound: None,
        };
        self.calls.insert(call_id.clone(), call);
        self.items.push(Item::Retry {
            seq: entry.seq,
            at: entry.at,
            call_id,
        });
    }

    /// Something new is known of an attempt. What becomes of a retry is told with the attempt whose
    /// place it took (TR-15), so it is news of that one too.
    fn is_news(&mut self, attempt_id: &str) {
        let mut next = Some(attempt_id.to_owned());
        while let Some(attempt) = next.and_then(|id| self.attempts.get_mut(&id)) {
            attempt.told = false;
            next = attempt.retry_of.clone();
        }
    }

    fn not_started(&mut self, attempt_id: &str, reason: &str, at: u64) {
        if let Some(attempt) = self.attempts.get_mut(attempt_id)
            && attempt.result.is_none()
            && !attempt.state.is_final()
        {
            attempt.state = AttemptState::NotStarted;
            attempt.effect_summary = reason.to_owned();
            attempt.finished_at = Some(at);
            self.is_news(attempt_id);
        }
    }

    fn changed(&mut self, change: &AttemptChanged, at: u64) {
        if let Some(attempt) = self.attempts.get_mut(&change.attempt_id)
            && attempt.result.is_none()
            && attempt.state.may_change_to(change.state, attempt.read_only)
        {
            attempt.state = change.state;
            attempt.effect_summary.clone_from(&change.reason);
            attempt.stragglers.clone_from(&change.stragglers);
            if change.state.is_final() {
                attempt.finished_at = Some(at);
            }
            // Of a job the model was told that it runs.
            if change.state.is_final() || attempt.background.is_some() {
                self.is_news(&change.attempt_id);
            }
        }
    }

    /// TR-50: a call that has its answer keeps it; an attempt that has its end goes on no more.
    fn job_started(&mut self, started: &JobStarted) {
        if let Some(attempt) = self.attempts.get_mut(&started.attempt_id)
            && attempt.result.is_none()
            && attempt.background.is_none()
            && !attempt.read_only
            && !attempt.state.is_final()
        {
            if attempt
                .state
                .may_change_to(AttemptState::Running, attempt.read_only)
            {
                attempt.state = AttemptState::Running;
            }
            attempt.background = Some(started.clone());
            attempt.told = false;
        }
    }

    fn result(&mut self, entry: &Entry, result: &ToolResult) {
        let Some(attempt) = self.attempts.get_mut(&result.attempt_id) else {
            return;
        };
        if attempt.state.is_final() && attempt.result.is_none() || attempt.state.is_by_person() {
            self.attach_late(result);
            return;
        }
        if attempt.result.is_some() {
            return;
        }
        // A result can't say that a person decided, nor that the attempt is still to come.
        attempt.state = match result.state {
            AttemptState::Completed | AttemptState::Failed | AttemptState::Interrupted => {
                result.state
            }
            AttemptState::Pending
            | AttemptState::Started
            | AttemptState::Running
            | AttemptState::Cancelled
            | AttemptState::NotStarted
            | AttemptState::Unknown
            | AttemptState::UserConfirmed
            | AttemptState::UserDismissed => AttemptState::Unknown,
        };
        attempt.effect_summary.clone_from(&result.effect_summary);
        attempt.job = result
            .exit
            .as_ref()
            .is_some_and(|exit| !exit.survivors.is_empty());
        attempt.stragglers = Vec::new();
        attempt.finished_at = Some(entry.at);
        attempt.result_seq = entry.seq;
        attempt.result = Some(result.clone());
        self.is_news(&result.attempt_id);
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
        self.is_news(attempt_id);
    }

    /// TR-10, TR-34: what comes after the state was settled is attached, and the state stays.
    fn attach_late(&mut self, result: &ToolResult) {
        if let Some(attempt) = self.attempts.get_mut(&result.attempt_id)
            && attempt.late.is_none()
        {
            attempt.late = Some(result.clone());
            self.is_news(&result.attempt_id);
        }
    }
}
