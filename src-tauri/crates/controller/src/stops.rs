//! Named stop points for crash tests: a host built with the feature `stop-points` parks at one of
//! them, tells so by writing a file, and waits to be killed. Without the feature this is nothing.

/// Where a host can be made to park. A test kills it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopPoint {
    /// A submit is durable and not answered yet.
    SubmitDurable,
    /// A message waits durably; nobody was told.
    ItemDurable,
    /// A message left the queue as its turn's; nothing else of that turn is stored.
    NextDurable,
    /// A turn is over and said to be finishing; its end is not stored.
    TurnEnding,
    /// Receipt and start record are durable; nothing runs yet.
    StartDurable,
    /// A tool ended; its result is not stored.
    ToolEnded,
    /// A result is durable and not announced.
    ResultDurable,
    /// A retry passed its checks; nothing of it is stored.
    RetryAdmitted,
    /// A question is durable and announced.
    PromptDurable,
    /// A summary has come; its record is not stored.
    SummaryReady,
    /// A compaction's or a rewind's record is durable and not announced.
    HistoryDurable,
    /// Recovery has begun; nothing of it is stored.
    RecoveryBegun,
    /// Recovery stored its first record.
    RecoveryHalf,
    /// A step of a file's publication.
    File(&'static str),
}

impl StopPoint {
    /// Its name in `HOLDFAST_STOP_AT`.
    pub fn name(self) -> &'static str {
        match self {
            Self::SubmitDurable => "submit_durable",
            Self::ItemDurable => "item_durable",
            Self::NextDurable => "next_durable",
            Self::TurnEnding => "turn_ending",
            Self::StartDurable => "start_durable",
            Self::ToolEnded => "tool_ended",
            Self::ResultDurable => "result_durable",
            Self::RetryAdmitted => "retry_admitted",
            Self::PromptDurable => "prompt_durable",
            Self::SummaryReady => "summary_ready",
            Self::HistoryDurable => "history_durable",
            Self::RecoveryBegun => "recovery_begun",
            Self::RecoveryHalf => "recovery_half",
            Self::File(name) => name,
        }
    }
}

/// Parks here for ever when the environment asks for this point.
#[cfg(feature = "stop-points")]
pub fn pass(point: StopPoint) {
    pass_named(point.name());
}

/// As [`pass`], by name.
#[cfg(feature = "stop-points")]
pub fn pass_named(name: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static PASSES: AtomicU32 = AtomicU32::new(0);
    let Ok(wanted) = std::env::var("HOLDFAST_STOP_AT") else {
        return;
    };
    let (wanted_name, wanted_pass) = match wanted.split_once(':') {
        Some((name, pass)) => (name, pass.parse().unwrap_or(1)),
        None => (wanted.as_str(), 1),
    };
    if wanted_name != name || PASSES.fetch_add(1, Ordering::SeqCst) + 1 != wanted_pass {
        return;
    }
    if let Ok(file) = std::env::var("HOLDFAST_STOP_FILE") {
        let _ = std::fs::write(file, name);
    }
    loop {
        std::thread::park();
    }
}

/// Nothing, in a host without the feature.
#[cfg(not(feature = "stop-points"))]
pub fn pass(_point: StopPoint) {}

/// Nothing, in a host without the feature.
#[cfg(not(feature = "stop-points"))]
pub fn pass_named(_name: &str) {}
