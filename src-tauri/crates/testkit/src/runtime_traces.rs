//! Generated traces of a reader of runtime projections: events and reads with whatever may come over
//! a wire, judged by the Rust reducer. The pages' reducer is held against them (RS-22 to RS-24).
//!
//! Guarantee: the same seed makes the same traces.

mod payloads;

use holdfast_api::desktop::{RuntimeSession, Topic};
use holdfast_domain::runtime::reduce::{Incoming, Store, Verdict};
use holdfast_domain::runtime::snapshot::{MAX_REVISION, RuntimeState};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Numbers from a seed (SplitMix64).
#[derive(Debug)]
pub struct Chance(u64);

impl Chance {
    /// From this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// 0 to `count` − 1.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        usize::try_from(self.next() % (count.max(1) as u64)).unwrap_or(0)
    }

    pub(crate) fn percent(&mut self, share: usize) -> bool {
        self.below(100) < share
    }

    /// One of some; `items` is not empty.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// What happens to a reader.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase", tag = "kind")]
pub enum Step {
    /// An event brings a payload.
    Event {
        /// Place among the trace's payloads.
        payload: usize,
        /// What the reducer says.
        verdict: Verdict,
    },
    /// A read begins.
    Begin {
        /// Its name.
        read: usize,
    },
    /// A read is answered; it may have begun long ago, and others since.
    Answer {
        /// Its name.
        read: usize,
        /// Place among the trace's payloads.
        payload: usize,
        /// What the reducer says.
        verdict: Verdict,
    },
}

/// What the store holds at the end.
#[derive(Debug, Clone, Serialize)]
pub struct End {
    /// Epoch of what was accepted last.
    pub epoch: String,
    /// Its revision.
    pub revision: u64,
    /// Its place among the trace's payloads.
    pub payload: usize,
}

/// One reader's life.
#[derive(Debug, Clone, Serialize)]
pub struct Trace {
    /// All payloads; steps name them by their place.
    pub payloads: Vec<Value>,
    /// What happens, in order.
    pub steps: Vec<Step>,
    /// `None`: nothing was accepted.
    pub end: Option<End>,
    /// How often something was accepted.
    pub version: u64,
}

/// What a payload shows of itself.
#[derive(Debug, Deserialize)]
struct Projection {
    epoch: String,
    revision: u64,
    sessions: Vec<Value>,
    topics: Vec<Topic>,
}

impl Projection {
    /// `None` when the payload has not the form of a projection.
    fn read(payload: &Value) -> Option<Self> {
        let read: Self = serde_json::from_value(payload.clone()).ok()?;
        read.topics
            .iter()
            .all(|topic| topic.background_jobs.max(topic.unresolved) <= MAX_REVISION)
            .then_some(read)
    }
}

fn is_malformed(session: &Value) -> bool {
    let mut session = session.clone();
    if session["state"]["schemaVersion"] == 0 {
        // RS-14: a host without snapshots says what it knows, and it can't know of finishing.
        if session["state"]["phase"] != "idle" && session["state"]["phase"] != "executing" {
            return true;
        }
        session["state"] = payloads::state(1);
    }
    serde_json::from_value::<RuntimeSession>(session).map_or(true, |session| {
        !session.state.snapshot().is_some_and(RuntimeState::is_valid)
            || session.session_generation > MAX_REVISION
    })
}

/// RS-23: the verdict on a payload as it came.
fn judge(store: &mut Store<Value>, payload: &Value, authoritative: bool) -> Verdict {
    let read = Projection::read(payload);
    let (epoch, revision, inner_malformed) = match &read {
        Some(read) => (
            read.epoch.as_str(),
            read.revision,
            read.sessions.iter().any(is_malformed),
        ),
        None => ("", 0, false),
    };
    store.reduce(Incoming {
        epoch,
        revision,
        inner_malformed,
        authoritative,
        content: payload,
    })
}

/// The next trace.
#[must_use]
pub fn trace(chance: &mut Chance) -> Trace {
    let payloads = payloads::some(chance);
    let mut store = Store::default();
    let mut steps = Vec::new();
    let mut held = None;
    let mut began: Vec<(usize, u64)> = Vec::new();
    let mut reads = 0;
    // Most readers begin with a read, as they should.
    let begins_well = chance.percent(80);
    let count = 4 + chance.below(12);
    for place in 0..count {
        let wants_read = begins_well && place < 2;
        if (wants_read && place == 0) || (!wants_read && chance.percent(25)) {
            steps.push(Step::Begin { read: reads });
            began.push((reads, store.version));
            reads += 1;
            continue;
        }
        let payload = if wants_read {
            0
        } else {
            chance.below(payloads.len())
        };
        let answered = (!began.is_empty() && (wants_read || chance.percent(45)))
            .then(|| began.swap_remove(chance.below(began.len())));
        let authoritative = answered.is_some_and(|(_, version)| version == store.version);
        let verdict = judge(&mut store, &payloads[payload], authoritative);
        if verdict == Verdict::Accepted {
            held = Some(payload);
        }
        steps.push(match answered {
            Some((read, _)) => Step::Answer {
                read,
                payload,
                verdict,
            },
            None => Step::Event { payload, verdict },
        });
    }
    let end = store
        .held
        .take()
        .zip(held)
        .map(|((epoch, revision, _), payload)| End {
            epoch,
            revision,
            payload,
        });
    Trace {
        payloads,
        steps,
        end,
        version: store.version,
    }
}
