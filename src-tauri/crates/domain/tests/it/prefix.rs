//! Generated sessions that follow the turn protocol: what was sent once stays a prefix of all that
//! is sent later.

use std::collections::{BTreeMap, BTreeSet};

use holdfast_domain::recovery::attempt::{Attempt, Resolution};
use holdfast_domain::recovery::barrier;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{EndedBy, ExitReceipt, ProcessEvidence, TreeProof};
use holdfast_domain::recovery::restart::{Damage, Findings, plan};
use holdfast_domain::transcript::next::{Next, next};
use holdfast_domain::transcript::notes::{closing, closings, host_note};
use holdfast_domain::transcript::outbound::OutboundMessage;
use holdfast_domain::transcript::record::{
    AssistantMessage, CallRefused, Compacted, Entry, ProposedCall, Record, Rewound,
    SettingsChanged, Superseded, SystemPrompt, TurnStarted,
};
use holdfast_domain::transcript::session::{Item, Session};
use holdfast_domain::transcript::view::{check_pairing, outbound, summary_request};
use proptest::prelude::*;

use crate::log::{Log, changed, exit, inspected, open_failure, process, receipt, result};
use crate::restart::carry_out;
use crate::vectors;

/// A host driven by dice.
struct Host<'a> {
    log: Log,
    dice: std::slice::Iter<'a, u8>,
    /// Calls that run now, and their attempts.
    running: BTreeMap<String, String>,
    turns: u32,
    attempts: u32,
    calls: u32,
    /// The latest request.
    sent: Vec<OutboundMessage>,
    requests: u32,
    answers: BTreeMap<String, String>,
    by_person: BTreeMap<String, AttemptState>,
    /// A person compacts and rewinds too.
    rewrites: bool,
}

impl<'a> Host<'a> {
    fn new(dice: &'a [u8]) -> Self {
        let mut log = Log::new();
        log.add(SystemPrompt {
            text: "be careful".to_owned(),
        });
        Self {
            log,
            dice: dice.iter(),
            running: BTreeMap::new(),
            turns: 0,
            attempts: 0,
            calls: 0,
            sent: Vec::new(),
            requests: 0,
            answers: BTreeMap::new(),
            by_person: BTreeMap::new(),
            rewrites: false,
        }
    }

    fn roll(&mut self, sides: u8) -> Option<u8> {
        self.dice.next().map(|die| die % sides)
    }

    fn add(&mut self, record: impl Into<Record>) {
        self.log.add(record);
        self.check();
    }

    /// After every record: no answer and no person's word changed.
    fn check(&mut self) {
        for item in 1..=self.calls {
            let id = format!("c{item}");
            if let Some(answer) = self.log.session.answer(&id) {
                let first = self.answers.entry(id.clone()).or_insert(answer.clone());
                assert_eq!(first, &answer, "the answer of {id} changed");
            } else {
                assert!(
                    !self.answers.contains_key(&id),
                    "the answer of {id} is gone"
                );
            }
        }
        for attempt in self.log.session.attempts() {
            let id = attempt.identity.attempt_id.clone();
            if attempt.state.is_by_person() {
                let first = self.by_person.entry(id).or_insert(attempt.state);
                assert_eq!(*first, attempt.state);
            } else {
                assert!(!self.by_person.contains_key(&id));
            }
        }
    }

    /// The sampling gate, and the prefix.
    fn send(&mut self) {
        let messages = outbound(&self.log.session);
        assert_eq!(check_pairing(&messages), Ok(()));
        assert!(
            messages.starts_with(&self.sent),
            "was {:#?}\nis {messages:#?}",
            self.sent
        );
        self.sent = messages;
        self.requests += 1;
    }

    fn open_attempts(&self) -> Vec<String> {
        self.log
            .session
            .attempts()
            .filter(|attempt| attempt.is_unresolved(false))
            .map(|attempt| attempt.identity.attempt_id.clone())
            .filter(|id| !self.running.values().any(|running| running == id))
            .collect()
    }

    fn between_turns(&mut self) -> Option<()> {
        if self.rewrites && self.roll(4)? == 0 {
            return self.rewrite();
        }
        let open = self.open_attempts();
        match (self.roll(7)?, open.first()) {
            (0, Some(id)) => {
                self.add(inspected(id, "i1"));
                let word = match self.roll(3)? {
                    0 => Resolution::Confirm,
                    1 => Resolution::Dismiss,
                    _ => Resolution::Reject,
                };
                let word = crate::log::resolved(id, word);
                self.add(word);
            }
            (1, Some(id)) => self.add(result(id, AttemptState::Completed, "came late")),
            (2, Some(id)) => self.retry(id),
            (3, _) => {
                let settled: Vec<String> = self.by_person.keys().cloned().collect();
                for id in settled {
                    self.add(result(&id, AttemptState::Failed, "after the person's word"));
                }
            }
            (4, _) => self.add(SettingsChanged {
                title: Some("a title".to_owned()),
                ..SettingsChanged::default()
            }),
            (5, _) => self.add(Record::parse("of_the_future", "{}")),
            _ => {
                for record in closings(&self.log.session) {
                    self.add(record);
                }
                if let Some(note) = host_note(&self.log.session) {
                    self.add(note);
                }
                self.turns += 1;
                self.log.turn(&format!("t{}", self.turns));
                self.check();
            }
        }
        Some(())
    }

    /// TR-22: a compaction or a rewind; what the next request begins with is another from here on.
    fn rewrite(&mut self) -> Option<()> {
        let before: Vec<Attempt> = self.log.session.attempts().cloned().collect();
        let messages: Vec<u64> = self
            .log
            .session
            .items
            .iter()
            .filter(|item| matches!(item, Item::User { .. }))
            .map(Item::seq)
            .collect();
        let rewind = self.roll(2)? == 0;
        let place = usize::from(self.roll(8)?);
        match messages.iter().rev().nth(place) {
            Some(to_seq) if rewind => self.add(Rewound {
                to_seq: *to_seq,
                reason: "person".to_owned(),
            }),
            _ => {
                for record in closings(&self.log.session) {
                    self.add(record);
                }
                assert_eq!(check_pairing(&summary_request(&self.log.session)), Ok(()));
                self.add(Compacted {
                    upto_seq: self.log.session.last_seq,
                    summary: format!("summary {}", self.log.session.last_seq),
                    usage: None,
                });
            }
        }
        self.sent = Vec::new();
        // Told again, or answered before the summary was asked for: nothing else may differ.
        let after: Vec<Attempt> = self.log.session.attempts().cloned().collect();
        let kept = |attempts: Vec<Attempt>| -> Vec<Attempt> {
            attempts
                .into_iter()
                .map(|attempt| Attempt {
                    told: false,
                    synthetic_sent: false,
                    ..attempt
                })
                .collect()
        };
        assert_eq!(kept(before), kept(after));
        Some(())
    }

    fn retry(&mut self, earlier: &str) {
        self.attempts += 1;
        let id = format!("a{}", self.attempts);
        self.add(receipt(&id, &format!("retry_{id}"), "shell"));
        self.add(Superseded {
            attempt_id: earlier.to_owned(),
            by: id.clone(),
        });
        self.log.start(&id);
        self.add(result(&id, AttemptState::Completed, "of the retry"));
    }

    fn within_a_turn(&mut self, turn_id: &str) -> Option<()> {
        match self.roll(12)? {
            0 => return self.crash(),
            1 => return self.stop(turn_id),
            _ => {}
        }
        let running: BTreeSet<String> = self.running.keys().cloned().collect();
        match next(&self.log.session, &running, |call| call.name == "read_file") {
            Next::Model => {
                self.send();
                let count = self.roll(4)?;
                let calls = (0..count)
                    .map(|_| {
                        self.calls += 1;
                        let name = match self.roll(3) {
                            Some(0) => "read_file",
                            _ => "shell",
                        };
                        let arguments = match self.roll(4) {
                            Some(0) => "{\"a\":1,\"a\":2}".to_owned(),
                            _ => format!("{{\"n\": {}}}", self.calls),
                        };
                        ProposedCall {
                            call_id: format!("c{}", self.calls),
                            name: name.to_owned(),
                            arguments,
                            ..ProposedCall::default()
                        }
                    })
                    .collect();
                let step = self.log.session.turn.as_ref().map_or(0, |turn| turn.steps) + 1;
                self.add(AssistantMessage {
                    turn_id: turn_id.to_owned(),
                    step,
                    text: format!("answer {step}"),
                    reasoning: "hm".to_owned(),
                    calls,
                    ..AssistantMessage::default()
                });
            }
            Next::Calls(ids) => {
                for id in ids {
                    self.take_up(turn_id, &id)?;
                }
            }
            Next::Wait => self.finish_one()?,
            Next::Synthetic(id) => {
                let call = self.log.session.call(&id).unwrap().clone();
                let record = closing(&self.log.session, &call);
                assert!(matches!(record, Record::SyntheticResult(_)));
                self.add(record);
            }
            Next::Completed => {
                self.log.end(turn_id, "completed");
            }
            Next::TooManySteps => {
                self.log.end(turn_id, "failed");
            }
        }
        Some(())
    }

    fn take_up(&mut self, turn_id: &str, call_id: &str) -> Option<()> {
        let call = self.log.session.call(call_id).unwrap().clone();
        let in_flight = self.running.values().cloned().collect();
        let read_only = call.proposed.name == "read_file";
        let refused = |code: &str, text: String| CallRefused {
            turn_id: turn_id.to_owned(),
            call_id: call_id.to_owned(),
            code: code.to_owned(),
            text,
        };
        let blocked = barrier::refuses(self.log.session.attempts(), &in_flight, None)
            .filter(|_| !read_only)
            .map(barrier::refusal_text);
        if let Some(text) = blocked {
            self.add(refused("recovery_required", text));
            return Some(());
        }
        if call.proposed.arguments.contains("\"a\"") {
            self.add(refused("arguments_duplicate_key", "refused".to_owned()));
            return Some(());
        }
        if self.roll(8)? == 0 {
            self.add(refused("denied", "denied".to_owned()));
            return Some(());
        }
        self.attempts += 1;
        let id = format!("a{}", self.attempts);
        let mut first = receipt(&id, call_id, &call.proposed.name);
        first.read_only = read_only;
        first.supervised = !read_only;
        self.add(first);
        if self.roll(16)? == 0 {
            // The host dies between the receipt and the start.
            return self.crash();
        }
        self.log.start(&id);
        self.running.insert(call_id.to_owned(), id);
        Some(())
    }

    fn finish_one(&mut self) -> Option<()> {
        let (call_id, id) = self.running.pop_first()?;
        match self.roll(5)? {
            0 => self.add(result(
                &id,
                AttemptState::Failed,
                &format!("failure of {call_id}"),
            )),
            1 => self.add(open_failure(&id, "dropped")),
            2 => self.add(result(&id, AttemptState::Interrupted, "stopped")),
            3 => self.add(changed(&id, AttemptState::Unknown)),
            _ => self.add(result(
                &id,
                AttemptState::Completed,
                &format!("output of {call_id}"),
            )),
        }
        Some(())
    }

    fn stop(&mut self, turn_id: &str) -> Option<()> {
        let running: Vec<String> = std::mem::take(&mut self.running).into_values().collect();
        for id in running {
            if self.roll(2)? == 0 {
                self.add(result(&id, AttemptState::Interrupted, "stopped"));
            } else {
                self.add(changed(&id, AttemptState::Unknown));
            }
        }
        self.log.end(turn_id, "cancelled");
        self.check();
        Some(())
    }

    fn crash(&mut self) -> Option<()> {
        self.running.clear();
        let mut findings = Findings {
            boot_id: "boot-2".to_owned(),
            mutating_tools: BTreeSet::from(["shell".to_owned()]),
            ..Findings::default()
        };
        let open: Vec<String> = self
            .log
            .session
            .attempts()
            .filter(|attempt| attempt.supervised)
            .map(|attempt| attempt.identity.attempt_id.clone())
            .collect();
        for id in open {
            let evidence = match self.roll(6)? {
                0 => ProcessEvidence::Fenced,
                1 => ProcessEvidence::Running { pid: 1 },
                2 => ProcessEvidence::Exited {
                    receipt: exit(&id, EndedBy::Itself, Some(0)),
                    output_incomplete: false,
                    alive: false,
                },
                3 => ProcessEvidence::Exited {
                    receipt: ExitReceipt {
                        tree_proof: TreeProof::None,
                        ..exit(&id, EndedBy::Stop, None)
                    },
                    output_incomplete: true,
                    alive: false,
                },
                4 => ProcessEvidence::Lost {
                    reason: "gone".to_owned(),
                    stragglers: vec![process(4, "sleep")],
                },
                _ => ProcessEvidence::NoFolder,
            };
            findings.processes.insert(id, evidence);
        }
        if self.roll(6)? == 0 {
            findings.damage.push(Damage {
                after_seq: self.log.session.last_seq,
                before_seq: None,
            });
        }
        let steps = plan(&self.log.session, &findings);
        carry_out(&mut self.log, &steps);
        self.check();
        // Sometimes the interrupted turn goes on.
        let turn = self.log.session.turn.clone();
        if let Some(turn) = turn
            && self.roll(2)? == 0
        {
            self.add(TurnStarted {
                turn_id: turn.id,
                continuation: true,
            });
        }
        Some(())
    }

    fn run(&mut self) {
        loop {
            let turn = self.log.session.open_turn().map(|turn| turn.id.clone());
            let went_on = match turn {
                Some(turn_id) => self.within_a_turn(&turn_id),
                None => self.between_turns(),
            };
            if went_on.is_none() {
                return;
            }
        }
    }
}

proptest! {
    #![proptest_config(vectors::cases(400))]

    #[test]
    fn tr_15_what_was_sent_stays_a_prefix_and_every_answer_stays(
        dice in prop::collection::vec(any::<u8>(), 20..400),
    ) {
        session_of(&dice, false)?;
    }

    #[test]
    fn tr_22_compactions_and_rewinds_keep_every_receipt_and_every_answer(
        dice in prop::collection::vec(any::<u8>(), 20..600),
    ) {
        session_of(&dice, true)?;
    }
}

fn session_of(dice: &[u8], rewrites: bool) -> Result<(), TestCaseError> {
    let mut host = Host::new(dice);
    host.rewrites = rewrites;
    host.run();
    // A reload of the same records shows the same.
    let reloaded = Session::from_entries(&host.log.entries);
    prop_assert_eq!(outbound(&reloaded), outbound(&host.log.session));
    let states = |session: &Session| -> Vec<_> { session.attempts().cloned().collect() };
    prop_assert_eq!(states(&reloaded), states(&host.log.session));
    // Wherever a crash cuts the log: a message can be sent behind it, and every receipt counts.
    let mut cut = Session::default();
    for entry in &host.log.entries {
        cut.apply(entry);
        if rewrites && entry.seq % 7 == 0 {
            let mut next = cut.clone();
            for (place, record) in closings(&cut).into_iter().enumerate() {
                let (seq, at) = (entry.seq + place as u64 + 1, entry.at);
                next.apply(&Entry { seq, at, record });
            }
            prop_assert_eq!(check_pairing(&outbound(&next)), Ok(()));
            let receipts = host.log.entries.iter().filter(|one| one.seq <= entry.seq);
            for one in receipts {
                if let Record::Receipt(receipt) = &one.record {
                    prop_assert!(cut.attempt(&receipt.identity.attempt_id).is_some());
                }
            }
        }
    }
    // Whatever is open, a new message can be sent, and what is learnt is told once.
    for record in closings(&host.log.session) {
        host.add(record);
    }
    if let Some(note) = host_note(&host.log.session) {
        host.add(note);
    }
    prop_assert_eq!(host_note(&host.log.session), None);
    host.log.turn("last");
    host.send();
    prop_assert!(host.requests > 0);
    Ok(())
}
