//! What an execution gives back.

use std::path::PathBuf;
use std::time::Duration;

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{ExitReceipt, Straggler};

use crate::error::ToolError;
use crate::text::{MODEL_TEXT_LIMIT, abridge};

/// The output behind a text that may be cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FullOutput {
    /// The text is all there is.
    None,
    /// Everything, as bytes.
    Bytes(Vec<u8>),
    /// Everything, in the effect folder; to be moved to the session's spill file.
    File(PathBuf),
}

/// TR-50: a command that was not waited for goes on as a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Background {
    /// A person moved it there; else the call asked for it.
    pub by_person: bool,
    /// Bytes of its output that were told so far.
    pub told: u64,
}

/// How an execution ended, bound to its attempt by the caller (TR-08).
#[derive(Debug, Clone, PartialEq)]
pub struct ToolOutcome {
    /// `completed`, `failed`, `interrupted`, `unknown`; `not_started` when that is proven;
    /// `cancelled` for a read-only call that was cut short (TR-09); `running` with `background`.
    pub state: AttemptState,
    /// Stable code of a failure.
    pub code: Option<&'static str>,
    /// For the model: at most 32 KiB (`read_file`: 256 KiB), without terminal codes.
    pub text: String,
    /// Words about the effect; `effect_unknown` when a failure left it open (TR-09).
    pub effect_summary: String,
    /// What `text` was made from, when `text` is not all of it.
    pub full_output: FullOutput,
    /// `text` is not all of the output, or the output itself was cut.
    pub truncated: bool,
    /// Of a supervised command.
    pub exit: Option<ExitReceipt>,
    /// What was changed in a file; unified, bounded.
    pub diff: Option<String>,
    /// TR-50: it has not ended; the text is the call's answer.
    pub background: Option<Background>,
    /// TR-50: processes that live on as a job.
    pub survivors: Vec<Straggler>,
    /// SV-04: processes that could not be stopped.
    pub stragglers: Vec<Straggler>,
    /// TR-11: an interrupted command had handed work to something that lives elsewhere.
    pub may_continue_elsewhere: bool,
    /// Wall time of the execution; of a recovered command, from its receipt.
    pub duration_ms: u64,
}

impl ToolOutcome {
    /// Completed, with a text that is cut when it is too long.
    pub(crate) fn completed(text: String) -> Self {
        let mut outcome = Self::bare(AttemptState::Completed, text);
        if outcome.text.len() > MODEL_TEXT_LIMIT {
            let short = abridge(&outcome.text, MODEL_TEXT_LIMIT);
            outcome.full_output = FullOutput::Bytes(outcome.text.into_bytes());
            outcome.text = short;
            outcome.truncated = true;
        }
        outcome
    }

    /// A state and a text that is known to be short enough.
    pub fn bare(state: AttemptState, text: String) -> Self {
        Self {
            state,
            code: None,
            text,
            effect_summary: String::new(),
            full_output: FullOutput::None,
            truncated: false,
            exit: None,
            diff: None,
            background: None,
            survivors: Vec::new(),
            stragglers: Vec::new(),
            may_continue_elsewhere: false,
            duration_ms: 0,
        }
    }

    /// TR-09: an error of a tool that ran.
    pub(crate) fn failed(error: &ToolError) -> Self {
        let mut outcome = Self::bare(AttemptState::Failed, format!("error: {error}"));
        outcome.code = Some(error.code());
        if matches!(error, ToolError::EffectUnknown { .. }) {
            "effect_unknown".clone_into(&mut outcome.effect_summary);
        }
        outcome
    }

    /// TR-09: a look that was cut short before it had a result.
    pub(crate) fn become_cancelled(&mut self) {
        *self = Self {
            code: Some("cancelled"),
            ..Self::bare(
                AttemptState::Cancelled,
                "it was stopped before it had a result; it only reads, so nothing was changed"
                    .to_owned(),
            )
        };
    }

    pub(crate) fn lasting(mut self, time: Duration) -> Self {
        self.duration_ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self
    }
}
