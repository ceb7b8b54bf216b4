//! The first thing that an opened session does: account for what is open (TR-14, TR-18).
//!
//! Guarantees: nothing is executed; a real outcome is adopted once, by the holder of the session's
//! lock; a second restart in the middle of this comes to the same end (C05).

use std::collections::BTreeMap;
use std::path::Path;

use holdfast_domain::recovery::attempt::Attempt;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{ExitReceipt, ProcessEvidence};
use holdfast_domain::recovery::publication::PublicationEvidence;
use holdfast_domain::recovery::restart::{Findings, RestartStep, plan};
use holdfast_domain::transcript::record::{Record, ResultSource};
use holdfast_supervisor::{Claim, SupervisorError};
use holdfast_tools::{Interrupted, finish_write};

use super::Actor;
use super::ends::{drop_folder, keep};
use super::jobs::outcome;
use crate::stops::{StopPoint, pass};

/// Why what is open is accounted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Occasion {
    /// The session was opened.
    Opened,
    /// Storage works again; what this host runs goes on.
    Healed,
}

impl Actor {
    pub(super) async fn recover(&mut self, occasion: Occasion) {
        if let Some((length, saved_as)) = self.condition.tail.take() {
            self.notice(
                "log_tail_repaired",
                format!(
                    "the last {length} bytes of the session's log were incomplete; they are kept \
                     in {saved_as}; everything before them is intact"
                ),
            );
        }
        if !self.condition.damage.is_empty() && occasion == Occasion::Opened {
            let places: Vec<String> = self
                .condition
                .damage
                .iter()
                .map(|damage| format!("behind record {}", damage.after_seq))
                .collect();
            self.notice(
                "log_damaged",
                format!(
                    "the session's log is damaged {}; every record that can be read is kept, and \
                     what may have happened there is shown as unknown",
                    places.join(", ")
                ),
            );
        }
        let findings = self.findings().await;
        let mut steps = plan(&self.store.session, &findings);
        if occasion == Occasion::Healed {
            let returns = steps
                .iter()
                .any(|step| matches!(step, RestartStep::Record(Record::InboxReturned(_))));
            steps.retain(|step| self.is_due_without_restart(step, returns));
        }
        if !steps.is_empty() {
            pass(StopPoint::RecoveryBegun);
        }
        let mut failed = false;
        for step in steps {
            let changed = attempt_of_step(&step);
            // What runs is watched even when nothing can be stored.
            if failed && !matches!(step, RestartStep::Reattach { .. }) {
                continue;
            }
            let stored = match step {
                RestartStep::Record(record) => self
                    .commit_evidence(vec![record])
                    .await
                    .map(|_| ())
                    .map_err(|error| error.to_string()),
                RestartStep::Adopt {
                    attempt_id,
                    receipt,
                    output_incomplete,
                } => self.adopt(&attempt_id, &receipt, output_incomplete).await,
                RestartStep::AdoptWrite {
                    attempt_id,
                    bytes,
                    diff,
                    changed_since,
                } => {
                    self.adopt_write(&attempt_id, bytes, diff, changed_since)
                        .await
                }
                RestartStep::Reattach { attempt_id } => {
                    self.reattach_or_keep(&attempt_id, &findings);
                    Ok(())
                }
            };
            if let Err(error) = stored {
                // What could not be stored is found again at the next opening.
                tracing::warn!(%error, "recovery could not be stored");
                failed = true;
                continue;
            }
            pass(StopPoint::RecoveryHalf);
            let call_id = changed
                .and_then(|id| self.store.session.attempt(&id))
                .map(|attempt| attempt.identity.call_id.clone());
            if let Some(call_id) = call_id {
                self.emit_result(&call_id, None);
            }
        }
        for (attempt_id, evidence) in &findings.processes {
            if let ProcessEvidence::Lost { stragglers, .. } = evidence
                && !stragglers.is_empty()
            {
                self.watch_stragglers(attempt_id);
            }
        }
        if occasion == Occasion::Opened {
            // What was found waiting must not run by itself, whether or not that could be stored.
            self.queue_held = self.store.session.inbox.needs_pause_after_restart();
        }
        self.sweep();
        self.refresh_repeat().await;
        if self.running.is_none() {
            self.arm_for_prompt();
        }
    }

    /// Without a restart, what this host owns is not open, and nothing was found again.
    fn is_due_without_restart(&self, step: &RestartStep, returns: bool) -> bool {
        // A queue that this host knows stands still only for what comes back into it.
        if matches!(step, RestartStep::Record(Record::InboxPaused(_))) {
            return returns;
        }
        if matches!(step, RestartStep::Record(Record::Restarted(_))) {
            return false;
        }
        let session = &self.store.session;
        if let RestartStep::Record(Record::AttemptChanged(change)) = step
            && session
                .attempt(&change.attempt_id)
                .is_some_and(|attempt| attempt.state == change.state)
        {
            // It says the same in other words, under the hands of whoever resolves it.
            return false;
        }
        attempt_of_step(step)
            .is_none_or(|id| !self.jobs.contains_key(&id) && !self.in_flight().contains(&id))
    }

    fn reattach_or_keep(&mut self, attempt_id: &str, findings: &Findings) {
        let has_result = self
            .store
            .session
            .attempt(attempt_id)
            .is_some_and(|attempt| attempt.result.is_some() || attempt.late.is_some());
        let has_receipt = matches!(
            findings.processes.get(attempt_id),
            Some(ProcessEvidence::Exited { .. })
        );
        if has_result {
            self.watch_survivors(attempt_id);
        } else if has_receipt {
            // Its end was asked for and is not proven: that is all there will be.
            self.watch_stragglers(attempt_id);
        } else {
            self.reattach(attempt_id);
        }
    }

    async fn adopt(
        &mut self,
        attempt_id: &str,
        receipt: &ExitReceipt,
        incomplete: bool,
    ) -> Result<(), String> {
        let folder = self.effects_root().join(attempt_id);
        let command = self.command_of(attempt_id);
        let Some(outcome) = outcome(folder, command, receipt.clone(), Some(incomplete)).await
        else {
            return Err("its result could not be read".to_owned());
        };
        let ended = keep(self.store.spill.clone(), attempt_id, outcome).await;
        self.store_outcome(attempt_id, ended, ResultSource::Recovered)
            .await
            .map(|_| ())
            .map_err(|(_, message)| message)
    }

    /// The write is proven to be this attempt's.
    async fn adopt_write(
        &mut self,
        attempt_id: &str,
        bytes: u64,
        diff: Option<String>,
        changed_since: bool,
    ) -> Result<(), String> {
        let attempt = self.store.session.attempt(attempt_id);
        let Some((attempt, intent)) =
            attempt.and_then(|attempt| Some((attempt, attempt.file.as_ref()?)))
        else {
            return Ok(());
        };
        let outcome = finish_write(intent, &attempt.subject, bytes, diff, changed_since);
        let ended = keep(self.store.spill.clone(), attempt_id, outcome).await;
        self.store_outcome(attempt_id, ended, ResultSource::Recovered)
            .await
            .map(|_| ())
            .map_err(|(_, message)| message)
    }

    /// What the open writes left. Nothing is concluded while the workspace can't be read.
    fn publications(&self) -> BTreeMap<String, PublicationEvidence> {
        let Ok(workspace) = &self.workspace else {
            return BTreeMap::new();
        };
        let root = self.effects_root();
        let in_flight = self.in_flight();
        self.store
            .session
            .attempts()
            .filter(|attempt| is_open_write(attempt) && self.is_own(attempt))
            .filter(|attempt| !in_flight.contains(&attempt.identity.attempt_id))
            // What a person settled is looked at where something was left, and not fenced again.
            .filter(|attempt| {
                !attempt.state.is_by_person() || root.join(&attempt.identity.attempt_id).exists()
            })
            .filter_map(|attempt| {
                let write = self.interrupted(attempt, &root)?;
                Some((attempt.identity.attempt_id.clone(), write.look(workspace)))
            })
            .collect()
    }

    fn interrupted<'a>(&self, attempt: &'a Attempt, root: &'a Path) -> Option<Interrupted<'a>> {
        Some(Interrupted {
            intent: attempt.file.as_ref()?,
            attempt_id: &attempt.identity.attempt_id,
            effects_root: root,
            same_boot: attempt.boot_id == self.host.boot_id && !attempt.boot_id.is_empty(),
        })
    }

    /// Reads whole outputs for their digests, so not on a thread of the runtime.
    async fn findings(&self) -> Findings {
        let session = &self.store.session;
        let root = self.effects_root();
        let in_flight = self.in_flight();
        let open: Vec<Attempt> = session
            .attempts()
            .filter(|attempt| is_open(attempt) && self.is_own(attempt))
            // What this host runs is looked at by its watcher, and must not be fenced.
            .filter(|attempt| {
                let id = &attempt.identity.attempt_id;
                !self.jobs.contains_key(id) && !in_flight.contains(id)
            })
            .cloned()
            .collect();
        let (looked_in, boot_id) = (root.clone(), self.host.boot_id.clone());
        let looks = tokio::task::spawn_blocking(move || -> BTreeMap<String, ProcessEvidence> {
            open.iter()
                .filter_map(|attempt| match look(&looked_in, attempt, &boot_id) {
                    Ok(evidence) => Some((attempt.identity.attempt_id.clone(), evidence)),
                    Err(error) => {
                        tracing::warn!(code = error.code(), "an effect folder can't be read");
                        None
                    }
                })
                .collect()
        });
        // A defect of the look leaves all of them unknown, which is the safe side.
        let processes = looks.await.unwrap_or_default();
        let orphans = holdfast_supervisor::list(&root)
            .unwrap_or_default()
            .into_iter()
            .filter(|name| session.attempt(name).is_none())
            .collect();
        Findings {
            session_id: self.id.clone(),
            boot_id: self.host.boot_id.clone(),
            processes,
            publications: self.publications(),
            damage: self.condition.damage.clone(),
            orphans,
            mutating_tools: self.host.mutating_tools(),
            harmless_calls: session
                .unanswered()
                .iter()
                .map(|call| &call.proposed)
                .filter(|call| !self.host.is_mutating(call))
                .map(|call| call.call_id.clone())
                .collect(),
        }
    }

    /// It was made by this session, not by one that this is a copy of (TR-06).
    pub(super) fn is_own(&self, attempt: &Attempt) -> bool {
        attempt.identity.session_id == self.id
    }

    /// Removes effect folders whose attempt has its result. Those of unknown attempts stay.
    fn sweep(&self) {
        let root = self.effects_root();
        for name in holdfast_supervisor::list(&root).unwrap_or_default() {
            let settled = self.store.session.attempt(&name).is_some_and(|attempt| {
                (attempt.result.is_some() && !attempt.job)
                    || attempt.state == AttemptState::NotStarted
                    || attempt.state == AttemptState::Cancelled
            });
            if settled && !self.jobs.contains_key(&name) {
                drop_folder(&root.join(name));
            }
        }
        self.sweep_temporary_files();
    }

    /// Removes the temporary files of writes that a crash cut short. Before the outcome is durable
    /// they are evidence.
    fn sweep_temporary_files(&self) {
        let Ok(workspace) = &self.workspace else {
            return;
        };
        let root = self.effects_root();
        let cut_short = |attempt: &&Attempt| {
            self.is_own(attempt)
                && attempt.state.is_final()
                && (attempt.found_open || attempt.result.is_none())
        };
        for attempt in self.store.session.attempts().filter(cut_short) {
            let Some(write) = self.interrupted(attempt, &root) else {
                continue;
            };
            if let Err(error) = write.remove_leftover(workspace) {
                tracing::warn!(code = error.code(), "a temporary file is left");
            }
        }
    }
}

/// Worth a look: a write without a settled end.
fn is_open_write(attempt: &Attempt) -> bool {
    attempt.file.is_some()
        && attempt.superseded_by.is_none()
        && match attempt.state {
            AttemptState::Pending
            | AttemptState::Started
            | AttemptState::Running
            | AttemptState::Unknown => true,
            AttemptState::UserConfirmed | AttemptState::UserDismissed => attempt.late.is_none(),
            AttemptState::Completed
            | AttemptState::Failed
            | AttemptState::Interrupted
            | AttemptState::Cancelled
            | AttemptState::NotStarted => false,
        }
}

/// Worth a look: supervised, and without a settled end, or with processes that live on.
fn is_open(attempt: &Attempt) -> bool {
    attempt.supervised
        && match attempt.state {
            AttemptState::Pending
            | AttemptState::Started
            | AttemptState::Running
            | AttemptState::Unknown => true,
            AttemptState::UserConfirmed | AttemptState::UserDismissed => attempt.late.is_none(),
            AttemptState::Completed
            | AttemptState::Failed
            | AttemptState::Interrupted
            | AttemptState::Cancelled
            | AttemptState::NotStarted => attempt.job,
        }
}

/// TR-18. A folder that was never made is made now and fenced: whoever would still come to start
/// the command finds the start taken. That proves something in the same boot only.
fn look(root: &Path, attempt: &Attempt, boot_id: &str) -> Result<ProcessEvidence, SupervisorError> {
    let id = &attempt.identity.attempt_id;
    let folder = root.join(id);
    let evidence = holdfast_supervisor::look(
        &folder,
        id,
        &attempt.identity.argument_digest,
        &attempt.boot_id,
        true,
    )?;
    let may_fence = evidence == ProcessEvidence::NoFolder
        && attempt.boot_id == boot_id
        && !boot_id.is_empty()
        // It was looked at before, when there was one: that somebody took it away proves nothing.
        && attempt.state != AttemptState::Unknown
        && !attempt.state.is_by_person();
    if !may_fence {
        return Ok(evidence);
    }
    let made = holdfast_files::create_private_folder(&folder);
    if made.is_err() {
        return Ok(evidence);
    }
    match holdfast_supervisor::claim_void(&folder, id, boot_id, 0)? {
        Claim::Won => Ok(ProcessEvidence::Fenced),
        Claim::Lost(_) => holdfast_supervisor::look(
            &folder,
            id,
            &attempt.identity.argument_digest,
            &attempt.boot_id,
            true,
        ),
    }
}

fn attempt_of_step(step: &RestartStep) -> Option<String> {
    match step {
        RestartStep::Record(record) => attempt_of(record),
        RestartStep::Adopt { attempt_id, .. }
        | RestartStep::AdoptWrite { attempt_id, .. }
        | RestartStep::Reattach { attempt_id } => Some(attempt_id.clone()),
    }
}

/// The attempt whose state a record tells.
pub(super) fn attempt_of(record: &Record) -> Option<String> {
    match record {
        Record::NotStarted(record) => Some(record.attempt_id.clone()),
        Record::AttemptChanged(record) => Some(record.attempt_id.clone()),
        Record::AttemptPresumed(record) => Some(record.identity.attempt_id.clone()),
        Record::ToolResult(record) => Some(record.attempt_id.clone()),
        Record::LateEvidence(record) => Some(record.result.attempt_id.clone()),
        _ => None,
    }
}
