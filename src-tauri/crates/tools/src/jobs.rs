//! The model's tools for jobs: looking at one, and ending one.
//!
//! Guarantee: neither starts anything. What a stop leads to is told by the job's own attempt; a stop
//! is done when the job has really ended (RS-09).

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use holdfast_domain::recovery::lifecycle::AttemptState;

use crate::context::Context;
use crate::error::ToolError;
use crate::outcome::ToolOutcome;
use crate::text::visible;

/// Bytes of output that one look shows.
const SHOWN: u64 = 24 * 1024;

/// How long a stop is waited for, besides the grace: as long as a supervisor takes at most.
const STOP_PATIENCE: Duration = Duration::from_secs(15);

/// A part of a job's output, and what is known of the job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobLook {
    /// One line: that it runs, or how it ended.
    pub state: String,
    /// Where the text begins, in bytes.
    pub offset: u64,
    /// Where the next part begins.
    pub next: u64,
    /// Bytes that are there now.
    pub length: u64,
    /// The output from `offset` to `next`.
    pub text: String,
}

/// The jobs of the session that a call belongs to.
#[async_trait]
pub trait Jobs: fmt::Debug + Send + Sync {
    /// What it printed from that byte on, at most `limit` bytes.
    ///
    /// # Errors
    /// Why there is nothing to look at.
    async fn look(&self, id: &str, offset: u64, limit: u64) -> Result<JobLook, String>;

    /// Tells it to stop, and waits for its real end; answers how it ended.
    ///
    /// # Errors
    /// There is nothing to stop, and why.
    async fn stop(&self, id: &str) -> Result<String, String>;
}

/// A session without jobs.
#[derive(Debug, Clone, Copy)]
pub struct NoJobs;

#[async_trait]
impl Jobs for NoJobs {
    async fn look(&self, _: &str, _: u64, _: u64) -> Result<JobLook, String> {
        Err("there are no jobs here".to_owned())
    }

    async fn stop(&self, _: &str) -> Result<String, String> {
        Err("there are no jobs here".to_owned())
    }
}

/// `job_output`. Without an offset it shows the end of what is there.
pub(crate) async fn output(id: &str, offset: Option<u64>, context: &Context) -> ToolOutcome {
    let look = async {
        let from = match offset {
            Some(offset) => offset,
            None => {
                let length = context.jobs.look(id, 0, 0).await?.length;
                length.saturating_sub(SHOWN)
            }
        };
        context.jobs.look(id, from, SHOWN).await
    };
    let found = tokio::select! {
        biased;
        found = look => found,
        () = context.cancel.cancelled() => return ToolOutcome::failed(&ToolError::Cancelled),
    };
    match found {
        Ok(look) => ToolOutcome::completed(shown(id, &look)),
        Err(reason) => ToolOutcome::failed(&ToolError::Job(reason)),
    }
}

fn shown(id: &str, look: &JobLook) -> String {
    let text = match look.offset {
        // It may begin inside a character.
        1.. => look.text.trim_start_matches('\u{fffd}'),
        0 => &look.text,
    };
    let mut text = visible(text.as_bytes());
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let rest = if look.next < look.length {
        format!("; go on with offset {}", look.next)
    } else {
        String::new()
    };
    format!(
        "{text}[job {id}: {}]\n[output: bytes {} to {} of {}{rest}]\n",
        look.state, look.offset, look.next, look.length
    )
}

/// `job_stop`.
pub(crate) async fn stop(id: &str, context: &Context) -> ToolOutcome {
    let patience = STOP_PATIENCE + context.shell_grace;
    let answer = |state, text: String| ToolOutcome::bare(state, format!("[job {id}: {text}]\n"));
    tokio::select! {
        biased;
        stopped = context.jobs.stop(id) => match stopped {
            Ok(end) => answer(AttemptState::Completed, end),
            Err(reason) => ToolOutcome::failed(&ToolError::Job(reason)),
        },
        () = context.cancel.cancelled() => answer(
            AttemptState::Failed,
            "it was told to stop, and its end was not waited for".to_owned(),
        ),
        () = tokio::time::sleep(patience) => answer(
            AttemptState::Failed,
            "it was told to stop and has not ended yet; it still counts".to_owned(),
        ),
    }
}
