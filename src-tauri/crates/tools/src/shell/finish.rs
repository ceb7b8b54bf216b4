//! The result of a command, live or found after a restart (TR-18): made in one place, so that both
//! read the same.
//!
//! Guarantee: the state comes from the exit receipt alone (SV-02); the last line tells the model
//! how the command ended.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{
    EndedBy, ExitReceipt, ProcessOutcome, Straggler, outcome_of,
};

use super::handover::hands_over;
use crate::outcome::{FullOutput, ToolOutcome};
use crate::text::{MODEL_TEXT_LIMIT, abridge, join, visible};

/// An output up to this many bytes is read whole.
const WHOLE: u64 = 1024 * 1024;
/// Of a longer one, this much is read at each end; colour codes make it shorter as text.
const END: u64 = 128 * 1024;
/// Room for the lines that say how it ended.
const NOTES: usize = 2048;

/// What a command's receipt and output mean. `output` is the file in the effect folder, of which
/// the receipt vouches for the first `output_length` bytes; `incomplete` says that it does not
/// match the receipt.
pub fn finish_shell(
    command: &str,
    receipt: &ExitReceipt,
    output: &Path,
    incomplete: bool,
) -> ToolOutcome {
    finish(command, receipt, output, incomplete, outcome_of(receipt))
}

/// The same of a command that ran in the sandbox: it had no effect, however it ended (TR-21). What
/// was stopped had no result and is cancelled; at a time limit the output so far is one (TR-09).
pub(crate) fn finish_read_only(
    command: &str,
    receipt: &ExitReceipt,
    output: &Path,
    incomplete: bool,
) -> ToolOutcome {
    let mut meaning = outcome_of(receipt);
    if receipt.ended_by == EndedBy::Timeout {
        meaning.state = AttemptState::Failed;
        meaning.effect_summary.clear();
    }
    let mut outcome = finish(command, receipt, output, incomplete, meaning);
    match outcome.state {
        AttemptState::Interrupted | AttemptState::Unknown => outcome.become_cancelled(),
        AttemptState::Failed if receipt.ended_by == EndedBy::Timeout => {
            outcome.code = Some("timeout");
        }
        _ => {}
    }
    outcome
}

fn finish(
    command: &str,
    receipt: &ExitReceipt,
    output: &Path,
    incomplete: bool,
    meaning: ProcessOutcome,
) -> ToolOutcome {
    let mut notes = Vec::new();
    let read = Output::read(output, receipt.output_length);
    let (body, is_cut, has_file) = match read {
        Ok(read) => (read.text, read.is_cut, read.length > 0),
        Err(error) => {
            notes.push(format!("the output can't be read: {error}"));
            (String::new(), false, false)
        }
    };
    if incomplete {
        notes.push("output incomplete: it does not match the receipt".to_owned());
    }
    if receipt.output_truncated {
        notes.push("more output was discarded".to_owned());
    }
    if !receipt.survivors.is_empty() {
        notes.push(format!(
            "still running as a job: {}",
            names(&receipt.survivors)
        ));
    }
    let elsewhere = match meaning.state {
        AttemptState::Interrupted | AttemptState::Unknown => hands_over(command),
        _ => None,
    };
    if let Some(program) = &elsewhere {
        notes.push(format!(
            "what {program} started may continue elsewhere; look there before repeating"
        ));
    }
    notes.push(ending(receipt, meaning.state));

    let mut text = body;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    for note in notes {
        text.push_str(&format!("[{note}]\n"));
    }
    let time = receipt.finished_at.saturating_sub(receipt.started_at);
    let truncated = is_cut || receipt.output_truncated || incomplete;
    let mut outcome = ToolOutcome::bare(meaning.state, text);
    outcome.code = code(receipt, meaning.state);
    outcome.effect_summary = meaning.effect_summary;
    outcome.full_output = if has_file {
        FullOutput::File(output.to_path_buf())
    } else {
        FullOutput::None
    };
    outcome.truncated = truncated;
    outcome.survivors.clone_from(&receipt.survivors);
    outcome.stragglers.clone_from(&receipt.stragglers);
    outcome.may_continue_elsewhere = elsewhere.is_some();
    outcome.exit = Some(receipt.clone());
    outcome.lasting(Duration::from_millis(time))
}

/// The first `length` bytes of a running command's output, as its call's result shows them.
pub(crate) fn printed_so_far(output: &Path, length: u64) -> String {
    let mut text = match Output::read(output, length) {
        Ok(read) => read.text,
        Err(error) => format!("[the output so far can't be read: {error}]"),
    };
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// The line that says how it ended.
fn ending(receipt: &ExitReceipt, state: AttemptState) -> String {
    if let Some(error) = &receipt.spawn_error {
        return format!("the command could not be started: {error}");
    }
    let cause = match receipt.ended_by {
        EndedBy::Itself => {
            return match (receipt.code, receipt.signal) {
                (Some(code), _) => format!("exit status {code}"),
                (None, Some(signal)) => format!("ended by signal {signal}"),
                (None, None) => "ended without an exit status".to_owned(),
            };
        }
        EndedBy::Stop => "stopped",
        EndedBy::Timeout => "stopped at its time limit",
        EndedBy::HostLoss => "stopped because the program that ran it was lost",
        EndedBy::External => "stopped from outside",
    };
    if state == AttemptState::Failed {
        format!("{cause}; it ran in the sandbox and changed nothing")
    } else if state == AttemptState::Interrupted {
        format!("{cause}; effects may be partial")
    } else if receipt.stragglers.is_empty() {
        format!("{cause}; its end is not proven; the outcome is unknown")
    } else {
        format!(
            "{cause}, but still alive: {}; the outcome is unknown",
            names(&receipt.stragglers)
        )
    }
}

fn code(receipt: &ExitReceipt, state: AttemptState) -> Option<&'static str> {
    match state {
        AttemptState::Failed if receipt.spawn_error.is_some() => Some("spawn_failed"),
        AttemptState::Failed => Some("exit_status"),
        AttemptState::Interrupted => Some("interrupted"),
        AttemptState::Unknown => Some("unknown"),
        _ => None,
    }
}

fn names(processes: &[Straggler]) -> String {
    const SHOWN: usize = 8;
    let mut names: Vec<String> = processes
        .iter()
        .take(SHOWN)
        .map(|process| format!("{} (pid {})", visible(process.name.as_bytes()), process.pid))
        .collect();
    if processes.len() > SHOWN {
        names.push(format!("and {} more", processes.len() - SHOWN));
    }
    names.join(", ")
}

struct Output {
    text: String,
    is_cut: bool,
    length: u64,
}

impl Output {
    /// The first `length` bytes of a file as bounded text.
    fn read(path: &Path, length: u64) -> io::Result<Self> {
        let limit = MODEL_TEXT_LIMIT - NOTES;
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound && length == 0 => {
                return Ok(Self {
                    text: String::new(),
                    is_cut: false,
                    length: 0,
                });
            }
            Err(error) => return Err(error),
        };
        let length = length.min(file.metadata()?.len());
        if length <= WHOLE {
            let text = visible(&part(&file, 0, length)?);
            return Ok(Self {
                is_cut: text.len() > limit,
                text: abridge(&text, limit),
                length,
            });
        }
        let head = visible(&part(&file, 0, END)?);
        let tail = visible(&part(&file, length - END, END)?);
        let total = usize::try_from(length).unwrap_or(usize::MAX);
        Ok(Self {
            text: join(&head, &tail, total, limit),
            is_cut: true,
            length,
        })
    }
}

fn part(mut file: &File, from: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(from))?;
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}
