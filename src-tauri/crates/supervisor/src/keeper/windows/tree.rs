//! The process tree as a job object: who is in it, telling it to end, and the proof that it has.
//!
//! Guarantee: whatever the command starts is in the job, at any depth; an empty job means that
//! nothing of the tree is left (SV-03).

use holdfast_domain::recovery::process::{Straggler, TreeProof};

use super::bell::BELL;
use crate::error::SupervisorError;
use crate::keeper::verdict::RootEnd;
use crate::process_table::straggler;
use crate::win32::{Job, Process, console_break};

/// The exit code of what this supervisor ended. Windows has no signals: the code of a process that
/// was killed is its killer's, and nothing that the process said. This one is in the part of the
/// numbers that Microsoft leaves to applications.
const KILLED: u32 = 0xE048_4F4C;

pub(in crate::keeper) struct Tree {
    job: Job,
    root: Option<Process>,
    asked: bool,
}

impl Tree {
    pub(in crate::keeper) fn new() -> Result<Self, SupervisorError> {
        Ok(Self {
            job: Job::new().map_err(SupervisorError::io("creating the job object"))?,
            root: None,
            asked: false,
        })
    }

    /// Takes in a process that has not run yet.
    pub(super) fn take_root(&mut self, root: Process) -> std::io::Result<()> {
        let watched = root.try_clone();
        match self.job.assign(&root).and(watched) {
            Ok(watched) => {
                std::thread::spawn(move || {
                    watched.wait();
                    BELL.ring();
                });
                self.root = Some(root);
                Ok(())
            }
            Err(error) => {
                // It was created suspended: it ends without having done anything.
                root.terminate(KILLED);
                Err(error)
            }
        }
    }

    /// How the root process ended, once it has. What was ended from here has no code.
    pub(in crate::keeper) fn root_end(&self) -> Option<RootEnd> {
        let code = self.root.as_ref()?.exit_code()?;
        Some(RootEnd {
            code: (code != KILLED).then(|| code.cast_signed()),
            signal: None,
        })
    }

    /// True when no process is left.
    pub(in crate::keeper) fn reap(&mut self) -> bool {
        self.job.active().is_ok_and(|active| active == 0)
    }

    /// What is proven when no process is left.
    pub(in crate::keeper) fn proof(&self) -> TreeProof {
        TreeProof::Full
    }

    /// Who lives on after the root's end; empty only when no process is left.
    pub(in crate::keeper) fn survivors(&mut self) -> Vec<Straggler> {
        if self.reap() {
            return Vec::new();
        }
        self.stragglers()
    }

    /// Who is left at all, named as well as can be.
    pub(in crate::keeper) fn stragglers(&mut self) -> Vec<Straggler> {
        let left: Vec<Straggler> = self.job.processes().into_iter().map(straggler).collect();
        if left.is_empty() {
            return vec![Straggler {
                pid: 0,
                name: "a process that the job object does not name".to_owned(),
            }];
        }
        left
    }

    /// A new end begins: the command is asked again.
    pub(in crate::keeper) fn begin_end(&mut self) {
        self.asked = false;
    }

    /// There is no TERM here. A console program can handle Ctrl+Break; the root's process group is
    /// asked by it, once. What has no console, or a group of its own, only ends by `kill`.
    pub(in crate::keeper) fn ask(&mut self) {
        if let (false, Some(root)) = (self.asked, &self.root) {
            self.asked = true;
            console_break(root.pid());
        }
    }

    /// Ends everything in the job, whoever was born meanwhile included.
    pub(in crate::keeper) fn kill(&mut self) {
        self.job.terminate(KILLED);
    }
}
