//! The macOS side of the supervisor: single-threaded, waiting in poll(2).
//!
//! macOS has neither a subreaper nor a job object, so the end of a tree can't be proven whole. The
//! command has a process group of its own, and a pipe that nobody writes to is inherited by all its
//! descendants: while somebody holds it, somebody of the tree lives. When the group is empty and
//! the pipe closed, the proof is `group`: a descendant that left the group *and* closed what it
//! inherited is beyond it. When the pipe is still held, the proof is `none`.

mod command;
mod tree;

use std::io::PipeReader;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd;

pub(super) use super::unix::signals::Signals;
pub(super) use super::unix::socket::Socket;
use crate::error::SupervisorError;
use crate::process_table;
use crate::request::HostIdentity;
pub(super) use command::spawn;
pub(super) use tree::Tree;

/// The reading end of the command's output; it never waits.
pub(super) type Pipe = PipeReader;

/// Time awake: what time limits are measured by (SV-02).
pub(super) use super::unix::awake;

/// Leaves behind what came from the launcher.
pub(super) fn isolate() -> Result<(), SupervisorError> {
    super::unix::isolation::isolate(crate::darwin::close_inherited)
}

/// Whether this process lives on when its host ends: it has a session of its own.
pub(super) fn survives_host() -> bool {
    true
}

/// A watch on the host: its start time is looked at between waits, which come ten times a second.
pub(super) struct Host(HostIdentity);

impl Host {
    /// `None` when that very process is not there.
    pub(super) fn watch(host: HostIdentity) -> Option<Self> {
        let host = Self(host);
        host.lives().then_some(host)
    }

    fn lives(&self) -> bool {
        process_table::start_time(self.0.pid) == Some(self.0.start_time)
    }
}

/// Waits for something to happen, or for the time; true when the host is gone.
pub(super) fn wait(
    signals: &Signals,
    pipe: Option<&Pipe>,
    socket: &Socket,
    host: Option<&Host>,
    timeout: Duration,
) -> bool {
    let mut fds = vec![PollFd::new(signals, PollFlags::IN)];
    let [listener, connection] = socket.descriptors();
    for fd in [pipe.map(AsFd::as_fd), listener, connection]
        .into_iter()
        .flatten()
    {
        fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
    }
    let timeout = Timespec::try_from(timeout).ok();
    // An interrupted poll is as good as one that timed out: everything is looked at again.
    let _ = poll(&mut fds, timeout.as_ref());
    host.is_some_and(|host| !host.lives())
}
