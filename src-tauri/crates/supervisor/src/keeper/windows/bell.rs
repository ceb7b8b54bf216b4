//! The bell that wakes the deciding thread.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// The one bell of the process: the console's handler can be given nothing.
pub(super) static BELL: Bell = Bell {
    rung: Mutex::new(false),
    heard: Condvar::new(),
};

/// Rung by many, heard by one. What was rung before the waiting is heard at once.
pub(super) struct Bell {
    rung: Mutex<bool>,
    heard: Condvar,
}

impl Bell {
    pub(super) fn ring(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.heard.notify_all();
    }

    pub(super) fn silence(&self) {
        *self.rung.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }

    /// Waits until it was rung, at most this long.
    pub(super) fn wait(&self, timeout: Duration) {
        let rung = self.rung.lock().unwrap_or_else(PoisonError::into_inner);
        // Poison, time and bell are all the same here: everything is looked at again.
        let _ = self.heard.wait_timeout_while(rung, timeout, |rung| !*rung);
    }
}
