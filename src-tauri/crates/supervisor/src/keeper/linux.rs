//! The Linux side of the supervisor: single-threaded, waiting in poll(2); a subreaper that reaps
//! whatever its command leaves behind.

mod command;
mod descriptors;
mod tree;

use std::io::PipeReader;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

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

/// Whether this process lives on when its host ends: it has a session of its own. What ends a
/// whole control group ends it too (SV-10).
pub(super) fn survives_host() -> bool {
    true
}

/// Leaves behind what came from the launcher.
pub(super) fn isolate() -> Result<(), SupervisorError> {
    super::unix::isolation::isolate(descriptors::close_inherited)
}

/// A descriptor that becomes readable when the host ends.
pub(super) struct Host(OwnedFd);

impl Host {
    /// `None` when that very process is not there.
    pub(super) fn watch(host: HostIdentity) -> Option<Self> {
        let pid = i32::try_from(host.pid).ok().and_then(Pid::from_raw)?;
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        // Compared after opening: then the descriptor is that very process's (SV-06).
        let start_time = process_table::entry(host.pid).map(|entry| entry.start_time);
        (start_time == Some(host.start_time)).then_some(Self(descriptor))
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
    if let Some(Host(host)) = host {
        fds.push(PollFd::from_borrowed_fd(host.as_fd(), PollFlags::IN));
    }
    let timeout = Timespec::try_from(timeout).ok();
    // An interrupted poll is as good as one that timed out: everything is looked at again.
    let _ = poll(&mut fds, timeout.as_ref());
    host.is_some() && fds.last().is_some_and(|fd| !fd.revents().is_empty())
}
