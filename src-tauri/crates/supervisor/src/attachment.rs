//! The host's hold on a running command: output and end, as they come.
//!
//! Guarantees: what is told comes from files and lock; the socket only says when to look (SV-07),
//! and its loss changes nothing but the promptness. All output that a receipt vouches for is told
//! before the receipt. `next` may be dropped at any await and called again.

mod signal_line;

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use holdfast_domain::recovery::process::{ExitReceipt, Straggler};

use crate::claim::{Claim, claim_void};
use crate::error::SupervisorError;
use crate::folder::{Liveness, OUTPUT, liveness, open_checked, request_stop, stop_is_asked};
use crate::identity::{now, stragglers};
use crate::launch::Launched;
use crate::look::{Sight, sight, words_of_loss};
use crate::receipt::{lives_on, read_end};
use signal_line::SignalLine;

/// Bytes of output in one `Progress::Output` at most.
const CHUNK: u64 = 64 << 10;

/// How long a supervisor may take to claim the start before the host fences it.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// Which command to attach to.
#[derive(Debug, Clone)]
pub struct Target {
    /// Its effect folder.
    pub folder: PathBuf,
    /// The attempt.
    pub attempt_id: String,
    /// Digest of its arguments.
    pub argument_digest: String,
    /// Boot of its start record.
    pub boot_id: String,
    /// The request's runtime folder.
    pub runtime_folder: Option<PathBuf>,
}

/// What happened to the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// More output, in order, at most 64 KiB.
    Output(Vec<u8>),
    /// The call ended: its receipt. Processes may live on as a job: `survivors`.
    Exited(ExitReceipt),
    /// After `Exited`: nothing of the tree is left, as far as the system proves it (`read_end`).
    Gone,
    /// After `Exited`: a stop was tried as far as it could be, and some of the job live on (SV-04).
    /// They are watched as before, and a stop may be asked for again.
    StopFailed,
    /// The command was never started, and never will be: the start is fenced.
    NotStarted,
    /// The supervisor was lost. Before `Exited`: the outcome can't be known. After it: the job is
    /// no longer watched.
    Lost {
        /// Why, in words for a person.
        reason: String,
        /// Processes that still carry the attempt's id.
        stragglers: Vec<Straggler>,
    },
}

/// The hold on one command, fresh or found again after a restart.
#[derive(Debug)]
pub struct Attachment {
    target: Target,
    child: Option<Launched>,
    /// The launched supervisor has ended.
    child_ended: bool,
    line: SignalLine,
    output: Option<File>,
    offset: u64,
    receipt: Option<ExitReceipt>,
    exit_told: bool,
    /// A stop was asked for and not answered yet.
    stop_asked: bool,
    last: Option<Progress>,
    since: Instant,
}

impl Attachment {
    /// Attaches. `child` is what `launch` gave, `None` after a restart; `offset` is how much of the
    /// output is known already, in bytes. A newer attachment replaces an older one's promptness.
    ///
    /// Call it inside a tokio runtime.
    pub fn attach(target: Target, child: Option<Launched>, offset: u64) -> Self {
        let line = SignalLine::new(target.runtime_folder.as_deref(), &target.attempt_id);
        Self {
            target,
            child,
            child_ended: false,
            line,
            output: None,
            offset,
            receipt: None,
            exit_told: false,
            stop_asked: false,
            last: None,
            since: Instant::now(),
        }
    }

    /// The next thing that happened. After `Gone`, `NotStarted` or `Lost` the same answer for ever.
    ///
    /// # Errors
    /// `supervisor_io` when the folder can't be read now, or `unsupported_platform`; calling again
    /// is safe.
    pub async fn next(&mut self) -> Result<Progress, SupervisorError> {
        loop {
            if let Some(progress) = self.step()? {
                return Ok(progress);
            }
            self.wait().await;
        }
    }

    /// Asks for the end of the whole tree; the answer is the receipt, or `Gone` for a job.
    ///
    /// # Errors
    /// `supervisor_io` when neither file nor socket could carry the wish.
    pub fn stop(&mut self) -> Result<(), SupervisorError> {
        let sent = self.line.send_stop();
        self.stop_asked = true;
        match request_stop(&self.target.folder) {
            Err(_) if sent => Ok(()),
            asked => asked,
        }
    }

    /// How much of the output was told, in bytes from its beginning.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    fn step(&mut self) -> Result<Option<Progress>, SupervisorError> {
        if let Some(last) = &self.last {
            return Ok(Some(last.clone()));
        }
        // The state is read before the output: what a receipt vouches for is then in the file.
        if self.receipt.is_none() {
            let target = &self.target;
            match sight(&target.folder, &target.attempt_id, &target.argument_digest)? {
                Sight::Exited { receipt, .. } => self.receipt = Some(receipt),
                Sight::Running { .. } => {}
                Sight::Void { .. } => return Ok(Some(self.finish(Progress::NotStarted))),
                Sight::Unclaimed => return self.fence_when_late(),
                Sight::Lost { survives_host } => {
                    return self.lost(words_of_loss(survives_host)).map(Some);
                }
                Sight::Refused { reason } => return self.lost(&reason).map(Some),
            }
        }
        let over = self.exit_told && self.job_is_over()?;
        if let Some(output) = self.read_output()? {
            return Ok(Some(Progress::Output(output)));
        }
        match &self.receipt {
            Some(receipt) if !self.exit_told => {
                self.exit_told = true;
                let receipt = receipt.clone();
                // The receipt is the answer, unless the wish came after it.
                self.stop_asked &= stop_is_asked(&self.target.folder);
                Ok(Some(Progress::Exited(receipt)))
            }
            Some(_) if over => Ok(Some(self.finish(Progress::Gone))),
            Some(_) => {
                let folder = &self.target.folder;
                let held = liveness(folder)? == Liveness::Held;
                if held && self.stop_asked && !stop_is_asked(folder) {
                    self.stop_asked = false;
                    if !self.job_is_over()? {
                        return Ok(Some(Progress::StopFailed));
                    }
                }
                // Read again: it may have been written between the two looks.
                if held || self.job_is_over()? {
                    return Ok(None);
                }
                self.lost("the supervisor that watched this job was killed")
                    .map(Some)
            }
            None => Ok(None),
        }
    }

    fn finish(&mut self, progress: Progress) -> Progress {
        self.last = Some(progress.clone());
        progress
    }

    fn lost(&mut self, reason: &str) -> Result<Progress, SupervisorError> {
        if let Some(output) = self.read_output()? {
            return Ok(Progress::Output(output));
        }
        let stragglers = stragglers(&self.target.attempt_id)?;
        Ok(self.finish(Progress::Lost {
            reason: reason.to_owned(),
            stragglers,
        }))
    }

    fn job_is_over(&self) -> Result<bool, SupervisorError> {
        match &self.receipt {
            Some(receipt) if lives_on(receipt) => {
                Ok(read_end(&self.target.folder, &self.target.attempt_id)?.is_some())
            }
            Some(_) => Ok(true),
            None => Ok(false),
        }
    }

    /// Nobody has claimed the start. When the supervisor has ended, or takes too long, the host
    /// claims it: then the answer is certain.
    fn fence_when_late(&mut self) -> Result<Option<Progress>, SupervisorError> {
        if !self.child_ended && self.since.elapsed() < START_PATIENCE {
            return Ok(None);
        }
        let target = &self.target;
        match claim_void(&target.folder, &target.attempt_id, &target.boot_id, now())? {
            Claim::Won => Ok(Some(self.finish(Progress::NotStarted))),
            // Somebody was first; the next look tells who.
            Claim::Lost(_) => Ok(None),
        }
    }

    fn read_output(&mut self) -> Result<Option<Vec<u8>>, SupervisorError> {
        if self.output.is_none() {
            self.output = open_checked(&self.target.folder, OUTPUT)?;
        }
        let Some(file) = &mut self.output else {
            return Ok(None);
        };
        // Before the receipt is told, no byte beyond it is: a job's output comes after.
        let limit = match &self.receipt {
            Some(receipt) if !self.exit_told => {
                receipt.output_length.saturating_sub(self.offset).min(CHUNK)
            }
            _ => CHUNK,
        };
        let mut content = Vec::new();
        let read = file
            .seek(SeekFrom::Start(self.offset))
            .and_then(|_| file.take(limit).read_to_end(&mut content));
        match read {
            Ok(0) => Ok(None),
            Ok(read) => {
                self.offset += read as u64;
                Ok(Some(content))
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(None),
            Err(error) => Err(SupervisorError::io("reading the output")(error)),
        }
    }

    /// Waits until there may be something new: a word on the socket, the supervisor's end, or the
    /// time for another look.
    async fn wait(&mut self) {
        let line = &mut self.line;
        match &mut self.child {
            None => line.changed().await,
            Some(child) => {
                let ended = tokio::select! {
                    () = child.wait() => true,
                    () = line.changed() => false,
                };
                if ended {
                    self.child = None;
                    self.child_ended = true;
                }
            }
        }
    }
}
