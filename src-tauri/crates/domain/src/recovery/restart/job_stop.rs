//! What a restart makes of a model's wish to stop a job, when the program ended before its answer.
//!
//! Guarantee: the answer says what is known of the job, and never that the wish was or was not heard.

use super::{Findings, RestartStep};
use crate::recovery::attempt::Attempt;
use crate::recovery::lifecycle::AttemptState;
use crate::recovery::process::ProcessEvidence;
use crate::transcript::record::{ResultSource, ToolResult};
use crate::transcript::session::Session;

/// The tool by which a model stops a job.
pub const JOB_STOP: &str = "job_stop";
/// What its resource scope begins with; the job's id follows (TR-06).
pub const JOB_SCOPE: &str = "job:";

/// The job that a call of the tool `job_stop` is about.
pub(super) fn job_of(attempt: &Attempt) -> Option<&str> {
    attempt
        .identity
        .resource_scope
        .strip_prefix(JOB_SCOPE)
        .filter(|_| attempt.identity.canonical_tool == JOB_STOP)
}

/// A wish to stop a job has no effect but that job's end, which is the job's own attempt to tell:
/// so it is settled by what is known of that one.
pub(super) fn plan(
    session: &Session,
    findings: &Findings,
    attempt: &Attempt,
    job: &str,
    steps: &mut Vec<RestartStep>,
) {
    let has_ended = match findings.processes.get(job) {
        Some(ProcessEvidence::Running { .. }) => false,
        Some(ProcessEvidence::Exited { alive, .. }) => !alive,
        Some(ProcessEvidence::Lost { stragglers, .. }) => stragglers.is_empty(),
        Some(ProcessEvidence::Fenced | ProcessEvidence::NoFolder) => true,
        None => session
            .attempt(job)
            .is_none_or(|job| job.result.is_some() && !job.job),
    };
    let (state, text) = if has_ended {
        (
            AttemptState::Completed,
            format!("[the program ended before this call was answered; job {job} has ended]\n"),
        )
    } else {
        (
            AttemptState::Failed,
            format!(
                "[the program ended before this call was answered; of job {job} something still \
                 lives, and whether it was told to stop is not known: look at it]\n"
            ),
        )
    };
    let result = ToolResult {
        attempt_id: attempt.identity.attempt_id.clone(),
        state,
        source: ResultSource::Recovered,
        digest: crate::canonical::sha256_hex(text.as_bytes()),
        text,
        effect_summary: String::new(),
        raw: None,
        output: None,
        truncated: false,
        diff: None,
        exit: None,
        may_continue_elsewhere: false,
        duration_ms: 0,
    };
    steps.push(RestartStep::Record(result.into()));
}
