//! A session's records of any length, as a working day makes them: a message, a command of the
//! model's, its result, the model's words.
//!
//! Guarantee: the same arguments give the same records.

use holdfast_domain::canonical::{digest, sha256_hex};
use holdfast_domain::recovery::identity::Identity;
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{EndedBy, ExitReceipt, TreeProof};
use holdfast_domain::transcript::record::{
    AssistantMessage, ProposedCall, Receipt, Record, ResultSource, SessionCreated, SystemPrompt,
    ToolResult, ToolStarted, TurnEnded, TurnStarted, Usage, UserMessage,
};
use holdfast_journal::NewRecord;

/// Records of one turn.
pub const RECORDS_OF_TURN: usize = 8;

const BOOT: &str = "6f1f1a2c-8a55-4a53-9c0a-0f3f6a3d2b11";

/// The header.
pub fn header(session_id: &str, workspace: &str) -> Record {
    SessionCreated {
        session_id: session_id.to_owned(),
        workspace: workspace.to_owned(),
        model: "demo/demo".to_owned(),
        mode: "full".to_owned(),
        writes: Record::KINDS
            .iter()
            .map(|kind| (*kind).to_owned())
            .collect(),
        version: "0.1.0".to_owned(),
        ..SessionCreated::default()
    }
    .into()
}

/// The system prompt and then `count` turns, each of [`RECORDS_OF_TURN`] records.
pub fn turns(session_id: &str, count: usize) -> Vec<Record> {
    let mut records = vec![
        SystemPrompt {
            text: "You work in the folder of a project. ".repeat(30),
        }
        .into(),
    ];
    for turn in 0..count {
        records.extend(Turn::new(session_id, turn).records());
    }
    records
}

/// What one tool call makes durable before it starts: the model's message with the call, its
/// receipt and its start record.
pub fn start_batch(session_id: &str) -> Vec<Record> {
    Turn::new(session_id, 0).start()
}

/// As the log takes them.
///
/// # Errors
/// When a record has no JSON text.
pub fn lines(records: &[Record]) -> anyhow::Result<Vec<NewRecord>> {
    records
        .iter()
        .map(|record| Ok(NewRecord::new(record.kind(), record.payload()?)))
        .collect()
}

struct Turn {
    turn_id: String,
    identity: Identity,
    call: ProposedCall,
}

impl Turn {
    fn new(session_id: &str, number: usize) -> Self {
        let turn_id = format!("{number:032x}");
        let command = format!("cargo test -p greeting --test case_{number} 2>&1 | tail -n 40");
        let arguments = format!("{{\"command\":\"{command}\",\"timeout_s\":300}}");
        let identity = Identity {
            session_id: session_id.to_owned(),
            turn_id: turn_id.clone(),
            step: 1,
            call_id: format!("call_{number:024x}"),
            canonical_tool: "shell".to_owned(),
            argument_digest: digest(&arguments),
            attempt_id: format!("{:032x}", number + (1 << 40)),
            resource_scope: format!("session:{session_id}"),
        };
        let call = ProposedCall {
            call_id: identity.call_id.clone(),
            provider_id: identity.call_id.clone(),
            name: "shell".to_owned(),
            arguments,
        };
        Self {
            turn_id,
            identity,
            call,
        }
    }

    fn records(&self) -> Vec<Record> {
        let mut records: Vec<Record> = vec![
            UserMessage {
                turn_id: self.turn_id.clone(),
                text: "The greeting is wrong when the name is empty. Run the tests, find out why, \
                       and mend it where the name is read."
                    .to_owned(),
                submission_id: format!("key-{}", self.turn_id),
                steer_item: String::new(),
            }
            .into(),
            TurnStarted {
                turn_id: self.turn_id.clone(),
                continuation: false,
            }
            .into(),
        ];
        records.extend(self.start());
        records.push(self.result().into());
        records.push(self.message(2, Vec::new()).into());
        records.push(
            TurnEnded {
                turn_id: self.turn_id.clone(),
                status: "completed".to_owned(),
                ..TurnEnded::default()
            }
            .into(),
        );
        records
    }

    fn start(&self) -> Vec<Record> {
        vec![
            self.message(1, vec![self.call.clone()]).into(),
            Receipt {
                identity: self.identity.clone(),
                read_only: false,
                idempotency_key: self.identity.idempotency_key(),
                subject: "cargo test -p greeting".to_owned(),
                file: None,
                supervised: true,
            }
            .into(),
            ToolStarted {
                attempt_id: self.identity.attempt_id.clone(),
                boot_id: BOOT.to_owned(),
            }
            .into(),
        ]
    }

    fn message(&self, step: u32, calls: Vec<ProposedCall>) -> AssistantMessage {
        AssistantMessage {
            turn_id: self.turn_id.clone(),
            step,
            text: "I run the tests of that part first, to see which of them fails and how. "
                .repeat(3),
            reasoning: "The name may be empty in two places. ".repeat(8),
            finish_reason: if calls.is_empty() {
                "stop"
            } else {
                "tool_calls"
            }
            .to_owned(),
            calls,
            usage: Some(Usage {
                input: 4096,
                output: 128,
                cached_input: 3584,
                reasoning: 64,
            }),
            partial: false,
        }
    }

    fn result(&self) -> ToolResult {
        let text = "test case ... ok, nothing to see here, the name is read as it was\n".repeat(12);
        ToolResult {
            attempt_id: self.identity.attempt_id.clone(),
            state: AttemptState::Completed,
            source: ResultSource::Live,
            digest: sha256_hex(text.as_bytes()),
            effect_summary: String::new(),
            output: None,
            truncated: false,
            diff: None,
            exit: Some(ExitReceipt {
                protocol: 1,
                attempt_id: self.identity.attempt_id.clone(),
                argument_digest: self.identity.argument_digest.clone(),
                code: Some(0),
                signal: None,
                ended_by: EndedBy::Itself,
                spawn_error: None,
                output_length: text.len() as u64,
                output_sha256: sha256_hex(text.as_bytes()),
                output_truncated: false,
                tree_proof: TreeProof::Full,
                stragglers: Vec::new(),
                survivors: Vec::new(),
                started_at: 1_750_000_000_000,
                finished_at: 1_750_000_001_234,
            }),
            raw: None,
            may_continue_elsewhere: false,
            duration_ms: 1234,
            text,
        }
    }
}
