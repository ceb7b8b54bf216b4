//! The recovery snapshot and a person's actions on it (TR-25…TR-34, TR-38); a retry's own part
//! is in `retry.rs`.

use holdfast_api::ApiError;
use holdfast_api::recovery::{CallRecord, ToolRecoverySnapshot};
use holdfast_api::session::session_path;
use holdfast_domain::canonical::check_arguments;
use holdfast_domain::recovery::admission::{Action, ActionRequest, Refusal, Situation, admit};
use holdfast_domain::recovery::attempt::{
    Attempt, Evidence, Inspection, InspectionState, Resolution,
};
use holdfast_domain::recovery::barrier;
use holdfast_domain::recovery::process::ProcessEvidence;
use holdfast_domain::transcript::record::{Inspected, Record, Resolved};
use holdfast_supervisor::Presence;
use holdfast_tools::Verdict;

use super::Actor;
use super::retry::Retried;

impl Actor {
    /// TR-25, TR-26: the same view for the same state, byte for byte.
    pub(super) fn recovery_snapshot(&self) -> ToolRecoverySnapshot {
        let session = &self.store.session;
        let in_flight = self.in_flight();
        ToolRecoverySnapshot {
            silent: false,
            statistics: session.statistics(&in_flight),
            session_path: session_path(&self.id),
            runtime_epoch: self.commits.current().runtime_epoch.clone(),
            revision: String::new(),
            calls: barrier::unresolved(session.attempts(), &in_flight)
                .into_iter()
                .map(|attempt| CallRecord {
                    retry: Some(self.retry_hint(attempt, &in_flight)),
                    ..CallRecord::of(attempt)
                })
                .collect(),
            retry_enabled: self.host.retry_enabled,
            dismiss_enabled: true,
        }
        .sealed()
    }

    /// TR-29…TR-36: admitted, durable, then answered with the new snapshot. What is admitted as a
    /// retry runs behind the answer.
    pub(super) async fn resolve(
        &mut self,
        request: &ActionRequest,
        source: &str,
    ) -> Result<(ToolRecoverySnapshot, Option<Retried>), ApiError> {
        // Storage that works again may bring the real outcome with it, so this comes first; what is
        // still not durable is said behind all other causes (TR-30).
        let durable = self.writable().await.is_ok();
        let snapshot = self.recovery_snapshot();
        let stragglers_live = self.stragglers_live(&request.attempt_id).await;
        let attempt = self.store.session.attempt(&request.attempt_id);
        let situation = Situation {
            closed: self.closed,
            switching: false,
            turn_running: self.running.is_some(),
            session_path: &snapshot.session_path,
            runtime_epoch: &snapshot.runtime_epoch,
            revision: &snapshot.revision,
            attempt,
            executor_alive: self.in_flight().contains(&request.attempt_id) || stragglers_live,
            retry_enabled: self.host.retry_enabled,
        };
        admit(request, &situation).map_err(|refusal| self.refused(refusal))?;
        if !durable && request.action != Action::Retry {
            return Err(self.refused(Refusal::NotDurable));
        }
        let record: Record = match request.action {
            Action::Inspect => {
                let inspection = self.inspect(&request.attempt_id).await?;
                Inspected {
                    attempt_id: request.attempt_id.clone(),
                    inspection,
                }
                .into()
            }
            Action::Confirm => resolved(request, Resolution::Confirm, source),
            Action::Reject => resolved(request, Resolution::Reject, source),
            Action::Dismiss => resolved(request, Resolution::Dismiss, source),
            Action::Retry => {
                let retried = self.retry(&request.attempt_id, durable).await?;
                return Ok((self.recovery_snapshot(), Some(retried)));
            }
        };
        if self.commit(vec![record], Vec::new()).await.is_err() {
            return Err(self.refused(Refusal::NotDurable));
        }
        let call_id = self
            .store
            .session
            .attempt(&request.attempt_id)
            .map(|attempt| attempt.identity.call_id.clone());
        if let Some(call_id) = call_id {
            self.emit_result(&call_id, Some(self.store.session.last_seq));
        }
        let mut snapshot = self.recovery_snapshot();
        if request.action == Action::Inspect {
            self.reveal(&mut snapshot, &request.attempt_id);
        }
        Ok((snapshot, None))
    }

    /// TR-27: only the reply to an inspection carries the arguments, of that attempt alone.
    fn reveal(&self, snapshot: &mut ToolRecoverySnapshot, attempt_id: &str) {
        let Some(attempt) = self.store.session.attempt(attempt_id) else {
            return;
        };
        let arguments = self
            .store
            .session
            .call(&attempt.identity.call_id)
            .map(|call| {
                check_arguments(&call.proposed.arguments)
                    .unwrap_or_else(|_| serde_json::Value::String(call.proposed.arguments.clone()))
            });
        for call in &mut snapshot.calls {
            if call.identity.attempt_id == attempt_id {
                call.arguments.clone_from(&arguments);
            }
        }
    }

    /// TR-30, TR-41: with the present snapshot.
    pub(super) fn refused(&self, refusal: Refusal) -> ApiError {
        self.refused_with(refusal.code(), refusal.to_string())
    }

    /// The same for a cause of the ordinary pipeline.
    pub(super) fn refused_with(&self, code: &str, message: String) -> ApiError {
        let mut error = ApiError::conflict(code, message);
        error.snapshot = Some(Box::new(self.recovery_snapshot()));
        error
    }

    /// SV-04: something of it lives: its supervisor is at work, which knows also those that it may
    /// not signal; or a process carries the attempt's id.
    async fn stragglers_live(&self, attempt_id: &str) -> bool {
        let supervised = self
            .store
            .session
            .attempt(attempt_id)
            .is_some_and(|attempt| attempt.supervised);
        if !supervised {
            return false;
        }
        if self.presence(attempt_id).await != Presence::Absent {
            return true;
        }
        let id = attempt_id.to_owned();
        tokio::task::spawn_blocking(move || holdfast_supervisor::stragglers(&id))
            .await
            .is_ok_and(|found| found.is_ok_and(|found| !found.is_empty()))
    }

    /// TR-32: looks, and executes nothing.
    async fn inspect(&self, attempt_id: &str) -> Result<Inspection, ApiError> {
        let Some(attempt) = self.store.session.attempt(attempt_id).cloned() else {
            return Err(self.refused(Refusal::AttemptUnknown));
        };
        let inspection_id = self.host.source.id();
        let unknown = |summary: &str| Inspection {
            inspection_id: inspection_id.clone(),
            state: InspectionState::Unknown,
            evidence: Evidence::None,
            summary: summary.to_owned(),
        };
        if !self.is_own(&attempt) {
            return Ok(unknown(
                "this session is a copy; the call was made by the session that it was copied from, \
                 whose commands and writes can't be looked at from here",
            ));
        }
        if let Some(look) = self.look_again(&attempt).await {
            if look.scope.as_deref() != Some(attempt.identity.resource_scope.as_str()) {
                return Err(self.refused(Refusal::SinkChanged));
            }
            return Ok(inspected(inspection_id, look.verdict));
        }
        if attempt.file.is_some() {
            return Ok(unknown("the workspace can't be read now"));
        }
        if attempt.supervised {
            return Ok(self.inspect_process(&attempt, inspection_id).await);
        }
        Ok(unknown("this tool leaves nothing to look at"))
    }

    async fn inspect_process(&self, attempt: &Attempt, inspection_id: String) -> Inspection {
        let folder = self.effects_root().join(&attempt.identity.attempt_id);
        let (id, digest, boot) = (
            attempt.identity.attempt_id.clone(),
            attempt.identity.argument_digest.clone(),
            attempt.boot_id.clone(),
        );
        let look = tokio::task::spawn_blocking(move || {
            let evidence = holdfast_supervisor::look(&folder, &id, &digest, &boot, false);
            (evidence, holdfast_supervisor::stragglers(&id))
        });
        let found = tokio::time::timeout(self.host.inspection_time, look).await;
        let (evidence, stragglers) = match found {
            Ok(Ok((evidence, stragglers))) => (evidence.ok(), stragglers.unwrap_or_default()),
            Ok(Err(_)) | Err(_) => (None, Vec::new()),
        };
        let (ended_by, exit) = match &evidence {
            Some(ProcessEvidence::Exited { receipt, .. }) => (
                serde_json::to_value(receipt.ended_by)
                    .ok()
                    .and_then(|word| word.as_str().map(str::to_owned))
                    .unwrap_or_default(),
                receipt.code,
            ),
            Some(
                ProcessEvidence::NoFolder
                | ProcessEvidence::Fenced
                | ProcessEvidence::Running { .. }
                | ProcessEvidence::Lost { .. },
            )
            | None => (String::new(), None),
        };
        // Those that may not be signalled hide their environment; their supervisor knows them.
        let (watched, named) = match &evidence {
            Some(ProcessEvidence::Running { .. }) => (true, Vec::new()),
            Some(ProcessEvidence::Exited { receipt, alive, .. }) if *alive => {
                (true, receipt.stragglers.clone())
            }
            Some(
                ProcessEvidence::Exited { .. }
                | ProcessEvidence::NoFolder
                | ProcessEvidence::Fenced
                | ProcessEvidence::Lost { .. },
            )
            | None => (false, Vec::new()),
        };
        let mut stragglers = stragglers;
        for process in named {
            if stragglers.iter().all(|known| known.pid != process.pid) {
                stragglers.push(process);
            }
        }
        let alive = watched || !stragglers.is_empty();
        Inspection {
            inspection_id,
            state: InspectionState::Unknown,
            evidence: Evidence::Process {
                alive,
                ended_by,
                exit,
                stragglers,
            },
            summary: if alive {
                "something of the command still runs; its outcome is open"
            } else {
                "nothing of the command runs any more; what it did before it ended can't be known \
                 from here"
            }
            .to_owned(),
        }
    }
}

/// TR-32, TR-37. Of a file, what is there is its content, whoever wrote it.
fn inspected(inspection_id: String, verdict: Verdict) -> Inspection {
    let state = match (
        verdict.presence.as_inspected(verdict.fenced),
        &verdict.evidence,
    ) {
        (InspectionState::Present, Evidence::File { .. }) => {
            InspectionState::PostconditionSatisfied
        }
        (state, _) => state,
    };
    Inspection {
        inspection_id,
        state,
        evidence: verdict.evidence,
        summary: verdict.summary,
    }
}

fn resolved(request: &ActionRequest, resolution: Resolution, source: &str) -> Record {
    Resolved {
        attempt_id: request.attempt_id.clone(),
        resolution,
        inspection_id: request.inspection_id.clone(),
        source: source.to_owned(),
    }
    .into()
}
