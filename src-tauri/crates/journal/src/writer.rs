//! The log behind one task: many callers, one writer.
//!
//! Guarantees: requests are written in the order in which `append` was called; those that wait are
//! written and synced together; each is answered after its sync, in order of `seq`. A failure is
//! the answer to the whole group and to every append that waits behind it at that moment (TR-48).
//! No thread is held while nothing is written.

use std::collections::VecDeque;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::{mpsc, oneshot};

use crate::error::JournalError;
use crate::line::Entry;
use crate::log::{Batch, Log, Reopened, check_batch};

type Reply<T> = oneshot::Sender<Result<T, JournalError>>;

enum Request {
    Append(u64, Batch, Reply<Vec<Entry>>),
    Reopen(u64, Reply<Reopened>),
    Index(u64, String, Reply<bool>),
    Close(Reply<()>),
}

/// A handle to a log's one writer. Clones share it; when the last is dropped, what waits is
/// written and the lease given back.
#[derive(Debug, Clone)]
pub struct Writer {
    requests: mpsc::UnboundedSender<Request>,
    syncs: Arc<AtomicU64>,
}

impl Writer {
    /// Gives a log to a task of the current tokio runtime. Call it inside one.
    pub fn spawn(log: Log) -> Self {
        let (requests, queue) = mpsc::unbounded_channel();
        let syncs = log.sync_counter();
        tokio::spawn(run(log, queue));
        Self { requests, syncs }
    }

    /// Appends a batch; answers its entries, durable. It is queued by the call itself: dropping the
    /// future does not withdraw it. `at` in milliseconds since the Unix epoch.
    ///
    /// # Errors
    /// As [`Log::append`]; `log_closed` after [`Writer::close`].
    pub fn append(
        &self,
        at: u64,
        batch: Batch,
    ) -> impl Future<Output = Result<Vec<Entry>, JournalError>> + Send + use<> {
        // Checked before it is queued, so that one caller's mistake is not another's failure.
        let queued =
            check_batch(&batch).map(|()| self.ask(move |reply| Request::Append(at, batch, reply)));
        async move { queued?.await }
    }

    /// As [`Log::reopen`], after everything asked for before.
    ///
    /// # Errors
    /// As [`Log::reopen`]; `log_closed`.
    pub fn reopen(
        &self,
        at: u64,
    ) -> impl Future<Output = Result<Reopened, JournalError>> + Send + use<> {
        self.ask(move |reply| Request::Reopen(at, reply))
    }

    /// As [`Log::write_index`], after everything asked for before.
    ///
    /// # Errors
    /// As [`Log::write_index`]; `log_closed`.
    pub fn write_index(
        &self,
        seq: u64,
        summary: String,
    ) -> impl Future<Output = Result<bool, JournalError>> + Send + use<> {
        self.ask(move |reply| Request::Index(seq, summary, reply))
    }

    /// Writes what was asked for before, then gives the lease back. Later calls, on every clone,
    /// answer `log_closed`.
    ///
    /// # Errors
    /// `log_closed` when it was closed already.
    pub fn close(&self) -> impl Future<Output = Result<(), JournalError>> + Send + use<> {
        self.ask(Request::Close)
    }

    /// How many syncs of the log succeeded since it was opened.
    pub fn syncs(&self) -> u64 {
        self.syncs.load(Ordering::Relaxed)
    }

    fn ask<T, F>(
        &self,
        request: F,
    ) -> impl Future<Output = Result<T, JournalError>> + Send + use<T, F>
    where
        T: Send + 'static,
        F: FnOnce(Reply<T>) -> Request,
    {
        let (reply, answer) = oneshot::channel();
        let sent = self.requests.send(request(reply)).is_ok();
        async move {
            if !sent {
                return Err(JournalError::Closed);
            }
            answer.await.unwrap_or(Err(JournalError::Closed))
        }
    }
}

/// Requests that were taken from the channel and not yet served.
struct Queue {
    channel: mpsc::UnboundedReceiver<Request>,
    waiting: VecDeque<Request>,
}

impl Queue {
    /// Takes everything that waits at this moment.
    fn gather(&mut self) {
        while let Ok(request) = self.channel.try_recv() {
            self.waiting.push_back(request);
        }
    }

    async fn next(&mut self) -> Option<Request> {
        match self.waiting.pop_front() {
            Some(request) => Some(request),
            None => self.channel.recv().await,
        }
    }

    /// The appends that wait directly behind one another.
    fn following_appends(&mut self) -> Vec<(u64, Batch, Reply<Vec<Entry>>)> {
        self.gather();
        let mut found = Vec::new();
        while let Some(request) = self.waiting.pop_front() {
            match request {
                Request::Append(at, batch, reply) => found.push((at, batch, reply)),
                other @ (Request::Reopen(..) | Request::Index(..) | Request::Close(_)) => {
                    self.waiting.push_front(other);
                    break;
                }
            }
        }
        found
    }

    /// Takes out every append that waits, wherever it stands.
    fn all_appends(&mut self) -> Vec<Reply<Vec<Entry>>> {
        self.gather();
        let mut found = Vec::new();
        for request in std::mem::take(&mut self.waiting) {
            match request {
                Request::Append(_, _, reply) => found.push(reply),
                other @ (Request::Reopen(..) | Request::Index(..) | Request::Close(_)) => {
                    self.waiting.push_back(other);
                }
            }
        }
        found
    }
}

async fn run(log: Log, channel: mpsc::UnboundedReceiver<Request>) {
    let mut queue = Queue {
        channel,
        waiting: VecDeque::new(),
    };
    let mut log = log;
    while let Some(request) = queue.next().await {
        let served = match request {
            Request::Append(at, batch, reply) => {
                let mut group = vec![(at, batch, reply)];
                group.extend(queue.following_appends());
                append(log, group, &mut queue).await
            }
            Request::Reopen(at, reply) => blocking(log, reply, move |log| log.reopen(at)).await,
            Request::Index(seq, summary, reply) => {
                blocking(log, reply, move |log| log.write_index(seq, &summary)).await
            }
            Request::Close(reply) => {
                // Giving the lease back removes a file; that may block.
                let closed = tokio::task::spawn_blocking(move || drop(log)).await;
                let _ = reply.send(closed.map_err(|_| JournalError::Closed));
                return;
            }
        };
        match served {
            Some(kept) => log = kept,
            None => return,
        }
    }
}

/// Runs one operation of the log where blocking is allowed. `None` when the log is lost, because
/// the runtime is shutting down; whoever waits is answered `log_closed`.
async fn blocking<T: Send + 'static>(
    mut log: Log,
    reply: Reply<T>,
    work: impl FnOnce(&mut Log) -> Result<T, JournalError> + Send + 'static,
) -> Option<Log> {
    let done = tokio::task::spawn_blocking(move || {
        let answer = work(&mut log);
        (log, answer)
    })
    .await;
    let (log, answer) = done.ok()?;
    let _ = reply.send(answer);
    Some(log)
}

async fn append(
    mut log: Log,
    group: Vec<(u64, Batch, Reply<Vec<Entry>>)>,
    queue: &mut Queue,
) -> Option<Log> {
    let mut batches = Vec::with_capacity(group.len());
    let mut replies = Vec::with_capacity(group.len());
    for (at, batch, reply) in group {
        batches.push((at, batch));
        replies.push(reply);
    }
    let counts: Vec<usize> = batches
        .iter()
        .map(|(_, batch)| batch.records.len())
        .collect();
    let done = tokio::task::spawn_blocking(move || {
        let timed: Vec<(u64, &Batch)> = batches.iter().map(|(at, batch)| (*at, batch)).collect();
        let answer = log.append_timed(&timed);
        (log, answer)
    })
    .await;
    let (log, answer) = done.ok()?;
    match answer {
        Ok(entries) => {
            let mut entries = entries.into_iter();
            for (reply, count) in replies.into_iter().zip(counts) {
                let _ = reply.send(Ok(entries.by_ref().take(count).collect()));
            }
        }
        Err(error) => {
            for reply in replies.into_iter().chain(queue.all_appends()) {
                let _ = reply.send(Err(error.clone()));
            }
        }
    }
    Some(log)
}
