//! The process tree: who is in it, telling it to end, and the proof that it has.
//!
//! Guarantees: this process is the subreaper, so every descendant whose parent ends becomes its
//! child, and "no child" means that nothing of the tree is left (SV-03). A signal goes only through
//! a pidfd whose process was matched by start time (SV-06).

use std::collections::HashSet;

use holdfast_domain::recovery::process::{Straggler, TreeProof};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpid, set_child_subreaper, wait};

use crate::error::SupervisorError;
use crate::keeper::verdict::RootEnd;
use crate::process_table::{Entry, descendants, send};

/// Rounds of stopping before killing; each finds only what was born during the one before.
const STOP_ROUNDS: usize = 64;

pub(in crate::keeper) struct Tree {
    /// The command's root process.
    pub(super) root: Option<Pid>,
    /// How it ended, once it was reaped.
    root_status: Option<WaitStatus>,
    /// Who was told to end.
    told: HashSet<(u32, u64)>,
}

impl Tree {
    pub(in crate::keeper) fn new() -> Result<Self, SupervisorError> {
        set_child_subreaper(Some(getpid()))
            .map_err(|error| SupervisorError::io("becoming the subreaper")(error.into()))?;
        Ok(Self {
            root: None,
            root_status: None,
            told: HashSet::new(),
        })
    }

    /// How the root process ended, once it has.
    pub(in crate::keeper) fn root_end(&self) -> Option<RootEnd> {
        self.root_status.map(|status| RootEnd {
            code: status.exit_status(),
            signal: status.terminating_signal(),
        })
    }

    /// What is proven when no child is left.
    pub(in crate::keeper) fn proof(&self) -> TreeProof {
        TreeProof::Full
    }

    /// Reaps what has ended; true when no child is left.
    pub(in crate::keeper) fn reap(&mut self) -> bool {
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) => {
                    // Its number may be used again once it is reaped, so only the first counts.
                    if self.root == Some(pid) && self.root_status.is_none() {
                        self.root_status = Some(status);
                    }
                }
                Ok(None) => return false,
                Err(Errno::CHILD) => return true,
                Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
    }

    /// Who lives on after the root's end; empty only when no child is left.
    pub(in crate::keeper) fn survivors(&mut self) -> Vec<Straggler> {
        let left: Vec<Straggler> = living().iter().map(Entry::straggler).collect();
        // The list may be empty for a moment, between a parent's end and the child's new parent;
        // or since the system hides other users' processes.
        if left.is_empty() && !self.reap() {
            return self.stragglers();
        }
        left
    }

    /// Who is left at all, named as well as can be.
    pub(in crate::keeper) fn stragglers(&mut self) -> Vec<Straggler> {
        let left: Vec<Straggler> = living().iter().map(Entry::straggler).collect();
        if left.is_empty() {
            return vec![Straggler {
                pid: 0,
                name: "a process that this user can't see".to_owned(),
            }];
        }
        left
    }

    /// A new end begins: everybody is told again.
    pub(in crate::keeper) fn begin_end(&mut self) {
        self.told.clear();
    }

    /// TERM, once to each process. One that is stopped is let go on, so that it can obey.
    pub(in crate::keeper) fn ask(&mut self) {
        for process in descendants(std::process::id()) {
            if self.told.insert((process.pid, process.start_time)) {
                send(&process, Signal::TERM);
                if process.state == 'T' {
                    send(&process, Signal::CONT);
                }
            }
        }
    }

    /// Stops everything first, so that nothing can give birth while it is killed.
    pub(in crate::keeper) fn kill(&mut self) {
        let mut stopped = HashSet::new();
        for _ in 0..STOP_ROUNDS {
            let mut news = false;
            for process in descendants(std::process::id()) {
                if stopped.insert((process.pid, process.start_time)) {
                    news = true;
                    send(&process, Signal::STOP);
                }
            }
            if !news {
                break;
            }
        }
        for process in descendants(std::process::id()) {
            send(&process, Signal::KILL);
        }
    }
}

fn living() -> Vec<Entry> {
    descendants(std::process::id())
        .into_iter()
        .filter(Entry::lives)
        .collect()
}
