//! From a proposal to an execution: the strict order of TR-05.
//!
//! Guarantee: a mutating call runs only behind its durable receipt and start record, only while no
//! other attempt is unresolved, and only if Stop did not come first.

use holdfast_api::event::Event;
use holdfast_domain::recovery::barrier;
use holdfast_domain::recovery::identity::{Identity, resource_scope};
use holdfast_domain::transcript::record::{
    AssistantMessage, CallRefused, FileCheckpoint, NotStarted, PromptAsked, ProposedCall, Receipt,
    Record, ToolStarted,
};
use holdfast_tools::{Checkpoint, Context, Prepared, ToolKind};

use super::Actor;
use super::background::OwnJobs;
use super::ends::keep;
use super::guard::Repeat;
use super::live::progress_to;
use super::message::Message;
use crate::policy::{Decision, decide, grant_for};
use crate::stops::{StopPoint, pass, pass_named};

/// TR-46: the code of a repetition that nobody is there to allow.
const REPEAT_REFUSED: &str = "repeat_refused";

/// A call that is about to start.
pub(super) struct Start {
    pub(super) call_id: String,
    pub(super) attempt_id: String,
    pub(super) prepared: Prepared,
    pub(super) idempotency_key: String,
}

/// What taking up calls leads to: records, and what follows once they are durable.
#[derive(Default)]
pub(super) struct Plan {
    pub(super) records: Vec<Record>,
    pub(super) starts: Vec<Start>,
    refused: Vec<String>,
    asked: Option<PromptAsked>,
}

impl Actor {
    /// Takes up calls that are already in the fold.
    pub(super) async fn take_up(&mut self, ids: &[String]) {
        let calls: Vec<(ProposedCall, u32)> = ids
            .iter()
            .filter_map(|id| self.store.session.call(id))
            .map(|call| (call.proposed.clone(), call.step))
            .collect();
        let mut plan = Plan::default();
        for (call, step) in &calls {
            self.plan(call, *step, &mut plan).await;
        }
        self.carry_out(plan, false).await;
    }

    /// Stores the model's message, and in the same write what its first calls need.
    pub(super) async fn take_up_first(&mut self, message: AssistantMessage) {
        let mut first: Vec<ProposedCall> = message
            .calls
            .iter()
            .take_while(|call| !self.host.is_mutating(call))
            .cloned()
            .collect();
        if first.is_empty() {
            first.extend(message.calls.first().cloned());
        }
        let step = message.step;
        let mut plan = Plan::default();
        let stopped = self
            .running
            .as_ref()
            .is_none_or(|turn| turn.cancel.is_cancelled());
        plan.records.push(message.into());
        // TR-05 (1): stopped already, so nothing is taken up.
        if !stopped {
            for call in &first {
                self.plan(call, step, &mut plan).await;
            }
        }
        self.carry_out(plan, true).await;
    }

    /// TR-04, TR-05 (1)…(8): what becomes of one call.
    async fn plan(&mut self, call: &ProposedCall, step: u32, plan: &mut Plan) {
        let prepared = match self.prepare(call).await {
            Ok(prepared) => prepared,
            Err((code, text)) => return self.refuse(call, &code, text, plan),
        };
        if !prepared.read_only {
            let in_flight = self.in_flight();
            let attempts = self.store.session.attempts();
            if let Some(blocking) = barrier::refuses(attempts, &in_flight, None) {
                let text = barrier::refusal_text(blocking);
                return self.refuse(call, "recovery_required", text, plan);
            }
        }
        let continuation = self
            .store
            .session
            .turn
            .as_ref()
            .is_some_and(|turn| turn.continuation);
        let decision = decide(&self.store.session, &prepared, continuation);
        if let Decision::Refuse(code, text) = decision {
            return self.refuse(call, code, text.to_owned(), plan);
        }
        // TR-05 (5): one question together with the ordinary one.
        let repeat = self.repeats(&prepared);
        if let Some(repeat) = repeat.as_ref().filter(|_| !self.host.attended) {
            return self.refuse(call, REPEAT_REFUSED, repeat.refusal.clone(), plan);
        }
        let ordinary = match decision {
            Decision::Ask(reason) => Some(reason),
            Decision::Allow | Decision::Refuse(..) => None,
        };
        if ordinary.is_some() || repeat.is_some() {
            let reason = ordinary.unwrap_or_default();
            let id = self.host.source.id();
            let asked = self.question(call, &prepared, 1, id, reason, repeat.as_ref());
            self.prepared.insert(call.call_id.clone(), prepared);
            plan.records.push(asked.clone().into());
            plan.asked = Some(asked);
        } else if let Err(text) = self.start_records(call, step, prepared, plan) {
            self.refuse(call, "scope_empty", text, plan);
        }
    }

    /// A question; about a repetition when there is one. `reason` is the ordinary one, or empty.
    pub(super) fn question(
        &self,
        call: &ProposedCall,
        prepared: &Prepared,
        generation: u64,
        prompt_id: String,
        reason: &str,
        repeat: Option<&Repeat>,
    ) -> PromptAsked {
        let asked = PromptAsked {
            prompt_id,
            prompt: PromptAsked::APPROVAL.to_owned(),
            turn_id: self.turn_id(),
            call_id: call.call_id.clone(),
            tool: prepared.canonical_tool.clone(),
            subject: prepared.subject.clone(),
            diff: prepared.diff.clone(),
            generation,
            scopes: vec!["once".to_owned(), "session".to_owned()],
            reason: reason.to_owned(),
            grant: grant_for(prepared).key,
            argument_digest: prepared.argument_digest.clone(),
            file: prepared.file.clone(),
            earlier: None,
            earlier_state: String::new(),
        };
        let Some(repeat) = repeat else {
            return asked;
        };
        PromptAsked {
            prompt: PromptAsked::REPEAT.to_owned(),
            // Each repetition is allowed by itself, and allows nothing further.
            scopes: vec!["once".to_owned()],
            grant: String::new(),
            reason: if reason.is_empty() {
                repeat.why.clone()
            } else {
                format!("{} ({reason})", repeat.why)
            },
            earlier: Some(repeat.attempt_id.clone()),
            earlier_state: repeat.state.clone(),
            ..asked
        }
    }

    pub(super) fn turn_id(&self) -> String {
        self.store
            .session
            .turn
            .as_ref()
            .map(|turn| turn.id.clone())
            .unwrap_or_default()
    }

    fn refuse(&self, call: &ProposedCall, code: &str, text: String, plan: &mut Plan) {
        plan.refused.push(call.call_id.clone());
        plan.records.push(
            CallRefused {
                turn_id: self.turn_id(),
                call_id: call.call_id.clone(),
                code: code.to_owned(),
                text,
            }
            .into(),
        );
    }

    /// TR-04: raw checks, schema, target. Reads files, so it is done on a blocking thread.
    pub(super) async fn prepare(&self, call: &ProposedCall) -> Result<Prepared, (String, String)> {
        let workspace = self.workspace.clone().map_err(|reason| {
            (
                "workspace_missing".to_owned(),
                format!("refused: the workspace can't be used: {reason}"),
            )
        })?;
        let registry = std::sync::Arc::clone(&self.host.registry);
        let (name, raw) = (call.name.clone(), call.arguments.clone());
        let prepared =
            tokio::task::spawn_blocking(move || registry.prepare(&name, &raw, &workspace)).await;
        match prepared {
            Ok(Ok(prepared)) => Ok(prepared),
            Ok(Err(refusal)) => Err((
                refusal.code.to_owned(),
                format!("refused: {}", refusal.message),
            )),
            Err(_) => Err((
                "tool_defect".to_owned(),
                "refused: the tool failed while it checked this call; nothing was run".to_owned(),
            )),
        }
    }

    /// TR-05 (3)…(10): identity, key, receipt and start record of a call.
    pub(super) fn start_records(
        &self,
        call: &ProposedCall,
        step: u32,
        prepared: Prepared,
        plan: &mut Plan,
    ) -> Result<(), String> {
        let scope = resource_scope(&self.id, prepared.resource_scope.as_deref())
            .map_err(|error| error.to_string())?;
        let identity = Identity {
            session_id: self.id.clone(),
            turn_id: self.turn_id(),
            step,
            call_id: call.call_id.clone(),
            canonical_tool: prepared.canonical_tool.clone(),
            argument_digest: prepared.argument_digest.clone(),
            attempt_id: self.host.source.id(),
            resource_scope: scope,
        };
        let (attempt_id, idempotency_key) =
            (identity.attempt_id.clone(), identity.idempotency_key());
        plan.records.push(
            Receipt {
                identity,
                read_only: prepared.read_only,
                idempotency_key: idempotency_key.clone(),
                subject: prepared.subject.clone(),
                file: prepared.file.clone(),
                supervised: prepared.kind == ToolKind::Shell,
            }
            .into(),
        );
        plan.records
            .extend(self.first_write(&attempt_id, &prepared, &plan.records));
        plan.records.push(
            ToolStarted {
                attempt_id: attempt_id.clone(),
                boot_id: self.host.boot_id.clone(),
            }
            .into(),
        );
        plan.starts.push(Start {
            call_id: call.call_id.clone(),
            attempt_id,
            prepared,
            idempotency_key,
        });
        Ok(())
    }

    /// TR-17: the record that binds a file to its first writer in this session; `None` for a later
    /// one, also of the same batch.
    fn first_write(
        &self,
        attempt_id: &str,
        prepared: &Prepared,
        planned: &[Record],
    ) -> Option<Record> {
        let resolved_path = prepared.file.as_ref()?.resolved_path.clone();
        let is_planned = planned.iter().any(|record| {
            matches!(record, Record::FileCheckpoint(other) if other.resolved_path == resolved_path)
        });
        let is_bound = self
            .store
            .session
            .file_checkpoints
            .contains_key(&resolved_path);
        (!is_planned && !is_bound).then(|| {
            FileCheckpoint {
                attempt_id: attempt_id.to_owned(),
                resolved_path,
                log_sha256: String::new(),
            }
            .into()
        })
    }

    /// TR-05 (8)…(12): makes the records durable, then announces, then executes.
    pub(super) async fn carry_out(&mut self, plan: Plan, with_message: bool) {
        if plan.records.is_empty() {
            return;
        }
        let attempts: Vec<String> = plan
            .starts
            .iter()
            .map(|start| start.attempt_id.clone())
            .collect();
        let entries = match self.commit(plan.records, attempts.clone()).await {
            Ok(entries) => entries,
            Err(error) => {
                self.end_turn("failed", error.code(), &error.to_string())
                    .await;
                return;
            }
        };
        // From here on this host owns them; no view may take them for uncertain.
        if let Some(turn) = &mut self.running {
            for start in &plan.starts {
                turn.calls
                    .insert(start.call_id.clone(), start.attempt_id.clone());
            }
        }
        let seq = entries.first().map(|entry| entry.seq);
        if with_message {
            self.emit_messages(&entries);
            let proposed: Vec<String> = self
                .store
                .session
                .latest_calls()
                .iter()
                .map(|call| call.proposed.call_id.clone())
                .collect();
            for id in proposed {
                if let Some((turn_id, tool)) = self.tool_view_of(&id) {
                    self.emit(&turn_id, seq, Event::ToolDispatch { tool });
                }
            }
        }
        for id in &plan.refused {
            self.emit_result(id, seq);
        }
        if let Some(asked) = &plan.asked {
            self.emit_prompt(asked, seq);
            self.publish();
            pass(StopPoint::PromptDurable);
        }
        if plan.starts.is_empty() {
            return;
        }
        pass(StopPoint::StartDurable);
        let stopped = self
            .running
            .as_ref()
            .is_none_or(|turn| turn.cancel.is_cancelled());
        if stopped {
            return self.not_started(&attempts).await;
        }
        for start in plan.starts {
            self.execute(start, seq);
        }
        self.publish();
    }

    /// TR-05 (11): Stop came between the durable start and the execution.
    pub(super) async fn not_started(&mut self, attempts: &[String]) {
        let records = attempts
            .iter()
            .map(|attempt_id| {
                NotStarted {
                    attempt_id: attempt_id.clone(),
                    reason: "the turn was stopped before it ran".to_owned(),
                }
                .into()
            })
            .collect();
        // When this can't be stored the attempts stay open, which is the safe side (TR-48).
        let stored = self.commit_evidence(records).await;
        if let Some(turn) = &mut self.running {
            turn.calls
                .retain(|_, attempt_id| !attempts.contains(attempt_id));
        }
        if let Ok(entries) = stored {
            for (attempt_id, entry) in attempts.iter().zip(entries) {
                let call_id = self
                    .store
                    .session
                    .attempt(attempt_id)
                    .map(|attempt| attempt.identity.call_id.clone());
                if let Some(call_id) = call_id {
                    self.emit_result(&call_id, Some(entry.seq));
                }
            }
        }
    }

    /// TR-05 (12).
    pub(super) fn execute(&mut self, start: Start, seq: Option<u64>) {
        let Some(turn) = &mut self.running else {
            return;
        };
        let Ok(workspace) = self.workspace.clone() else {
            turn.calls.remove(&start.call_id);
            return;
        };
        let detach = tokio_util::sync::CancellationToken::new();
        turn.detach.insert(start.attempt_id.clone(), detach.clone());
        let context = Context {
            attempt_id: start.attempt_id.clone(),
            argument_digest: start.prepared.argument_digest.clone(),
            idempotency_key: start.idempotency_key,
            boot_id: self.host.boot_id.clone(),
            cancel: turn.cancel.clone(),
            detach,
            jobs: std::sync::Arc::new(OwnJobs {
                outbox: self.outbox.clone(),
            }),
            progress: progress_to(self.outbox.clone(), &start.attempt_id),
            checkpoint: Checkpoint::at(pass_named),
            effects_root: self.effects_root(),
            runtime_folder: self.host.runtime_folder.clone(),
            supervisor_binary: self.host.supervisor_binary.clone(),
            environment: self.host.environment.clone(),
            shell_timeout: self.host.shell_timeout(),
            shell_grace: crate::shared::SHELL_GRACE,
            output_cap: crate::shared::OUTPUT_CAP,
            on_host_loss: self.host.on_host_loss(),
        };
        if let Some((turn_id, tool)) = self.tool_view_of(&start.call_id) {
            self.emit(&turn_id, seq, Event::ToolStarted { tool });
        }
        let registry = std::sync::Arc::clone(&self.host.registry);
        let prepared = start.prepared;
        let executor =
            tokio::spawn(async move { registry.execute(&prepared, &workspace, &context).await });
        let (outbox, spill) = (self.outbox.clone(), self.store.spill.clone());
        let (call_id, attempt_id) = (start.call_id, start.attempt_id);
        tokio::spawn(async move {
            let outcome = match executor.await {
                Ok(outcome) => Some(keep(spill, &attempt_id, outcome).await),
                Err(_) => None,
            };
            // A session that is gone reads the outcome at its next start.
            let _ = outbox.send(Message::ToolEnded {
                call_id,
                attempt_id,
                outcome: Box::new(outcome),
            });
        });
    }
}
