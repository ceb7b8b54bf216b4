//! A log in memory: records get their place and time, and the fold follows.

use holdfast_domain::canonical::sha256_hex;
use holdfast_domain::recovery::attempt::{
    Attempt, EFFECT_UNKNOWN, Evidence, Inspection, InspectionState, Resolution,
};
use holdfast_domain::recovery::identity::Identity;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{EndedBy, ExitReceipt, Straggler, TreeProof};
use holdfast_domain::transcript::record::{
    AssistantMessage, AttemptChanged, Compacted, Entry, Inspected, NotStarted, ProposedCall,
    Receipt, Record, Resolved, ResultSource, Rewound, SessionCreated, ToolResult, ToolStarted,
    TurnEnded, TurnStarted, UserMessage,
};
use holdfast_domain::transcript::session::Session;

pub(crate) const SESSION: &str = "0123456789abcdef0123456789abcdef";
/// 2026-11-30T12:00:00Z.
pub(crate) const START: u64 = 1_796_040_000_000;

pub(crate) struct Log {
    pub(crate) entries: Vec<Entry>,
    pub(crate) session: Session,
}

impl Log {
    /// Without a header.
    pub(crate) fn empty() -> Self {
        Self {
            entries: Vec::new(),
            session: Session::default(),
        }
    }

    /// With the header that this version writes.
    pub(crate) fn new() -> Self {
        Self::with_writes(Record::KINDS)
    }

    pub(crate) fn with_writes(kinds: &[&str]) -> Self {
        let mut log = Self::empty();
        log.add(SessionCreated {
            session_id: SESSION.to_owned(),
            workspace: "/w".to_owned(),
            writes: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
            ..SessionCreated::default()
        });
        log
    }

    pub(crate) fn add(&mut self, record: impl Into<Record>) -> &mut Self {
        let seq = self.entries.len() as u64 + 1;
        let entry = Entry {
            seq,
            at: START + seq * 1000,
            record: record.into(),
        };
        self.session.apply(&entry);
        self.entries.push(entry);
        self
    }

    /// A person's message and the start of its turn.
    pub(crate) fn turn(&mut self, turn_id: &str) -> &mut Self {
        self.add(UserMessage {
            turn_id: turn_id.to_owned(),
            text: format!("message of {turn_id}"),
            submission_id: String::new(),
            steer_item: String::new(),
        });
        self.add(TurnStarted {
            turn_id: turn_id.to_owned(),
            continuation: false,
        })
    }

    /// The model's message with calls as (id, tool).
    pub(crate) fn says(&mut self, turn_id: &str, step: u32, calls: &[(&str, &str)]) -> &mut Self {
        self.add(AssistantMessage {
            turn_id: turn_id.to_owned(),
            step,
            text: format!("answer {step} of {turn_id}"),
            calls: calls
                .iter()
                .map(|(id, tool)| ProposedCall {
                    call_id: (*id).to_owned(),
                    provider_id: (*id).to_owned(),
                    name: (*tool).to_owned(),
                    arguments: format!("{{\"of\":\"{id}\"}}"),
                })
                .collect(),
            ..AssistantMessage::default()
        })
    }

    pub(crate) fn receipt(&mut self, attempt_id: &str, call_id: &str, tool: &str) -> &mut Self {
        let receipt = receipt(attempt_id, call_id, tool);
        self.add(receipt)
    }

    pub(crate) fn start(&mut self, attempt_id: &str) -> &mut Self {
        self.add(ToolStarted {
            attempt_id: attempt_id.to_owned(),
            boot_id: "boot-1".to_owned(),
        })
    }

    pub(crate) fn change(&mut self, attempt_id: &str, state: AttemptState) -> &mut Self {
        self.add(changed(attempt_id, state))
    }

    pub(crate) fn resolve(&mut self, attempt_id: &str, resolution: Resolution) -> &mut Self {
        self.add(resolved(attempt_id, resolution))
    }

    /// A summary in place of all so far.
    pub(crate) fn compact(&mut self) -> &mut Self {
        let upto_seq = self.session.last_seq;
        self.add(Compacted {
            upto_seq,
            summary: format!("summary of all up to {upto_seq}"),
            usage: None,
        })
    }

    /// The place of a turn's message.
    pub(crate) fn message_of(&self, turn: &str) -> u64 {
        let meant = |entry: &&Entry| match &entry.record {
            Record::UserMessage(message) => message.turn_id == turn,
            _ => false,
        };
        self.entries.iter().find(meant).unwrap().seq
    }

    /// Back to before a turn's message.
    pub(crate) fn rewind(&mut self, turn: &str) -> &mut Self {
        let to_seq = self.message_of(turn);
        self.add(Rewound {
            to_seq,
            reason: "person".to_owned(),
        })
    }

    pub(crate) fn end(&mut self, turn_id: &str, status: &str) -> &mut Self {
        self.add(TurnEnded {
            turn_id: turn_id.to_owned(),
            status: status.to_owned(),
            ..TurnEnded::default()
        })
    }

    pub(crate) fn attempt(&self, attempt_id: &str) -> &Attempt {
        self.session.attempt(attempt_id).unwrap()
    }

    /// A log in which attempt `a` of call `c1`, tool `tool`, has that state.
    pub(crate) fn with_attempt(state: AttemptState, read_only: bool) -> Self {
        let mut log = Self::new();
        log.turn("t1").says("t1", 1, &[("c1", "shell")]);
        log.bring_to(state, read_only);
        log
    }

    /// Adds attempt `a` of call `c1` and the records that bring it to that state.
    pub(crate) fn bring_to(&mut self, state: AttemptState, read_only: bool) {
        let first = Receipt {
            read_only,
            supervised: true,
            ..receipt("a", "c1", "shell")
        };
        self.bring(first, state);
    }

    /// Adds this receipt of an attempt `a` and the records that bring it to that state.
    pub(crate) fn bring(&mut self, first: Receipt, state: AttemptState) {
        self.add(first);
        match state {
            AttemptState::Pending => {}
            AttemptState::Started => {
                self.start("a");
            }
            AttemptState::Running => {
                self.start("a").change("a", AttemptState::Running);
            }
            AttemptState::Unknown => {
                self.start("a").change("a", AttemptState::Unknown);
            }
            AttemptState::Completed | AttemptState::Failed | AttemptState::Interrupted => {
                self.start("a").add(result("a", state, "output"));
            }
            AttemptState::Cancelled => {
                self.change("a", AttemptState::Cancelled);
            }
            AttemptState::NotStarted => {
                self.add(NotStarted {
                    attempt_id: "a".to_owned(),
                    reason: "stopped before its start".to_owned(),
                });
            }
            AttemptState::UserConfirmed => {
                self.start("a").resolve("a", Resolution::Confirm);
            }
            AttemptState::UserDismissed => {
                self.start("a").resolve("a", Resolution::Dismiss);
            }
        }
    }
}

pub(crate) fn identity(attempt_id: &str, call_id: &str, tool: &str) -> Identity {
    Identity {
        session_id: SESSION.to_owned(),
        turn_id: "t1".to_owned(),
        step: 1,
        call_id: call_id.to_owned(),
        canonical_tool: tool.to_owned(),
        argument_digest: sha256_hex(call_id.as_bytes()),
        attempt_id: attempt_id.to_owned(),
        resource_scope: format!("session:{SESSION}"),
    }
}

pub(crate) fn receipt(attempt_id: &str, call_id: &str, tool: &str) -> Receipt {
    let identity = identity(attempt_id, call_id, tool);
    Receipt {
        idempotency_key: identity.idempotency_key(),
        identity,
        read_only: false,
        subject: "SUBJECT".to_owned(),
        file: None,
        supervised: false,
    }
}

pub(crate) fn changed(attempt_id: &str, state: AttemptState) -> AttemptChanged {
    AttemptChanged {
        attempt_id: attempt_id.to_owned(),
        state,
        reason: format!("now {}", state.as_str()),
        stragglers: Vec::new(),
    }
}

pub(crate) fn result(attempt_id: &str, state: AttemptState, text: &str) -> ToolResult {
    ToolResult {
        attempt_id: attempt_id.to_owned(),
        state,
        source: ResultSource::Live,
        text: text.to_owned(),
        digest: sha256_hex(text.as_bytes()),
        effect_summary: String::new(),
        output: None,
        truncated: false,
        diff: None,
        exit: None,
        raw: None,
        may_continue_elsewhere: false,
        duration_ms: 5,
    }
}

/// A failure that left its effect open (TR-09).
pub(crate) fn open_failure(attempt_id: &str, text: &str) -> ToolResult {
    ToolResult {
        effect_summary: EFFECT_UNKNOWN.to_owned(),
        ..result(attempt_id, AttemptState::Failed, text)
    }
}

pub(crate) fn resolved(attempt_id: &str, resolution: Resolution) -> Resolved {
    Resolved {
        attempt_id: attempt_id.to_owned(),
        resolution,
        inspection_id: "i1".to_owned(),
        source: "test".to_owned(),
    }
}

pub(crate) fn inspected(attempt_id: &str, inspection_id: &str) -> Inspected {
    Inspected {
        attempt_id: attempt_id.to_owned(),
        inspection: Inspection {
            inspection_id: inspection_id.to_owned(),
            state: InspectionState::Unknown,
            evidence: Evidence::None,
            summary: "nothing to look at".to_owned(),
        },
    }
}

pub(crate) fn exit(attempt_id: &str, ended_by: EndedBy, code: Option<i32>) -> ExitReceipt {
    ExitReceipt {
        protocol: 1,
        attempt_id: attempt_id.to_owned(),
        argument_digest: String::new(),
        code,
        signal: None,
        ended_by,
        spawn_error: None,
        output_length: 3,
        output_sha256: sha256_hex(b"out"),
        output_truncated: false,
        tree_proof: TreeProof::Full,
        stragglers: Vec::new(),
        survivors: Vec::new(),
        started_at: START,
        finished_at: START + 10,
    }
}

pub(crate) fn process(pid: u32, name: &str) -> Straggler {
    Straggler {
        pid,
        name: name.to_owned(),
    }
}
