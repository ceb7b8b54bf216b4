//! The model's world: a log with its fold, the outside effects with the truth about them, one host
//! at most, and two persons with what each of them last saw.
//!
//! What a rule decides is asked of the crate itself; the world holds only what the crate can't
//! know: which records are durable, what the processes do, and who is alive.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use holdfast_domain::recovery::process::{EndedBy, ExitReceipt, Straggler, TreeProof};
use holdfast_domain::recovery::restart::RestartStep;
use holdfast_domain::transcript::record::{Entry, Record, SessionCreated, SystemPrompt};
use holdfast_domain::transcript::session::Session;

use crate::log::{SESSION, START, exit};

/// What a call of the model's tools does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum Tool {
    /// A supervised command.
    Shell,
    /// A file's publication, within the host.
    File,
}

impl Tool {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Shell => "shell",
            Self::File => "write_file",
        }
    }

    pub(super) fn of(name: &str) -> Self {
        if name == "shell" {
            Self::Shell
        } else {
            Self::File
        }
    }
}

/// Where the executor of an attempt is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Executor {
    /// Not there yet.
    Absent,
    /// A supervisor that has not claimed the start; a file tool before its publication.
    Ready,
    /// The supervisor has claimed the start and not run the command.
    Claimed,
    /// The effect has begun.
    Ran,
    /// Gone, by itself or by force.
    Gone,
}

/// Who claimed the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Start {
    Free,
    Supervisor,
    Void,
}

/// The end that a receipt tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum End {
    Success,
    Failure,
    Stopped,
    /// Its time was over.
    TimedOut,
    /// Told to end, and one process could not be.
    Unproven,
}

/// One attempt outside of the log.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Effect {
    pub(super) tool: Tool,
    pub(super) folder: bool,
    pub(super) executor: Executor,
    pub(super) start: Start,
    /// The receipt in the folder.
    pub(super) exit: Option<End>,
    pub(super) synced: bool,
    pub(super) stop_wanted: bool,
    /// A process that can't be stopped is alive.
    pub(super) straggler: bool,
    pub(super) boot: u8,
    /// The truth: how often it was executed, and how it really ended.
    pub(super) runs: u8,
    pub(super) truth: Option<End>,
}

/// A host that holds the session's lock.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Host {
    pub(super) epoch: u8,
    pub(super) running: bool,
    pub(super) cancelled: bool,
    /// Attempts whose executor it owns.
    pub(super) in_flight: BTreeSet<usize>,
    /// Commands of its own that go on in the background (TR-50).
    pub(super) background: BTreeSet<usize>,
    /// Attempts that it found running, and watches.
    pub(super) watched: BTreeSet<usize>,
    /// It could not read the effect folders.
    pub(super) blind: bool,
    /// Steps of recovery that are still to do.
    pub(super) recovery: VecDeque<Step>,
}

/// A step of recovery, with a comparison by its text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step(pub(super) RestartStep);

impl Eq for Step {}

impl Hash for Step {
    fn hash<H: Hasher>(&self, state: &mut H) {
        format!("{:?}", self.0).hash(state);
    }
}

/// What a person last saw.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub(super) struct Person {
    pub(super) epoch: String,
    pub(super) revision: String,
    pub(super) inspections: BTreeMap<usize, String>,
}

/// How much of each may still happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Budget {
    pub(super) messages: u8,
    pub(super) calls: u8,
    pub(super) crashes: u8,
    pub(super) reboots: u8,
    pub(super) losses: u8,
    /// Commands that go on in the background.
    pub(super) jobs: u8,
    /// Openings at which no effect folder can be read.
    pub(super) blind: u8,
    pub(super) timeouts: u8,
    pub(super) stops: u8,
    pub(super) unproven: u8,
    pub(super) looks: u8,
    pub(super) actions: u8,
    pub(super) answers: u8,
}

/// Rules that a test takes away, to see that the search finds what follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(super) struct Defects {
    /// A host takes an unclaimed start for proof without claiming it.
    pub(super) no_fence: bool,
    /// The receipt is written behind the execution.
    pub(super) late_receipt: bool,
    /// The repeat guard is not asked.
    pub(super) no_guard: bool,
}

#[derive(Debug, Clone)]
pub(super) struct World {
    pub(super) session: Arc<Session>,
    /// Hash of the whole log.
    pub(super) log: u64,
    pub(super) seq: u64,
    pub(super) effects: Vec<Effect>,
    pub(super) host: Option<Host>,
    pub(super) boot: u8,
    pub(super) epochs: u8,
    pub(super) persons: [Person; 2],
    pub(super) budget: Budget,
    pub(super) defects: Defects,
    /// Executions that a person allowed in full knowledge: retries and repeats.
    pub(super) allowed: u8,
    pub(super) defect: Option<String>,
}

impl World {
    pub(super) fn new(budget: Budget, defects: Defects) -> Self {
        let mut world = Self {
            session: Arc::default(),
            log: 0,
            seq: 0,
            effects: Vec::new(),
            host: Some(Host::default()),
            boot: 1,
            epochs: 0,
            persons: [Person::default(), Person::default()],
            budget,
            defects,
            allowed: 0,
            defect: None,
        };
        world.add(
            SessionCreated {
                session_id: SESSION.to_owned(),
                workspace: "/w".to_owned(),
                writes: Record::KINDS
                    .iter()
                    .map(|kind| (*kind).to_owned())
                    .collect(),
                mode: "full".to_owned(),
                ..SessionCreated::default()
            }
            .into(),
        );
        world.add(
            SystemPrompt {
                text: "be careful".to_owned(),
            }
            .into(),
        );
        world
    }

    /// Makes a record durable. An answer that a model may have got must not change by it.
    pub(super) fn add(&mut self, record: Record) {
        self.seq += 1;
        let mut hasher = std::hash::DefaultHasher::new();
        (self.log, record.kind(), record.payload().unwrap()).hash(&mut hasher);
        self.log = hasher.finish();
        let before = self.answers();
        Arc::make_mut(&mut self.session).apply(&Entry {
            seq: self.seq,
            at: START + self.seq * 1000,
            record,
        });
        let after = self.answers();
        for (call, answer) in before {
            if after.get(&call) != Some(&answer) {
                self.fail(format!("TR-15: the answer of {call} changed"));
            }
        }
    }

    fn answers(&self) -> BTreeMap<String, String> {
        (0..8)
            .map(|index| format!("c{index}"))
            .filter_map(|id| Some((id.clone(), self.session.answer(&id)?)))
            .collect()
    }

    pub(super) fn fail(&mut self, words: String) {
        self.defect.get_or_insert(words);
    }

    pub(super) fn boot_id(&self) -> String {
        format!("boot-{}", self.boot)
    }

    pub(super) fn key(&self) -> u128 {
        let half = |salt: u8| {
            let mut hasher = std::hash::DefaultHasher::new();
            salt.hash(&mut hasher);
            self.log.hash(&mut hasher);
            self.effects.hash(&mut hasher);
            self.host.hash(&mut hasher);
            self.boot.hash(&mut hasher);
            self.persons.hash(&mut hasher);
            self.budget.hash(&mut hasher);
            self.allowed.hash(&mut hasher);
            u128::from(hasher.finish())
        };
        half(1) << 64 | half(2)
    }
}

/// `a<index>`, the id of an attempt.
pub(super) fn id_of(index: usize) -> String {
    format!("a{index}")
}

pub(super) fn index_of(attempt_id: &str) -> usize {
    attempt_id
        .strip_prefix('a')
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(usize::MAX)
}

/// The receipt file of an end.
pub(super) fn receipt_of(index: usize, end: End) -> ExitReceipt {
    let (ended_by, code) = match end {
        End::Success => (EndedBy::Itself, Some(0)),
        End::Failure => (EndedBy::Itself, Some(3)),
        End::Stopped | End::Unproven => (EndedBy::Stop, None),
        End::TimedOut => (EndedBy::Timeout, None),
    };
    let mut receipt = exit(&id_of(index), ended_by, code);
    if end == End::Unproven {
        receipt.tree_proof = TreeProof::None;
        receipt.stragglers = stragglers();
    }
    receipt
}

pub(super) fn stragglers() -> Vec<Straggler> {
    vec![Straggler {
        pid: 77,
        name: "sudo".to_owned(),
    }]
}
