//! What a restart makes of what it finds open (TR-14, TR-17, TR-18).
//!
//! Guarantees: nothing is executed; a missing record is evidence of nothing across damage; a real
//! outcome goes before an unknown one; asking twice gives nothing new (C05).

mod job_stop;

use std::collections::{BTreeMap, BTreeSet};

use super::attempt::Attempt;
use super::identity::Identity;
use super::lifecycle::AttemptState;
use super::process::{ExitReceipt, ProcessEvidence, Straggler, outcome_of};
use super::publication::PublicationEvidence;
use crate::transcript::record::{
    AttemptChanged, AttemptPresumed, InboxPaused, InboxReturned, JobEnded, NotStarted, PromptAsked,
    Record, Restarted, TurnEnded,
};
use crate::transcript::session::Session;

pub use job_stop::{JOB_SCOPE, JOB_STOP};

/// A damaged range of the log: the places of the records that verify on both sides of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// Last sound record before it; 0 when there is none.
    pub after_seq: u64,
    /// First sound record behind it; `None` when it reaches the end.
    pub before_seq: Option<u64>,
}

/// What was looked up before the decision.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// The session's own id. An attempt of another one came here by a copy (TR-06).
    pub session_id: String,
    /// Present boot.
    pub boot_id: String,
    /// What the effect folders of open supervised attempts showed, by attempt id.
    pub processes: BTreeMap<String, ProcessEvidence>,
    /// What the claims of open file writes showed, by attempt id.
    pub publications: BTreeMap<String, PublicationEvidence>,
    /// Damaged ranges.
    pub damage: Vec<Damage>,
    /// Effect folders whose attempt the log does not know.
    pub orphans: Vec<String>,
    /// Whether calls of that tool name may have effects.
    pub mutating_tools: BTreeSet<String>,
    /// Calls without a result, by id, whose arguments rule out any effect (TR-21).
    pub harmless_calls: BTreeSet<String>,
}

/// One thing that the host does after a restart, in this order.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a plan has a handful of steps and is gone after the start"
)]
pub enum RestartStep {
    /// Write this record.
    Record(Record),
    /// Make the real outcome the attempt's result, from its output and this receipt.
    Adopt {
        /// The attempt.
        attempt_id: String,
        /// Its exit receipt.
        receipt: ExitReceipt,
        /// The output does not match the receipt.
        output_incomplete: bool,
    },
    /// The attempt put its file in place: that is its result.
    AdoptWrite {
        /// The attempt.
        attempt_id: String,
        /// Bytes of the new content.
        bytes: u64,
        /// The change.
        diff: Option<String>,
        /// Something else has written to the file since.
        changed_since: bool,
    },
    /// It still runs, or something of it does: watch it as a job.
    Reattach {
        /// The attempt.
        attempt_id: String,
    },
}

/// TR-14, TR-18: the steps for all that is open.
pub fn plan(session: &Session, findings: &Findings) -> Vec<RestartStep> {
    let mut steps = Vec::new();
    let mut found_open = Vec::new();
    for attempt in session.attempts() {
        let before = steps.len();
        plan_attempt(session, findings, attempt, &mut steps);
        let is_news = steps.len() > before && !attempt.found_open;
        let ran = attempt.started_at.is_some()
            || matches!(
                findings.processes.get(&attempt.identity.attempt_id),
                Some(ProcessEvidence::Running { .. } | ProcessEvidence::Exited { .. })
            )
            || adoption(findings, attempt).is_some();
        if is_news && ran && !attempt.read_only && attempt.result.is_none() {
            found_open.push(attempt.identity.attempt_id.clone());
        }
    }
    presume_lost_receipts(session, findings, &mut steps);
    for orphan in &findings.orphans {
        if session.attempt(orphan).is_none() {
            steps.push(presumed(
                Identity {
                    session_id: own_id(session, findings).to_owned(),
                    turn_id: String::new(),
                    step: 0,
                    call_id: String::new(),
                    canonical_tool: "shell".to_owned(),
                    argument_digest: String::new(),
                    attempt_id: orphan.clone(),
                    resource_scope: format!("session:{}", own_id(session, findings)),
                },
                "an effect folder without a receipt in the log was found",
                true,
            ));
        }
    }
    if let Some(asked) = approved_not_started(session) {
        steps.push(RestartStep::Record(asked.into()));
    }
    let returned = returned_message(session, findings);
    if let Some(turn) = session.open_turn().filter(|_| returned.is_none()) {
        steps.push(RestartStep::Record(
            TurnEnded {
                turn_id: turn.id.clone(),
                status: "interrupted".to_owned(),
                code: "host_restarted".to_owned(),
                message: if turn.started {
                    "the program ended during this turn; nothing was repeated".to_owned()
                } else {
                    "the program ended before this turn began; the message is kept".to_owned()
                },
            }
            .into(),
        ));
    }
    let is_returned = returned.is_some();
    steps.extend(returned.map(|record| RestartStep::Record(record.into())));
    if is_returned || session.inbox.needs_pause_after_restart() {
        let paused = InboxPaused {
            recovered: true,
            reason: "host_restarted".to_owned(),
        };
        steps.push(RestartStep::Record(paused.into()));
    }
    if !found_open.is_empty() {
        let restarted = Restarted {
            boot_id: findings.boot_id.clone(),
            attempts: found_open,
        };
        steps.insert(0, RestartStep::Record(restarted.into()));
    }
    steps
}

/// RS-16: a message that was accepted and whose turn never began waits in the queue. Across damage
/// that it never began is not known.
fn returned_message(session: &Session, findings: &Findings) -> Option<InboxReturned> {
    let (seq, turn_id) = session.waiting_message()?;
    let is_behind = |damage: &Damage| damage.before_seq.is_none_or(|before| before > seq);
    (!findings.damage.iter().any(is_behind)).then(|| InboxReturned {
        turn_id: turn_id.to_owned(),
    })
}

/// TR-51: a call that was allowed and has no receipt never started; it is asked again.
fn approved_not_started(session: &Session) -> Option<PromptAsked> {
    let asked = session.approved.as_ref()?;
    let call = session.call(&asked.call_id)?;
    let is_open = call.attempt_id.is_none() && session.answer(&asked.call_id).is_none();
    is_open.then(|| PromptAsked {
        generation: asked.generation + 1,
        reason: "it was allowed, and the program ended before it was started".to_owned(),
        ..asked.clone()
    })
}

fn plan_attempt(
    session: &Session,
    findings: &Findings,
    attempt: &Attempt,
    steps: &mut Vec<RestartStep>,
) {
    let id = &attempt.identity.attempt_id;
    if is_of_another_session(findings, attempt) {
        return plan_copied(attempt, steps);
    }
    if attempt.result.is_some() {
        if attempt.job {
            steps.push(RestartStep::Reattach {
                attempt_id: id.clone(),
            });
        }
        return;
    }
    match attempt.state {
        AttemptState::Pending => plan_pending(session, findings, attempt, steps),
        AttemptState::Started | AttemptState::Running | AttemptState::Unknown
            if attempt.read_only =>
        {
            steps.push(changed(
                attempt,
                AttemptState::Cancelled,
                "the program ended while it ran; it has no effect",
                &[],
            ));
        }
        AttemptState::Started | AttemptState::Running | AttemptState::Unknown => {
            match job_stop::job_of(attempt) {
                Some(job) => job_stop::plan(session, findings, attempt, job, steps),
                None => plan_open(findings, attempt, steps),
            }
        }
        AttemptState::UserConfirmed | AttemptState::UserDismissed => {
            if attempt.supervised && attempt.late.is_none() {
                adopt_or_watch(findings, attempt, steps);
            } else if attempt.late.is_none() {
                steps.extend(adoption(findings, attempt));
            }
        }
        AttemptState::Completed
        | AttemptState::Failed
        | AttemptState::Cancelled
        | AttemptState::NotStarted
        | AttemptState::Interrupted => {}
    }
}

/// TR-06: its executor, if it lives, belongs to the session that this one was copied from, and so
/// does its effect folder: nothing can be looked at, fenced or concluded from here. Where it is
/// open it blocks here too.
fn plan_copied(attempt: &Attempt, steps: &mut Vec<RestartStep>) {
    if attempt.job {
        let ended = JobEnded {
            attempt_id: attempt.identity.attempt_id.clone(),
            reason: "what it left running belongs to the session that this one was copied from"
                .to_owned(),
        };
        steps.push(RestartStep::Record(ended.into()));
    }
    match (attempt.state, attempt.read_only) {
        (
            AttemptState::Pending
            | AttemptState::Started
            | AttemptState::Running
            | AttemptState::Unknown,
            true,
        ) => steps.push(changed(
            attempt,
            AttemptState::Cancelled,
            "the session was copied while it ran; it has no effect",
            &[],
        )),
        (AttemptState::Pending | AttemptState::Started | AttemptState::Running, false) => {
            unknown_once(
                attempt,
                "the session was copied while it ran; what became of it is recorded in the \
                 session that this one was copied from",
                &[],
                steps,
            );
        }
        (
            AttemptState::Unknown
            | AttemptState::Completed
            | AttemptState::Failed
            | AttemptState::Cancelled
            | AttemptState::NotStarted
            | AttemptState::Interrupted
            | AttemptState::UserConfirmed
            | AttemptState::UserDismissed,
            _,
        ) => {}
    }
}

/// The header of a copy names the session that it was copied from.
fn own_id<'a>(session: &'a Session, findings: &'a Findings) -> &'a str {
    if findings.session_id.is_empty() {
        &session.header.session_id
    } else {
        &findings.session_id
    }
}

fn is_of_another_session(findings: &Findings, attempt: &Attempt) -> bool {
    !findings.session_id.is_empty() && attempt.identity.session_id != findings.session_id
}

/// A receipt without a start record. What the effect folder proves goes before what the log lacks.
fn plan_pending(
    session: &Session,
    findings: &Findings,
    attempt: &Attempt,
    steps: &mut Vec<RestartStep>,
) {
    let writes_starts = session
        .header
        .writes
        .iter()
        .any(|kind| kind == "tool_started");
    let never_started =
        attempt.read_only || (writes_starts && !is_across_damage(findings, attempt));
    if let Some(adoption) = adoption(findings, attempt) {
        steps.push(adoption);
        return;
    }
    let evidence = findings
        .processes
        .get(&attempt.identity.attempt_id)
        .filter(|_| !attempt.read_only);
    match evidence {
        Some(ProcessEvidence::Running { .. }) => {
            steps.push(changed(
                attempt,
                AttemptState::Running,
                "it was found running; its start record is missing",
                &[],
            ));
            adopt_or_watch(findings, attempt, steps);
        }
        Some(ProcessEvidence::Exited { .. }) => adopt_or_watch(findings, attempt, steps),
        Some(ProcessEvidence::Lost { reason, stragglers })
            if !never_started || !stragglers.is_empty() =>
        {
            unknown_once(attempt, reason, stragglers, steps);
        }
        Some(ProcessEvidence::Fenced) if !never_started => plan_open(findings, attempt, steps),
        Some(
            ProcessEvidence::Fenced | ProcessEvidence::Lost { .. } | ProcessEvidence::NoFolder,
        )
        | None => {
            let (state, reason) = if never_started {
                (AttemptState::Cancelled, "the call was never started")
            } else {
                (
                    AttemptState::Unknown,
                    "whether it started can't be known from the log",
                )
            };
            steps.push(changed(attempt, state, reason, &[]));
        }
    }
}

fn plan_open(findings: &Findings, attempt: &Attempt, steps: &mut Vec<RestartStep>) {
    let id = &attempt.identity.attempt_id;
    if attempt.file.is_some() {
        return plan_write(findings, attempt, steps);
    }
    match findings.processes.get(id) {
        Some(ProcessEvidence::Fenced) => steps.push(RestartStep::Record(
            NotStarted {
                attempt_id: id.clone(),
                reason: "the program ended before the command was started, and the start is now \
                         fenced: it never ran"
                    .to_owned(),
            }
            .into(),
        )),
        Some(ProcessEvidence::Running { .. } | ProcessEvidence::Exited { .. }) => {
            adopt_or_watch(findings, attempt, steps);
        }
        Some(ProcessEvidence::Lost { reason, stragglers }) => {
            unknown_once(attempt, reason, stragglers, steps);
        }
        Some(ProcessEvidence::NoFolder) | None => {
            let reason = if attempt.supervised {
                "no trace of the command's supervisor is left"
            } else {
                "the program ended while it ran"
            };
            unknown_once(attempt, reason, &[], steps);
        }
    }
}

/// A write that was cut short. What it left is bound to the attempt, so that the answer speaks of
/// what this attempt did, and not only of what the file is now.
fn plan_write(findings: &Findings, attempt: &Attempt, steps: &mut Vec<RestartStep>) {
    let id = &attempt.identity.attempt_id;
    match findings.publications.get(id) {
        Some(PublicationEvidence::Absent) => steps.push(RestartStep::Record(
            NotStarted {
                attempt_id: id.clone(),
                reason: "the program ended before the new content was put in place, and nothing \
                         is left that could still do it: the write was not started on the file"
                    .to_owned(),
            }
            .into(),
        )),
        Some(PublicationEvidence::Done { .. }) => steps.extend(adoption(findings, attempt)),
        Some(PublicationEvidence::Open { reason }) => unknown_once(attempt, reason, &[], steps),
        None => unknown_once(attempt, "the program ended while it ran", &[], steps),
    }
}

/// The write that this attempt is proven to have done.
fn adoption(findings: &Findings, attempt: &Attempt) -> Option<RestartStep> {
    let id = &attempt.identity.attempt_id;
    match findings.publications.get(id)? {
        PublicationEvidence::Done {
            bytes,
            diff,
            changed_since,
        } => Some(RestartStep::AdoptWrite {
            attempt_id: id.clone(),
            bytes: *bytes,
            diff: diff.clone(),
            changed_since: *changed_since,
        }),
        PublicationEvidence::Absent | PublicationEvidence::Open { .. } => None,
    }
}

fn adopt_or_watch(findings: &Findings, attempt: &Attempt, steps: &mut Vec<RestartStep>) {
    let id = &attempt.identity.attempt_id;
    match findings.processes.get(id) {
        Some(ProcessEvidence::Exited {
            receipt,
            output_incomplete,
            alive,
        }) => {
            let outcome = outcome_of(receipt);
            if outcome.state != AttemptState::Unknown {
                steps.push(RestartStep::Adopt {
                    attempt_id: id.clone(),
                    receipt: receipt.clone(),
                    output_incomplete: *output_incomplete,
                });
            } else if !attempt.state.is_by_person() {
                // An end that is not proven is no result, and is told once (TR-10, C05).
                unknown_once(attempt, &outcome.effect_summary, &receipt.stragglers, steps);
            }
            if *alive {
                steps.push(RestartStep::Reattach {
                    attempt_id: id.clone(),
                });
            }
        }
        Some(ProcessEvidence::Running { .. }) => steps.push(RestartStep::Reattach {
            attempt_id: id.clone(),
        }),
        Some(
            ProcessEvidence::Fenced | ProcessEvidence::Lost { .. } | ProcessEvidence::NoFolder,
        )
        | None => {}
    }
}

/// An attempt that is unknown already stays so without another record (C05).
fn unknown_once(
    attempt: &Attempt,
    reason: &str,
    stragglers: &[Straggler],
    steps: &mut Vec<RestartStep>,
) {
    if attempt.state != AttemptState::Unknown || attempt.stragglers != stragglers {
        steps.push(changed(attempt, AttemptState::Unknown, reason, stragglers));
    }
}

fn changed(
    attempt: &Attempt,
    state: AttemptState,
    reason: &str,
    stragglers: &[Straggler],
) -> RestartStep {
    RestartStep::Record(
        AttemptChanged {
            attempt_id: attempt.identity.attempt_id.clone(),
            state,
            reason: reason.to_owned(),
            stragglers: stragglers.to_vec(),
        }
        .into(),
    )
}

fn presumed(identity: Identity, reason: &str, supervised: bool) -> RestartStep {
    RestartStep::Record(
        AttemptPresumed {
            identity,
            reason: reason.to_owned(),
            supervised,
        }
        .into(),
    )
}

/// Its receipt is before a damaged range. A turn that ended before that range is no proof: what is
/// lost may have continued it (TR-51).
fn is_across_damage(findings: &Findings, attempt: &Attempt) -> bool {
    findings
        .damage
        .iter()
        .any(|damage| attempt.receipt_seq <= damage.after_seq)
}

/// TR-14: a proposal without a receipt, with damage behind it, may have had one.
fn presume_lost_receipts(session: &Session, findings: &Findings, steps: &mut Vec<RestartStep>) {
    for call in session.unanswered() {
        let damaged = findings
            .damage
            .iter()
            .any(|damage| call.seq <= damage.after_seq);
        let mutating = findings.mutating_tools.contains(&call.proposed.name)
            && !findings.harmless_calls.contains(&call.proposed.call_id);
        if call.attempt_id.is_none() && damaged && mutating {
            steps.push(presumed(
                Identity {
                    session_id: own_id(session, findings).to_owned(),
                    turn_id: call.turn_id.clone(),
                    step: call.step,
                    call_id: call.proposed.call_id.clone(),
                    canonical_tool: call.proposed.name.clone(),
                    argument_digest: String::new(),
                    // The same damage gives the same id, so that a second restart adds nothing.
                    attempt_id: crate::canonical::sha256_hex(
                        format!("{}/{}", own_id(session, findings), call.proposed.call_id)
                            .as_bytes(),
                    )
                    .chars()
                    .take(32)
                    .collect(),
                    resource_scope: format!("session:{}", own_id(session, findings)),
                },
                "the log is damaged behind this call; whether it ran can't be known",
                false,
            ));
        }
    }
}
