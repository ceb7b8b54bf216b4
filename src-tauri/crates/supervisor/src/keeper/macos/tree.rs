//! The process tree: a group, a witness, and whoever still carries the attempt's id.
//!
//! Guarantees: the root process is not reaped while the tree lives, so that its number, which is
//! the group's, belongs to nobody else when the group is signalled (SV-06); what left the group is
//! signalled only when pid and start time match; more than `group` is never claimed.

use std::collections::HashSet;
use std::io::{self, PipeReader, Read};

use holdfast_domain::recovery::process::{Straggler, TreeProof};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};

use crate::error::SupervisorError;
use crate::keeper::verdict::RootEnd;
use crate::process_table::{self, Entry};

pub(in crate::keeper) struct Tree {
    root: Option<Root>,
    /// Who was told to end.
    told: HashSet<(u32, u64)>,
}

struct Root {
    pid: Pid,
    /// Readable at its end only when nobody of the tree holds it any more.
    witness: Option<PipeReader>,
    attempt_id: String,
    end: Option<RootEnd>,
}

impl Tree {
    pub(in crate::keeper) fn new() -> Result<Self, SupervisorError> {
        Ok(Self {
            root: None,
            told: HashSet::new(),
        })
    }

    pub(super) fn take_root(&mut self, pid: Pid, witness: PipeReader, attempt_id: &str) {
        self.root = Some(Root {
            pid,
            witness: Some(witness),
            attempt_id: attempt_id.to_owned(),
            end: None,
        });
    }

    /// How the root process ended, once it has.
    pub(in crate::keeper) fn root_end(&self) -> Option<RootEnd> {
        self.root.as_ref()?.end
    }

    /// Looks who is left; true when nobody is that could be seen.
    pub(in crate::keeper) fn reap(&mut self) -> bool {
        let Some(root) = &mut self.root else {
            return true;
        };
        root.look();
        root.end.is_some() && root.witness.is_none() && root.group().is_empty()
    }

    /// What is proven when nobody is left that could be seen.
    pub(in crate::keeper) fn proof(&self) -> TreeProof {
        TreeProof::Group
    }

    /// Who lives on after the root's end.
    pub(in crate::keeper) fn survivors(&mut self) -> Vec<Straggler> {
        if self.reap() {
            return Vec::new();
        }
        self.stragglers()
    }

    /// Who is left at all, named as well as can be.
    pub(in crate::keeper) fn stragglers(&mut self) -> Vec<Straggler> {
        let left: Vec<Straggler> = self.living().iter().map(Entry::straggler).collect();
        if left.is_empty() {
            return vec![Straggler {
                pid: 0,
                name: "a process that left the command's group".to_owned(),
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
        for process in self.living() {
            if self.told.insert((process.pid, process.start_time)) {
                send(&process, Signal::TERM);
                send(&process, Signal::CONT);
            }
        }
    }

    /// The group at once, since it can't give birth between; then whoever left it.
    pub(in crate::keeper) fn kill(&mut self) {
        if let Some(root) = &self.root {
            let _ = kill_process_group(root.pid, Signal::KILL);
        }
        for process in self.living() {
            send(&process, Signal::KILL);
        }
    }

    /// The living of the group, and those beyond it that carry the attempt's id.
    fn living(&self) -> Vec<Entry> {
        let Some(root) = &self.root else {
            return Vec::new();
        };
        let mut living = root.group();
        for process in process_table::carriers(&root.attempt_id) {
            if !living.contains(&process) {
                living.push(process);
            }
        }
        living
    }
}

impl Root {
    /// Sees the root's end without reaping it, and the witness's.
    fn look(&mut self) {
        if self.end.is_none() {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
            if let Ok(Some(status)) = waitid(WaitId::Pid(self.pid), options) {
                self.end = Some(RootEnd {
                    code: status.exit_status(),
                    signal: status.terminating_signal(),
                });
            }
        }
        if let Some(witness) = &mut self.witness {
            match witness.read(&mut [0; 64]) {
                Ok(0) => self.witness = None,
                // Nobody has a reason to write there; what is written is not looked at.
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Then it can't be told who is left: it stays, and the proof with it.
                Err(_) => {}
            }
        }
    }

    fn group(&self) -> Vec<Entry> {
        u32::try_from(self.pid.as_raw_nonzero().get())
            .map(process_table::group)
            .unwrap_or_default()
    }
}

/// Signals this very process. macOS has no handle on a process: between the look and the signal
/// lies a moment, in which its number would have to be used again.
fn send(process: &Entry, signal: Signal) {
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else {
        return;
    };
    if process_table::start_time(process.pid) == Some(process.start_time) {
        let _ = kill_process(pid, signal);
    }
}
