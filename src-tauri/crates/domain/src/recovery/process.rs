//! What is known of a supervised command: its exit receipt, and what a look at its effect folder
//! found. These are facts as read; `outcome_of` says what they mean for the attempt.
//!
//! Guarantees: an exit receipt alone decides (SV-02), and an end that is not proven for the whole
//! tree is never more than `unknown` (TR-10, TR-11).

use serde::{Deserialize, Serialize};

use super::lifecycle::AttemptState;

/// Why a supervised command ended (supervisor.md, file `exit`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndedBy {
    /// The root process exited or died by itself.
    #[serde(rename = "self")]
    Itself,
    /// A person, or a host that quits, asked for the end.
    Stop,
    /// The call's time limit passed; time asleep does not count.
    Timeout,
    /// The host died and the request said `on_host_loss: stop`.
    HostLoss,
    /// Somebody sent the supervisor a SIGTERM.
    External,
}

/// How far the end of the process tree is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TreeProof {
    /// No process of the tree is left; the system proves it.
    Full,
    /// The process group is gone; a descendant that left the group may live.
    Group,
    /// Nothing is proven.
    None,
}

/// A process of the tree that is still alive after the end of the root process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, specta::Type)]
pub struct Straggler {
    /// Process id, for display.
    pub pid: u32,
    /// Command name as the system gives it, at most 64 characters.
    pub name: String,
}

/// The content of the file `exit`: the only source of a supervised attempt's end (SV-02).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitReceipt {
    /// Protocol of the supervisor that wrote it.
    pub protocol: u32,
    /// The attempt that this receipt is about.
    pub attempt_id: String,
    /// Digest of the arguments that ran.
    pub argument_digest: String,
    /// Exit code of the root process, when it exited.
    pub code: Option<i32>,
    /// Signal that ended the root process, when one did.
    pub signal: Option<i32>,
    /// Why it ended.
    pub ended_by: EndedBy,
    /// Why the command could not be started at all, when exec failed.
    pub spawn_error: Option<String>,
    /// Bytes in `output` that this receipt vouches for.
    pub output_length: u64,
    /// SHA-256 (hex) of those bytes.
    pub output_sha256: String,
    /// Output past the cap, or lost to a disk error, was discarded.
    pub output_truncated: bool,
    /// What is proven of the tree's end. After `self` it speaks of the moment of the receipt:
    /// `none` with `survivors` when processes live on as a job (TR-50).
    pub tree_proof: TreeProof,
    /// Processes that were told to end and did not, or may not be signalled (SV-04).
    pub stragglers: Vec<Straggler>,
    /// Processes that live on after a root process that ended by itself; nobody told them to end.
    pub survivors: Vec<Straggler>,
    /// Unix milliseconds of the exec.
    pub started_at: u64,
    /// Unix milliseconds of the end.
    pub finished_at: u64,
}

/// The content of the file `start`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "by")]
pub enum StartClaim {
    /// The supervisor claimed the start; the command ran, or was about to.
    Supervisor {
        /// The attempt.
        attempt_id: String,
        /// Boot during which it was claimed.
        boot_id: String,
        /// Supervisor's process id, for display.
        pid: u32,
        /// Unix milliseconds.
        at: u64,
        /// False when the command ends with the program that ran it: on Windows, in a job object that
        /// denies breaking away (SV-03).
        #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
        survives_host: bool,
    },
    /// A recovering host fenced the start: the command never ran and never will.
    Void {
        /// The attempt.
        attempt_id: String,
        /// Boot during which it was fenced.
        boot_id: String,
        /// Unix milliseconds.
        at: u64,
    },
}

fn yes() -> bool {
    true
}

/// What a look at an attempt's effect folder found (TR-18).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEvidence {
    /// There is no effect folder: the tool is not supervised, or the folder was never made.
    NoFolder,
    /// The host won the claim for `start` in the same boot: the command never ran.
    Fenced,
    /// The supervisor holds `alive` and there is no exit receipt: it runs now.
    Running {
        /// Supervisor's process id, for display; 0 when not known.
        pid: u32,
    },
    /// A valid exit receipt of this very attempt.
    Exited {
        /// The receipt.
        receipt: ExitReceipt,
        /// The output's length or digest does not match the receipt.
        output_incomplete: bool,
        /// The supervisor still lives, since survivors run on as a job.
        alive: bool,
    },
    /// Started or maybe started, no receipt, nobody alive: the outcome can't be known.
    Lost {
        /// Why, in words for a person.
        reason: String,
        /// Processes found by the attempt id in their environment (SV-04).
        stragglers: Vec<Straggler>,
    },
}

/// What a finished command means for its attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessOutcome {
    /// `completed`, `failed`, `interrupted` or `unknown`.
    pub state: AttemptState,
    /// Words about the effect, empty when the state says it all.
    pub effect_summary: String,
}

/// TR-09…TR-11: an exit receipt as an attempt's state. `unknown` when the tree's end was asked for
/// and is not proven.
pub fn outcome_of(receipt: &ExitReceipt) -> ProcessOutcome {
    let outcome = |state, words: &str| ProcessOutcome {
        state,
        effect_summary: words.to_owned(),
    };
    match receipt.ended_by {
        EndedBy::Itself if receipt.spawn_error.is_some() => {
            outcome(AttemptState::Failed, "the command could not be started")
        }
        EndedBy::Itself if receipt.code == Some(0) => outcome(AttemptState::Completed, ""),
        EndedBy::Itself => outcome(AttemptState::Failed, ""),
        EndedBy::Stop | EndedBy::Timeout | EndedBy::HostLoss | EndedBy::External => {
            if receipt.tree_proof == TreeProof::Full && receipt.stragglers.is_empty() {
                outcome(AttemptState::Interrupted, "effects may be partial")
            } else {
                let names: Vec<String> = receipt
                    .stragglers
                    .iter()
                    .map(|s| format!("{} (pid {})", s.name, s.pid))
                    .collect();
                let words = if names.is_empty() {
                    "the end of the process tree is not proven".to_owned()
                } else {
                    format!("still alive, could not be stopped: {}", names.join(", "))
                };
                ProcessOutcome {
                    state: AttemptState::Unknown,
                    effect_summary: words,
                }
            }
        }
    }
}
