//! The way to the end of a tree: TERM, grace, then KILL until the bound.

use std::time::{Duration, Instant};

use holdfast_domain::recovery::process::EndedBy;

use super::system::Tree;

/// From the first KILL until those that are left are named and given up.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// An end that was asked for and is under way.
pub(super) struct Ending {
    /// Who asked.
    pub(super) by: EndedBy,
    kill_from: Instant,
}

impl Ending {
    pub(super) fn begin(by: EndedBy, now: Instant, grace: Duration, tree: &mut Tree) -> Self {
        tree.begin_end();
        Self {
            by,
            kill_from: now + grace,
        }
    }

    /// Takes the step that is due; true when the bound has passed and some are still there.
    pub(super) fn step(&mut self, now: Instant, tree: &mut Tree) -> bool {
        if now < self.kill_from {
            tree.ask();
            return false;
        }
        if now >= self.kill_from + KILL_LIMIT {
            return true;
        }
        tree.kill();
        false
    }

    /// Until the next step.
    pub(super) fn pause(&self) -> Duration {
        if Instant::now() < self.kill_from {
            Duration::from_millis(20)
        } else {
            Duration::from_millis(4)
        }
    }
}
