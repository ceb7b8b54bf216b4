//! The watch over one job: from its supervisor while there is one, else by the attempt's id.
//!
//! Guarantees: it ends when nothing of the tree is left, or when nobody wants to know; the output
//! that it tells is bounded like a live call's; what reads a whole output is done on a thread that
//! may wait for the disk.

use std::path::PathBuf;
use std::time::Duration;

use holdfast_domain::recovery::process::{ExitReceipt, Straggler};
use holdfast_journal::Spill;
use holdfast_supervisor::folder::OUTPUT;
use holdfast_supervisor::{Attachment, Progress, Target, end_stragglers, stragglers};
use holdfast_tools::{Pieces, ToolOutcome, finish_shell};
use tokio::sync::mpsc;

use super::super::ends::keep;
use super::super::live::progress_to;
use super::super::message::{JobNews, Message};
use crate::shared::SHELL_GRACE;

/// Times that a watch looks again when its look fails.
const LOOKS: u32 = 40;
/// Between two of them.
const LOOK_AGAIN: Duration = Duration::from_millis(250);
/// Between two looks for processes whose supervisor is gone; each reads all environments.
const STRAGGLERS_AGAIN: Duration = Duration::from_millis(500);

/// How much of the output was told already; the rest is told as it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// Nothing more is told.
    Never,
    /// All but this many bytes before its present end.
    AllBut(u64),
    /// So many bytes from its beginning.
    UpTo(u64),
}

pub(super) struct Watch {
    pub(super) target: Target,
    pub(super) told: Told,
    pub(super) command: String,
    pub(super) spill: Spill,
    pub(super) outbox: mpsc::UnboundedSender<Message>,
}

/// What a step of the watch leads to.
enum Next {
    Go,
    /// The supervisor is gone; these live on.
    Alone,
    End,
}

impl Watch {
    /// Watches to the end. `wishes` are those to stop; each is a new try.
    pub(super) async fn run(self, mut wishes: mpsc::UnboundedReceiver<()>) {
        let length =
            std::fs::metadata(self.target.folder.join(OUTPUT)).map_or(0, |meta| meta.len());
        let offset = match self.told {
            Told::Never => length,
            Told::AllBut(rest) => length.saturating_sub(rest),
            Told::UpTo(told) => told,
        };
        let mut attachment = Attachment::attach(self.target.clone(), None, offset);
        let progress = (self.told != Told::Never)
            .then(|| progress_to(self.outbox.clone(), &self.target.attempt_id));
        // In the middle of the output, the first piece may begin inside a character.
        let (mut pieces, mut is_inside) = (Pieces::default(), offset > 0);
        let mut is_call = true;
        // A wish that the supervisor did not live to answer is not lost with it.
        let mut is_wished = false;
        let mut failures = 0;
        loop {
            let next = tokio::select! {
                wish = wishes.recv() => {
                    if wish.is_none() {
                        return;
                    }
                    is_wished = true;
                    if let Err(error) = attachment.stop()
                        && !self.tell(JobNews::StopFailed(error.to_string()))
                    {
                        return;
                    }
                    continue;
                }
                next = attachment.next() => next,
            };
            let next = match next {
                Ok(Progress::Output(bytes)) => {
                    failures = 0;
                    if let (true, Some(progress)) = (is_call, &progress) {
                        let text = pieces.push(&bytes);
                        let text = if std::mem::take(&mut is_inside) {
                            text.trim_start_matches('\u{fffd}')
                        } else {
                            &text
                        };
                        progress.send(text);
                    }
                    Next::Go
                }
                Ok(Progress::Exited(receipt)) => {
                    is_call = false;
                    self.exited(receipt).await
                }
                Ok(Progress::Gone) => self.last(JobNews::Gone),
                Ok(Progress::NotStarted) => self.last(JobNews::NotStarted),
                Ok(Progress::StopFailed) => {
                    is_wished = false;
                    self.go_on(JobNews::StopFailed(
                        "some of it may not be ended".to_owned(),
                    ))
                }
                Ok(Progress::Lost { reason, stragglers }) => self.lost(reason, stragglers),
                Err(error) if failures < LOOKS => {
                    failures += 1;
                    tracing::debug!(code = error.code(), "a job can't be looked at now");
                    tokio::time::sleep(LOOK_AGAIN).await;
                    Next::Go
                }
                Err(error) => self.lost(error.to_string(), Vec::new()),
            };
            match next {
                Next::Go => {}
                Next::Alone => break,
                Next::End => return,
            }
        }
        self.alone(wishes, is_wished).await;
    }

    /// The call's end, with its output read and kept.
    async fn exited(&self, receipt: ExitReceipt) -> Next {
        let is_last = receipt.survivors.is_empty() && receipt.stragglers.is_empty();
        let folder = self.target.folder.clone();
        let Some(outcome) = outcome(folder, self.command.clone(), receipt, None).await else {
            // The receipt is still in its folder, and is found at the next opening.
            return self.lost("its result could not be read".to_owned(), Vec::new());
        };
        let ended = keep(self.spill.clone(), &self.target.attempt_id, outcome).await;
        let news = JobNews::Exited(Box::new(ended));
        if is_last {
            self.last(news)
        } else {
            self.go_on(news)
        }
    }

    fn lost(&self, reason: String, stragglers: Vec<Straggler>) -> Next {
        let is_last = stragglers.is_empty();
        if self.tell(JobNews::Lost { reason, stragglers }) && !is_last {
            Next::Alone
        } else {
            Next::End
        }
    }

    /// SV-04: what is left is known by the attempt's id alone.
    async fn alone(&self, mut wishes: mpsc::UnboundedReceiver<()>, mut is_wished: bool) {
        loop {
            let id = self.target.attempt_id.clone();
            let found = tokio::task::spawn_blocking(move || stragglers(&id)).await;
            if matches!(&found, Ok(Ok(found)) if found.is_empty()) {
                self.tell(JobNews::Gone);
                return;
            }
            if !std::mem::take(&mut is_wished) {
                match tokio::time::timeout(STRAGGLERS_AGAIN, wishes.recv()).await {
                    Err(_) => continue,
                    Ok(None) => return,
                    Ok(Some(())) => {}
                }
            }
            let (id, boot) = (self.target.attempt_id.clone(), self.target.boot_id.clone());
            let ended =
                tokio::task::spawn_blocking(move || end_stragglers(&id, &boot, SHELL_GRACE)).await;
            let failure = match ended {
                Ok(Ok(left)) if left.is_empty() => continue,
                Ok(Ok(left)) => {
                    let names: Vec<String> = left
                        .iter()
                        .map(|process| format!("{} (pid {})", process.name, process.pid))
                        .collect();
                    format!("still there: {}", names.join(", "))
                }
                Ok(Err(error)) => error.to_string(),
                Err(error) => error.to_string(),
            };
            if !self.tell(JobNews::StopFailed(failure)) {
                return;
            }
        }
    }

    fn last(&self, news: JobNews) -> Next {
        self.tell(news);
        Next::End
    }

    fn go_on(&self, news: JobNews) -> Next {
        if self.tell(news) { Next::Go } else { Next::End }
    }

    fn tell(&self, news: JobNews) -> bool {
        let attempt_id = self.target.attempt_id.clone();
        self.outbox.send(Message::Job { attempt_id, news }).is_ok()
    }
}

/// What a receipt and its output mean; `incomplete` when that is known already. `None` when reading
/// them failed by a defect.
pub(crate) async fn outcome(
    folder: PathBuf,
    command: String,
    receipt: ExitReceipt,
    incomplete: Option<bool>,
) -> Option<ToolOutcome> {
    tokio::task::spawn_blocking(move || {
        let incomplete = incomplete.unwrap_or_else(|| {
            !holdfast_supervisor::verify_output(&folder, &receipt).is_ok_and(|whole| whole)
        });
        finish_shell(&command, &receipt, &folder.join(OUTPUT), incomplete)
    })
    .await
    .ok()
}
