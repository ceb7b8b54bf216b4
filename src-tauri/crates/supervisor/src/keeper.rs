//! The body of the supervisor's process: one loop that hears, decides and waits.
//!
//! What differs between systems is behind `system`, a module of the same shape for each: `isolate`,
//! `awake`,
//! `survives_host`, `spawn`, `wait`, `Host`, `Pipe`, `Signals`, `Socket` and `Tree`.
//!
//! Guarantees: nothing runs unless this process won the claim for `start`; the receipt is written
//! from what this process saw itself, once, and before the host is told; a tree that was told to
//! end is reported as ended only when no child is left (SV-03); what lives on is watched until it
//! is gone.

mod ending;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "macos")]
mod macos;
mod output;
mod reserved;
#[cfg(unix)]
mod unix;
mod verdict;
#[cfg(windows)]
mod windows;

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use holdfast_domain::recovery::process::{EndedBy, StartClaim, Straggler, TreeProof};

use crate::claim::{Claim, claim};
use crate::error::SupervisorError;
use crate::folder::{START, STOP, keep_is_asked, open_alive, stop_is_asked};
use crate::identity::{boot_id, now};
use crate::request::{self, OnHostLoss, Request};

use ending::Ending;
#[cfg(target_os = "linux")]
use linux as system;
#[cfg(target_os = "macos")]
use macos as system;
use output::Output;
use reserved::Reserved;
use system::{Host, Signals, Socket, Tree};
use verdict::{Call, RootEnd, Verdict};
#[cfg(windows)]
use windows as system;

/// A call has ended when its output was quiet for this long after the root process's exit (TR-50).
const QUIET: Duration = Duration::from_millis(100);
/// But at most this long after it.
const QUIET_LIMIT: Duration = Duration::from_secs(1);
/// The longest grace between TERM and KILL, whatever the request says.
const GRACE_LIMIT: Duration = Duration::from_secs(3600);
/// Between two looks for the file `stop`.
const STOP_FILE: Duration = Duration::from_millis(200);
/// How long a supervisor waits for `alive` while others look at its lock.
const LOCK_PATIENCE: Duration = Duration::from_secs(2);

/// Runs the command of an effect folder, from the claim to the last of its processes.
///
/// # Errors
/// When nothing was started: `request_refused`, `already_supervised`, `start_lost`, `host_gone`,
/// `stopped_before_start`,
/// `foreign_file`, `supervisor_io`. After the start every failure is in the receipt.
pub fn run(folder: &Path) -> Result<(), SupervisorError> {
    let folder =
        std::path::absolute(folder).map_err(SupervisorError::io("resolving the effect folder"))?;
    system::isolate()?;
    let request = request::read(&folder)?;
    if boot_id()? != request.boot_id {
        return Err(SupervisorError::RequestRefused {
            reason: "it was written in another boot".to_owned(),
        });
    }
    // Held until the process ends, however it ends.
    let _alive = lock_alive(&folder)?;
    let signals = Signals::install().map_err(SupervisorError::io("installing signal handlers"))?;
    let tree = Tree::new()?;
    let host = watch_host(&request)?;
    let receipt =
        Reserved::exit(&folder).map_err(SupervisorError::io("reserving the receipt's space"))?;
    let output = Output::create(&folder, request.output_cap)
        .map_err(SupervisorError::io("creating the output"))?;
    let socket = Socket::listen(request.runtime_folder.as_deref(), &request.attempt_id);
    if stop_is_asked(&folder) {
        return Err(SupervisorError::StoppedBeforeStart);
    }
    let won = claim(
        &folder,
        &StartClaim::Supervisor {
            attempt_id: request.attempt_id.clone(),
            boot_id: request.boot_id.clone(),
            pid: std::process::id(),
            at: now(),
            survives_host: system::survives_host(),
        },
    )?;
    if let Claim::Lost(_) = won {
        return Err(SupervisorError::StartLost);
    }
    let mut keeper = Keeper {
        folder: &folder,
        verdict: Verdict::new(&folder, &request, receipt),
        request: &request,
        signals,
        tree,
        host,
        output,
        socket,
        started: system::awake(),
        root_ended: None,
        ending: None,
        stop_looked: None,
    };
    match system::spawn(&request, &mut keeper.tree) {
        Ok(pipe) => {
            keeper.output.read_from(pipe);
            keeper.watch();
        }
        Err(reason) => keeper.close_call(&Call {
            spawn_error: Some(reason),
            ..Call::of(EndedBy::Itself, None, TreeProof::Full)
        }),
    }
    Ok(())
}

/// Takes the lock on `alive`. Somebody who only looks at it holds it for a moment, so it is tried
/// for a while, as long as nobody has claimed the start.
fn lock_alive(folder: &Path) -> Result<File, SupervisorError> {
    let file = open_alive(folder).map_err(SupervisorError::io("opening the file alive"))?;
    let since = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(std::fs::TryLockError::Error(error)) => {
                return Err(SupervisorError::io("locking the file alive")(error));
            }
            Err(std::fs::TryLockError::WouldBlock) => {
                let claimed = std::fs::exists(folder.join(START)).unwrap_or(true);
                if claimed || since.elapsed() > LOCK_PATIENCE {
                    return Err(SupervisorError::AlreadySupervised);
                }
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// A watch on the host, when its loss matters.
fn watch_host(request: &Request) -> Result<Option<Host>, SupervisorError> {
    match request.on_host_loss {
        OnHostLoss::Finish => Ok(None),
        OnHostLoss::Stop => match Host::watch(request.host) {
            Some(host) => Ok(Some(host)),
            None => Err(SupervisorError::HostGone),
        },
    }
}

struct Keeper<'a> {
    folder: &'a Path,
    request: &'a Request,
    verdict: Verdict<'a>,
    signals: Signals,
    tree: Tree,
    host: Option<Host>,
    output: Output,
    socket: Socket,
    /// Time awake at the start: only that counts for the limit (SV-02).
    started: Duration,
    root_ended: Option<(RootEnd, Instant)>,
    ending: Option<Ending>,
    stop_looked: Option<Instant>,
}

impl Keeper<'_> {
    /// The loop: reap, drain, hear, decide, wait.
    fn watch(&mut self) {
        let mut host_lost = false;
        loop {
            self.signals.clear();
            let empty = self.tree.reap();
            let now = Instant::now();
            if let (None, Some(end)) = (self.root_ended, self.tree.root_end()) {
                self.root_ended = Some((end, now));
            }
            if self.output.drain() {
                self.socket.announce_output();
            }
            self.socket.converse();
            // When no child is left there is nothing to end.
            if !empty
                && self.ending.is_none()
                && let Some(by) = self.end_asked_for(host_lost, now)
            {
                host_lost = false;
                self.begin_end(by, now);
            }
            if self.decide(empty, now) {
                return;
            }
            host_lost |= self.wait();
        }
    }

    /// Who asks for the end, if anybody does.
    fn end_asked_for(&mut self, host_lost: bool, now: Instant) -> Option<EndedBy> {
        if self.signals.asked_to_end() {
            return Some(EndedBy::External);
        }
        if self.socket.take_stop() || self.stop_file_appeared(now) {
            return Some(EndedBy::Stop);
        }
        if host_lost {
            return Some(EndedBy::HostLoss);
        }
        let limit = Duration::from_millis(self.request.timeout_ms?);
        let in_time = self.awake() < limit;
        // The limit is the call's: a job that outlives it has none.
        (self.root_ended.is_none() && !in_time).then_some(EndedBy::Timeout)
    }

    fn stop_file_appeared(&mut self, now: Instant) -> bool {
        if self
            .stop_looked
            .is_some_and(|looked| now.duration_since(looked) < STOP_FILE / 2)
        {
            return false;
        }
        self.stop_looked = Some(now);
        stop_is_asked(self.folder)
    }

    fn begin_end(&mut self, by: EndedBy, now: Instant) {
        // The root ended by itself before anybody asked: that is the call's verdict, and the wish
        // is about what it left behind.
        if self.root_ended.is_some() && !self.verdict.given() {
            self.close_call_by_itself();
        }
        let grace = Duration::from_millis(self.request.grace_ms).min(GRACE_LIMIT);
        self.ending = Some(Ending::begin(by, now, grace, &mut self.tree));
    }

    /// Takes the steps that are due; true when nothing is left to do.
    fn decide(&mut self, empty: bool, now: Instant) -> bool {
        if empty {
            return self.decide_empty(now);
        }
        let Some(ending) = &mut self.ending else {
            if !self.verdict.given() && self.root_quiet(now) {
                self.close_call_by_itself();
            }
            return false;
        };
        let by = ending.by;
        if !ending.step(now, &mut self.tree) {
            return false;
        }
        // The bound: some can't be ended, and it is said who. Of a job they are known already.
        if !self.verdict.given() {
            let end = self.root_ended.map(|(end, _)| end);
            let stragglers = self.tree.stragglers();
            self.close_call(&Call {
                stragglers,
                ..Call::of(by, end, TreeProof::None)
            });
        }
        // It stays, so that the lock tells as long as they live. The file `stop` goes: so the host
        // learns that the wish was carried out as far as it could be, and may have it again.
        self.ending = None;
        self.signals.forget();
        let _ = std::fs::remove_file(self.folder.join(STOP));
        false
    }

    /// No child is left: what remains is the output that is still in the pipe.
    fn decide_empty(&mut self, now: Instant) -> bool {
        if !self.output.at_end() && !self.root_quiet(now) {
            return false;
        }
        let proof = self.tree.proof();
        let by = self.ending.as_ref().map_or(EndedBy::Itself, |e| e.by);
        if self.verdict.given() {
            if self.verdict.left_a_job() {
                self.close_job(by, proof, Vec::new());
            }
        } else {
            let end = self.root_ended.map(|(end, _)| end);
            self.close_call(&Call::of(by, end, proof));
        }
        true
    }

    /// TR-50: the root has exited and the output is quiet, or the limit has passed.
    fn root_quiet(&self, now: Instant) -> bool {
        self.root_ended.is_some_and(|(_, ended)| {
            let quiet_since = self.output.last_read().map_or(ended, |at| at.max(ended));
            now.duration_since(quiet_since) >= QUIET || now.duration_since(ended) >= QUIET_LIMIT
        })
    }

    /// The call ends though a part of its tree lives on.
    fn close_call_by_itself(&mut self) {
        let survivors = self.tree.survivors();
        let end = self.root_ended.map(|(end, _)| end);
        let proof = if survivors.is_empty() {
            self.tree.proof()
        } else {
            TreeProof::None
        };
        self.close_call(&Call {
            survivors,
            ..Call::of(EndedBy::Itself, end, proof)
        });
    }

    /// Writes the receipt, tells the host, and only then syncs.
    fn close_call(&mut self, call: &Call) {
        let written = self.verdict.give(call, &self.output);
        self.socket.tell("exit\n");
        self.verdict.sync(&written, self.output.file());
    }

    fn close_job(&mut self, by: EndedBy, proof: TreeProof, stragglers: Vec<Straggler>) {
        let written = self.verdict.end_job(by, proof, stragglers);
        self.socket.tell("gone\n");
        self.verdict.sync(&written, self.output.file());
    }

    /// Waits for something to happen; true when the host is gone.
    fn wait(&mut self) -> bool {
        let lost = system::wait(
            &self.signals,
            self.output.pipe(),
            &self.socket,
            self.host.as_ref(),
            self.next_look(),
        );
        if lost {
            self.host = None;
        }
        lost && !keep_is_asked(self.folder)
    }

    /// How long the command has run, without the time that the system slept.
    fn awake(&self) -> Duration {
        system::awake().saturating_sub(self.started)
    }

    fn next_look(&self) -> Duration {
        let now = Instant::now();
        let mut next = STOP_FILE / 2;
        if let Some(ending) = &self.ending {
            next = next.min(ending.pause());
        }
        if let (Some((_, ended)), false) = (self.root_ended, self.verdict.given()) {
            let quiet_since = self.output.last_read().map_or(ended, |at| at.max(ended));
            let due = (quiet_since + QUIET).min(ended + QUIET_LIMIT);
            next = next.min(due.saturating_duration_since(now));
        }
        if let (Some(limit), None, None) = (self.request.timeout_ms, self.root_ended, &self.ending)
        {
            next = next.min(Duration::from_millis(limit).saturating_sub(self.awake()));
        }
        if let Some(due) = self.socket.announcement_due() {
            next = next.min(due);
        }
        // Rounded up: a poll that returns a moment too early would turn in circles.
        next + Duration::from_millis(1)
    }
}
