//! How a copy of a state is accepted: the rules that every reader follows (RS-23, RS-24).
//!
//! Guarantee: a store only ever moves to content that its source committed later, or that an
//! authoritative read confirmed; a conflict changes nothing and asks for one resync.

/// RS-23: what became of an incoming state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The store has it now.
    Accepted,
    /// The store had it.
    Duplicate,
    /// It is older, or can't be read.
    Stale,
    /// It contradicts the store.
    Conflict,
}

/// What an incoming state shows of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Incoming<'a, T> {
    /// Epoch; empty means malformed.
    pub epoch: &'a str,
    /// Revision; 0 means malformed.
    pub revision: u64,
    /// A session's state inside is malformed.
    pub inner_malformed: bool,
    /// It answers a read during which the store did not change (RS-24).
    pub authoritative: bool,
    /// The whole content, compared as a whole.
    pub content: &'a T,
}

/// A reader's copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store<T> {
    /// What was accepted last: epoch, revision, content.
    pub held: Option<(String, u64, T)>,
    /// Grows with every accepted state; a read compares it before and after (RS-24).
    pub version: u64,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self {
            held: None,
            version: 0,
        }
    }
}

impl<T: Clone + PartialEq> Store<T> {
    /// RS-23: the verdicts in their order. Only `Accepted` changes the store.
    pub fn reduce(&mut self, incoming: Incoming<'_, T>) -> Verdict {
        let verdict = self.verdict(&incoming);
        if verdict == Verdict::Accepted {
            self.held = Some((
                incoming.epoch.to_owned(),
                incoming.revision,
                incoming.content.clone(),
            ));
            self.version += 1;
        }
        verdict
    }

    fn verdict(&self, incoming: &Incoming<'_, T>) -> Verdict {
        let readable = !incoming.epoch.is_empty()
            && (1..=super::snapshot::MAX_REVISION).contains(&incoming.revision);
        if !readable {
            return Verdict::Stale;
        }
        if incoming.inner_malformed {
            return Verdict::Conflict;
        }
        let Some((epoch, revision, content)) = &self.held else {
            return if incoming.authoritative {
                Verdict::Accepted
            } else {
                Verdict::Conflict
            };
        };
        if epoch != incoming.epoch {
            return if incoming.authoritative {
                Verdict::Accepted
            } else {
                Verdict::Conflict
            };
        }
        match incoming.revision.cmp(revision) {
            std::cmp::Ordering::Less => Verdict::Stale,
            std::cmp::Ordering::Equal if content == incoming.content => Verdict::Duplicate,
            std::cmp::Ordering::Equal => Verdict::Conflict,
            std::cmp::Ordering::Greater => Verdict::Accepted,
        }
    }
}
