//! A person's retry of an attempt that is proven absent and fenced (TR-35, TR-36).
//!
//! Guarantees: what the inspection found is looked at once more, now; what runs are the stored
//! arguments, behind the same checks, barrier and records as any call, with the original's key; the
//! answer means that the new attempt's start is durable. The person's retry is the approval of this
//! one call, so nobody is asked again; a session in read-only mode refuses it all the same. It runs
//! as a phase of its own, which can be stopped and is no turn: no model hears of its result but by a
//! note.

use std::collections::BTreeMap;

use holdfast_api::ApiError;
use holdfast_api::event::Event;
use holdfast_api::recovery::RetryHint;
use holdfast_api::session::LastError;
use holdfast_api::transcript::LiveMessage;
use holdfast_domain::canonical::check_arguments;
use holdfast_domain::recovery::admission::Refusal;
use holdfast_domain::recovery::attempt::Attempt;
use holdfast_domain::recovery::barrier::{self, InFlight};
use holdfast_domain::recovery::file::FileIntent;
use holdfast_domain::recovery::identity::resource_scope;
use holdfast_domain::recovery::retry;
use holdfast_domain::transcript::record::{ProposedCall, Receipt};
use holdfast_tools::{Prepared, ToolKind, Verdict};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::calls::Start;
use super::{Actor, Running};
use crate::policy::allows_retry;
use crate::stops::{StopPoint, pass};

/// A retry whose start is durable and that does not run yet.
pub(super) struct Retried {
    start: Start,
    seq: Option<u64>,
}

/// What a verifier says now.
pub(super) struct Look {
    pub(super) verdict: Verdict,
    /// What the stored arguments act on now; `None` when that can't be told.
    pub(super) scope: Option<String>,
}

impl Actor {
    /// TR-36: admitted by everything but its own conditions; those are checked here, and its records
    /// made durable. `durable`: records can be stored now.
    pub(super) async fn retry(
        &mut self,
        attempt_id: &str,
        durable: bool,
    ) -> Result<Retried, ApiError> {
        let Some(original) = self.store.session.attempt(attempt_id).cloned() else {
            return Err(self.refused(Refusal::AttemptUnknown));
        };
        let prepared = self.checked_again(&original).await?;
        if !durable {
            return Err(self.refused(Refusal::NotDurable));
        }
        pass(StopPoint::RetryAdmitted);
        let new_id = self.host.source.id();
        let identity = retry::identity(&original.identity, &self.host.source.id(), new_id.clone());
        let call_id = identity.call_id.clone();
        let receipt = Receipt {
            identity,
            read_only: prepared.read_only,
            idempotency_key: String::new(),
            subject: prepared.subject.clone(),
            file: prepared.file.clone(),
            supervised: prepared.kind == ToolKind::Shell,
        };
        let records = retry::records(&original, receipt, &self.host.boot_id);
        let Ok(entries) = self.commit(records, vec![new_id.clone()]).await else {
            return Err(self.refused(Refusal::NotDurable));
        };
        self.take_off_again(&call_id, &new_id);
        // The card of the original says what took its place; the retry has a card of its own.
        let seq = entries.get(1).map(|entry| entry.seq);
        self.emit_result(&original.identity.call_id, seq);
        let dispatched = self.tool_view_of(&call_id);
        if let Some((turn_id, tool)) = dispatched {
            self.emit(&turn_id, seq, Event::ToolDispatch { tool });
        }
        Ok(Retried {
            start: Start {
                call_id,
                attempt_id: new_id,
                prepared,
                idempotency_key: original.idempotency_key,
            },
            seq,
        })
    }

    /// TR-05 (11), (12) of a retry, behind the answer.
    pub(super) async fn run_retry(&mut self, retried: Retried) {
        pass(StopPoint::StartDurable);
        let stopped = self
            .running
            .as_ref()
            .is_none_or(|phase| phase.cancel.is_cancelled());
        if stopped {
            let attempts = [retried.start.attempt_id];
            return self.not_started(&attempts).await;
        }
        self.execute(retried.start, retried.seq);
    }

    /// The causes of TR-30 that need a look, then those of the ordinary pipeline.
    async fn checked_again(&self, original: &Attempt) -> Result<Prepared, ApiError> {
        let call = self.proposal_of(original);
        let prepared = self.prepare(&call).await;
        let gone = |code: &str| code == "unknown_tool" || code == "workspace_missing";
        let look = self.look_again(original).await;
        let scope = match (&look, &prepared) {
            (Some(look), _) => look.scope.clone(),
            // Without a verifier the scope is what the call itself says; it matters for what only
            // reads.
            (None, Ok(prepared)) => {
                resource_scope(&self.id, prepared.resource_scope.as_deref()).ok()
            }
            (None, Err(_)) => None,
        };
        let target = match &prepared {
            Err((code, _)) if gone(code) => None,
            _ => Some(retry::Target {
                read_only: prepared.as_ref().is_ok_and(|prepared| prepared.read_only),
                presence: look
                    .as_ref()
                    .map_or(retry::Presence::Unknown, |look| look.verdict.presence),
                fenced: look.as_ref().is_some_and(|look| look.verdict.fenced),
                scope: scope.as_deref(),
                call: prepared.as_ref().ok().map(|prepared| {
                    (
                        prepared.canonical_tool.as_str(),
                        prepared.argument_digest.as_str(),
                    )
                }),
            }),
        };
        retry::admit(original, target).map_err(|refusal| self.refused(refusal))?;
        let prepared = prepared.map_err(|(code, text)| self.refused_with(&code, text))?;
        if let Some(refusal) = drifted(original.file.as_ref(), prepared.file.as_ref()) {
            return Err(self.refused(refusal));
        }
        if !allows_retry(&self.store.session, prepared.read_only) {
            let text = retry::mode_read_only_text().to_owned();
            return Err(self.refused_with(retry::MODE_READ_ONLY, text));
        }
        let own = original.identity.attempt_id.as_str();
        let in_flight = self.in_flight();
        match barrier::refuses(self.store.session.attempts(), &in_flight, Some(own)) {
            Some(other) => {
                Err(self.refused_with(retry::RECOVERY_REQUIRED, retry::blocked_text(other)))
            }
            None => Ok(prepared),
        }
    }

    /// The stored call of an attempt. Where the log has lost it, one without arguments, which is
    /// never the same call.
    fn proposal_of(&self, attempt: &Attempt) -> ProposedCall {
        let identity = &attempt.identity;
        self.store
            .session
            .call(&identity.call_id)
            .map(|call| call.proposed.clone())
            .unwrap_or_else(|| ProposedCall {
                call_id: identity.call_id.clone(),
                name: identity.canonical_tool.clone(),
                ..ProposedCall::default()
            })
    }

    /// Asks the tool's verifier, in a bounded time. `None`: the tool has none.
    pub(super) async fn look_again(&self, attempt: &Attempt) -> Option<Look> {
        if !self.is_own(attempt) {
            return Some(Look {
                verdict: Verdict::unknown(
                    "the call was made by the session that this one was copied from",
                ),
                scope: Some(attempt.identity.resource_scope.clone()),
            });
        }
        let workspace = self.workspace.as_ref().ok()?;
        let call = self.proposal_of(attempt);
        let verifier = self
            .host
            .registry
            .verifier(&call.name, attempt.file.as_ref(), workspace)?;
        let arguments = check_arguments(&call.arguments).unwrap_or(Value::Null);
        let key = attempt.idempotency_key.clone();
        let look = tokio::spawn(async move {
            let scope = verifier.scope(&arguments).await;
            let verdict = verifier.inspect(&key, &arguments).await;
            Look { verdict, scope }
        });
        let cut_short = look.abort_handle();
        let in_time = tokio::time::timeout(self.host.inspection_time, look).await;
        let unknown = |summary: &str| Look {
            verdict: Verdict::unknown(summary),
            // Where it acts was not found to be another place.
            scope: Some(attempt.identity.resource_scope.clone()),
        };
        Some(match in_time {
            Ok(Ok(look)) => look,
            Ok(Err(_)) => unknown("the look failed by a defect of the tool"),
            Err(_) => {
                cut_short.abort();
                unknown("the look took too long")
            }
        })
    }

    /// What a snapshot says of the retry of an attempt.
    pub(super) fn retry_hint(&self, attempt: &Attempt, in_flight: &InFlight) -> RetryHint {
        let session = &self.store.session;
        let outlook = retry::Outlook {
            enabled: self.host.retry_enabled,
            tool_known: self.host.registry.has(&self.proposal_of(attempt).name),
            mode_read_only: !allows_retry(session, false),
            in_flight,
        };
        match retry::foresee(session, attempt, &outlook) {
            None => RetryHint {
                allowed: true,
                ..RetryHint::default()
            },
            Some((code, reason)) => RetryHint {
                allowed: false,
                code: code.to_owned(),
                reason,
            },
        }
    }

    /// From here on the retry can be stopped, and the session is shown as executing.
    fn take_off_again(&mut self, call_id: &str, attempt_id: &str) {
        let phase = self.host.source.id();
        let cancel = CancellationToken::new();
        self.switch.arm(&phase, cancel.clone());
        self.running = Some(Running {
            turn_id: phase.clone(),
            retry: true,
            compacting: None,
            detach: std::collections::BTreeMap::new(),
            cancel,
            model: None,
            calls: BTreeMap::from([(call_id.to_owned(), attempt_id.to_owned())]),
            live: LiveMessage::default(),
            streaming: false,
        });
        self.publish();
        let started = Event::TurnStarted {
            continuation: false,
        };
        self.emit(&phase, None, started);
    }

    /// Nothing of the retry runs here any more. What it came to is in its own records.
    pub(super) fn end_retry(&mut self, failure: Option<(&str, &str)>) {
        let Some(phase) = self.running.take() else {
            return;
        };
        let (status, code, message) = match failure {
            Some((code, message)) => ("failed", code, message),
            None if phase.cancel.is_cancelled() => ("cancelled", "", ""),
            None => ("completed", "", ""),
        };
        if failure.is_some() {
            self.last_error = Some(LastError {
                code: code.to_owned(),
                message: message.to_owned(),
            });
        }
        self.arm_for_prompt();
        self.publish();
        let done = Event::TurnDone {
            status: status.to_owned(),
            code: code.to_owned(),
            message: message.to_owned(),
        };
        self.emit(&phase.turn_id, None, done);
        self.write_index();
    }
}

/// Between the look and the plan of the write the file became another, or the write would be.
fn drifted(recorded: Option<&FileIntent>, now: Option<&FileIntent>) -> Option<Refusal> {
    match (recorded, now) {
        (None, None) => None,
        (Some(recorded), Some(now)) => {
            if (recorded.existed, &recorded.before) != (now.existed, &now.before) {
                Some(Refusal::NotFenced)
            } else if recorded.resolved_path != now.resolved_path {
                Some(Refusal::SinkChanged)
            } else if recorded.after != now.after {
                Some(Refusal::RetryTargetChanged)
            } else {
                None
            }
        }
        (Some(_), None) | (None, Some(_)) => Some(Refusal::RetryTargetChanged),
    }
}
