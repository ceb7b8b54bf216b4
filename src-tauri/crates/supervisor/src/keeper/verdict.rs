//! What the supervisor leaves behind: the call's receipt, and the end of a job.
//!
//! Guarantees: a receipt is given at most once; it is published before the host is told, and synced
//! after (supervisor.md: telling must not wait for the disk).

use std::fs::File;
use std::path::Path;

use holdfast_domain::recovery::process::{EndedBy, ExitReceipt, Straggler, TreeProof};
use holdfast_files::{sync_file, sync_folder};

use super::output::Output;
use super::reserved::{Reserved, named};
use crate::PROTOCOL;
use crate::identity::now;
use crate::receipt::JobEnd;
use crate::request::Request;

/// How the command's root process ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct RootEnd {
    /// Its exit code, when it exited.
    pub(super) code: Option<i32>,
    /// The signal that ended it, when one did.
    pub(super) signal: Option<i32>,
}

/// How a call ended.
pub(super) struct Call {
    pub(super) by: EndedBy,
    pub(super) root: Option<RootEnd>,
    pub(super) proof: TreeProof,
    pub(super) spawn_error: Option<String>,
    pub(super) survivors: Vec<Straggler>,
    pub(super) stragglers: Vec<Straggler>,
}

impl Call {
    /// An end that leaves nobody behind.
    pub(super) fn of(by: EndedBy, root: Option<RootEnd>, proof: TreeProof) -> Self {
        Self {
            by,
            root,
            proof,
            spawn_error: None,
            survivors: Vec::new(),
            stragglers: Vec::new(),
        }
    }
}

pub(super) struct Verdict<'a> {
    folder: &'a Path,
    request: &'a Request,
    started_at: u64,
    exit: Option<Reserved>,
    ended: Option<Reserved>,
    left_a_job: bool,
}

impl<'a> Verdict<'a> {
    pub(super) fn new(folder: &'a Path, request: &'a Request, exit: Reserved) -> Self {
        Self {
            folder,
            request,
            started_at: now(),
            exit: Some(exit),
            ended: None,
            left_a_job: false,
        }
    }

    /// The call has its receipt.
    pub(super) fn given(&self) -> bool {
        self.exit.is_none()
    }

    /// The receipt names processes that live on.
    pub(super) fn left_a_job(&self) -> bool {
        self.left_a_job
    }

    /// Gives the receipt. `None` when the disk would not take it: then the call ends as lost.
    pub(super) fn give(&mut self, call: &Call, output: &Output) -> Option<File> {
        let reserved = self.exit.take()?;
        if !call.survivors.is_empty() || !call.stragglers.is_empty() {
            self.left_a_job = true;
            self.ended = Reserved::ended(self.folder).ok();
        }
        let receipt = ExitReceipt {
            protocol: PROTOCOL,
            attempt_id: self.request.attempt_id.clone(),
            argument_digest: self.request.argument_digest.clone(),
            code: call.root.and_then(|root| root.code),
            signal: call.root.and_then(|root| root.signal),
            ended_by: call.by,
            spawn_error: call.spawn_error.clone(),
            output_length: output.length(),
            output_sha256: output.digest(),
            output_truncated: output.truncated(),
            tree_proof: call.proof,
            stragglers: named(call.stragglers.clone()),
            survivors: named(call.survivors.clone()),
            started_at: self.started_at,
            finished_at: now(),
        };
        reserved.publish(serde_json::to_vec(&receipt).ok()?).ok()
    }

    /// Says how the job ended.
    pub(super) fn end_job(
        &mut self,
        ended_by: EndedBy,
        tree_proof: TreeProof,
        stragglers: Vec<Straggler>,
    ) -> Option<File> {
        let reserved = self
            .ended
            .take()
            .or_else(|| Reserved::ended(self.folder).ok())?;
        let end = JobEnd {
            protocol: PROTOCOL,
            attempt_id: self.request.attempt_id.clone(),
            at: now(),
            ended_by,
            tree_proof,
            stragglers: named(stragglers),
        };
        reserved.publish(serde_json::to_vec(&end).ok()?).ok()
    }

    /// Makes durable what was published. A failure is not reported: the host has the receipt, and
    /// after a loss of power its digests tell what is missing.
    pub(super) fn sync(&self, receipt: &Option<File>, output: &File) {
        let _ = sync_file(output);
        if let Some(receipt) = receipt {
            let _ = sync_file(receipt);
        }
        let _ = sync_folder(self.folder);
    }
}
