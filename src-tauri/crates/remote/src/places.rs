//! Where another host's frames stand in our own stream, so that `upTo` of its transcript snapshot
//! can be said in our numbers.
//!
//! Guarantee: a frame is applied to a snapshot that holds it already neither when it was passed on
//! before the snapshot came nor when it comes later; and none that the snapshot lacks is dropped.

use std::collections::{BTreeMap, VecDeque};

/// Frames whose places are remembered.
const KEPT: usize = 8192;

/// The places of one host's frames.
#[derive(Debug, Default)]
pub(crate) struct Places {
    epoch: String,
    /// Number there → number here, both growing.
    passed: VecDeque<(u64, u64)>,
    /// By session: frames up to this place are in a snapshot that was handed out.
    spoken: BTreeMap<String, (String, u64)>,
}

/// `<epoch>.<n>`.
fn parts(id: &str) -> Option<(&str, u64)> {
    let (epoch, number) = id.rsplit_once('.')?;
    Some((epoch, number.parse().ok()?))
}

impl Places {
    /// A frame with this id came for that session: pass it on?
    pub(crate) fn wants(&self, session_id: &str, id: &str) -> bool {
        match (parts(id), self.spoken.get(session_id)) {
            (Some((epoch, number)), Some((spoken, up_to))) => spoken != epoch || number > *up_to,
            _ => true,
        }
    }

    /// It was passed on, and has this number here.
    pub(crate) fn note(&mut self, id: &str, here: u64) {
        let Some((epoch, number)) = parts(id) else {
            return;
        };
        if self.epoch != epoch {
            epoch.clone_into(&mut self.epoch);
            self.passed.clear();
        }
        self.passed.push_back((number, here));
        if self.passed.len() > KEPT {
            self.passed.pop_front();
        }
    }

    /// A snapshot of that session speaks up to `up_to`; `latest` is our newest number. Answers up to
    /// which of our numbers it speaks.
    pub(crate) fn speak(&mut self, session_id: &str, up_to: &str, latest: u64) -> u64 {
        let Some((epoch, number)) = parts(up_to) else {
            return latest;
        };
        self.spoken
            .insert(session_id.to_owned(), (epoch.to_owned(), number));
        if epoch != self.epoch {
            return latest;
        }
        let later = self.passed.partition_point(|(there, _)| *there <= number);
        match (
            later.checked_sub(1).and_then(|at| self.passed.get(at)),
            self.passed.get(later),
        ) {
            (_, None) => latest,
            (Some((_, here)), Some(_)) => *here,
            (None, Some((_, first))) => first.saturating_sub(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rs_29_a_snapshots_place_is_told_in_our_numbers() {
        let mut places = Places::default();
        for (there, here) in [(4, 10), (5, 12), (9, 20)] {
            places.note(&format!("e.{there}"), here);
        }
        assert_eq!(places.speak("s", "e.5", 25), 12);
        assert_eq!(places.speak("s", "e.8", 25), 12);
        // All that was passed on is in it.
        assert_eq!(places.speak("s", "e.9", 25), 25);
        assert_eq!(places.speak("s", "e.30", 25), 25);
        // Nothing of what was passed on is in it.
        assert_eq!(places.speak("s", "e.3", 25), 9);
    }

    #[test]
    fn rs_29_what_a_snapshot_holds_is_not_passed_on_later() {
        let mut places = Places::default();
        places.note("e.1", 1);
        places.speak("s", "e.5", 3);
        assert!(!places.wants("s", "e.5"));
        assert!(places.wants("s", "e.6"));
        assert!(places.wants("other", "e.5"));
        assert!(places.wants("s", "f.5"), "of another start of that host");
        assert!(places.wants("s", ""), "a host without ids");
    }
}
