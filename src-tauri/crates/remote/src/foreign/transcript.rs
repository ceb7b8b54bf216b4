//! The transcript of such a host: records in their order, a call in its message and its result in a
//! record of its own.
//!
//! Guarantees: an item has the same place in every reading, though the host counts anew from the
//! first record that it still tells; a result goes to its call only when its id names one call
//! alone; a call without a result whose turn is over is `unknown`.

use std::collections::BTreeMap;

use holdfast_api::transcript::{LiveMessage, ToolView, TranscriptItem};
use serde_json::Value;

use crate::error::RemoteError;
use crate::foreign::shapes::{garbled, text};

/// What a reading of the transcript tells.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Told {
    /// Newest first.
    pub(super) items: Vec<TranscriptItem>,
    /// The message that is still streaming.
    pub(super) live: Option<LiveMessage>,
}

const OLDER: &str = "Earlier messages are not shown: this host tells the latest part of a \
                     conversation only.";
const NO_RESULT: &str = "The host has no result of this call; what it did is not known.";
const AMBIGUOUS: &str = "The host keeps results by the call's id, and this id was used for more \
                         than one call; which result is its own can't be told.";

/// Reads the transcript.
pub(super) fn read(told: &Value) -> Result<Told, RemoteError> {
    let records = told["records"]
        .as_array()
        .ok_or(garbled("it has no records"))?;
    let waits = told["runtime"]["status"] == "waiting_user";
    let calls = Calls::of(records, waits);
    let mut reading = Reading {
        calls,
        place: 0,
        told: Told::default(),
    };
    for record in records {
        reading.record(&record["message"]);
    }
    let mut told_items = reading.told;
    let people = records
        .iter()
        .filter(|record| record["message"]["role"] == "user")
        .count();
    let turns = told["totalTurns"].as_u64().unwrap_or_default();
    if told["hasOlder"] == true || turns > people as u64 {
        let first = told_items.items.first().map_or(1, |item| item.seq);
        told_items
            .items
            .insert(0, note(first.saturating_sub(1), OLDER.to_owned(), 0));
    }
    told_items.items.reverse();
    Ok(told_items)
}

/// The turn of the message that was sent with that key: `None` when there is no such message, empty
/// when its turn is not told.
pub(super) fn turn_of(told: &Value, key: &str) -> Option<String> {
    let runtime = &told["runtime"];
    let turn = |value: &Value| value["turnId"].as_str().unwrap_or_default().to_owned();
    if runtime["submissionId"] == key {
        return Some(turn(runtime));
    }
    let records = told["records"].as_array()?;
    let mut messages = records.iter().map(|record| &record["message"]);
    let sent = messages.find(|message| message["role"] == "user" && message["submissionId"] == key);
    sent.map(turn)
}

fn note(seq: u64, text: String, at: u64) -> TranscriptItem {
    TranscriptItem {
        seq,
        kind: "note".to_owned(),
        text: Some(text),
        reasoning: None,
        tool: None,
        turn_id: String::new(),
        at,
        partial: false,
        kept: Vec::new(),
    }
}

/// What is known of calls by their ids.
struct Calls<'a> {
    uses: BTreeMap<&'a str, usize>,
    results: BTreeMap<&'a str, &'a Value>,
    /// Calls without a result in the turn that runs.
    pending: usize,
    /// That turn waits for a person.
    waits: bool,
    /// How often an id was met while reading.
    met: BTreeMap<&'a str, usize>,
}

impl<'a> Calls<'a> {
    fn of(records: &'a [Value], waits: bool) -> Self {
        let (mut uses, mut results, mut pending) = (BTreeMap::new(), BTreeMap::new(), 0);
        for message in records.iter().map(|record| &record["message"]) {
            for call in calls(message) {
                *uses
                    .entry(call["id"].as_str().unwrap_or_default())
                    .or_default() += 1;
                pending += usize::from(call["pending"] == true);
            }
            if message["role"] == "tool" {
                results.insert(message["toolCallId"].as_str().unwrap_or_default(), message);
            }
        }
        Self {
            uses,
            results,
            pending,
            waits,
            met: BTreeMap::new(),
        }
    }

    fn view(&mut self, call: &'a Value) -> ToolView {
        let id = call["id"].as_str().unwrap_or_default();
        let uses = self.uses.get(id).copied().unwrap_or_default();
        let met = self.met.entry(id).or_default();
        *met += 1;
        let raw = text(call, "arguments");
        let mut view = ToolView {
            // Ids of items are different ones, whatever the model repeats.
            id: if *met == 1 {
                id.to_owned()
            } else {
                format!("{id}#{met}")
            },
            name: text(call, "name"),
            args: serde_json::from_str(&raw)
                .ok()
                .filter(Value::is_object)
                .unwrap_or(Value::String(raw)),
            read_only: call["resolvedReadOnly"] == true,
            diff: call["diff"]
                .as_str()
                .filter(|diff| !diff.is_empty())
                .map(str::to_owned),
            ..ToolView::default()
        };
        let result = self.results.get(id).copied();
        if call["pending"] == true {
            // It is asked about, or runs; with several at once which of them is not told.
            let asked = self.waits && self.pending == 1;
            view.state = if asked { "proposed" } else { "in_flight" }.to_owned();
        } else if uses > 1 {
            view.state = "unknown".to_owned();
            AMBIGUOUS.clone_into(&mut view.effect_summary);
        } else if let Some(result) = result {
            view.output = text(result, "content");
            view.result_source = Some("live".to_owned());
            let failed = !text(result, "toolResultError").is_empty();
            view.state = if failed { "failed" } else { "completed" }.to_owned();
        } else {
            view.state = "unknown".to_owned();
            NO_RESULT.clone_into(&mut view.effect_summary);
        }
        view
    }
}

fn calls(message: &Value) -> impl Iterator<Item = &Value> {
    message["toolCalls"].as_array().into_iter().flatten()
}

struct Reading<'a> {
    calls: Calls<'a>,
    /// The latest place.
    place: u64,
    told: Told,
}

impl<'a> Reading<'a> {
    fn record(&mut self, message: &'a Value) {
        let at = message["createdAt"]
            .as_u64()
            .or_else(|| born(message))
            .unwrap_or_default();
        // Thousand places for each millisecond leave room behind for what has no time of its own.
        let own = born(message)
            .or(message["createdAt"].as_u64())
            .unwrap_or_default();
        let place = own.saturating_mul(1000).max(self.place + 1);
        let item = |kind: &str, seq: u64| TranscriptItem {
            kind: kind.to_owned(),
            turn_id: text(message, "turnId"),
            ..note(seq, text(message, "content"), at)
        };
        match message["role"].as_str().unwrap_or_default() {
            "user" => self.put(item("user", place)),
            "assistant" if message["pending"] == true => {
                self.told.live = Some(LiveMessage {
                    turn_id: text(message, "turnId"),
                    text: text(message, "content"),
                    reasoning: text(message, "reasoning"),
                });
                self.calls_of(message, place, at);
            }
            "assistant" => {
                let reasoning = text(message, "reasoning");
                if !text(message, "content").is_empty() || !reasoning.is_empty() {
                    let mut said = item("assistant", place);
                    said.reasoning = Some(reasoning).filter(|text| !text.is_empty());
                    self.put(said);
                }
                self.calls_of(message, place, at);
            }
            // In their calls. One whose call is not told any more is shown by itself.
            "tool" => {
                let id = message["toolCallId"].as_str().unwrap_or_default();
                if !self.calls.uses.contains_key(id) {
                    self.put(item("note", place));
                }
            }
            "system" => {}
            // A note of the host, or what a later version tells.
            _ => {
                let aside = ["decision_receipt", "turn_result"];
                let told = !text(message, "content").is_empty();
                if told && !aside.contains(&message["code"].as_str().unwrap_or_default()) {
                    self.put(item("note", place));
                }
            }
        }
    }

    fn calls_of(&mut self, message: &'a Value, place: u64, at: u64) {
        for call in calls(message) {
            let view = self.calls.view(call);
            let mut item = note(place, String::new(), at);
            item.kind = "tool".to_owned();
            item.text = None;
            item.turn_id = text(message, "turnId");
            item.tool = Some(view);
            self.put(item);
        }
    }

    fn put(&mut self, item: TranscriptItem) {
        self.place = self.place.max(item.seq);
        self.told.items.push(item);
    }
}

/// Milliseconds at which its id was made: the first ten of its 26 digits to the base of 32.
fn born(message: &Value) -> Option<u64> {
    const DIGITS: &[u8] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
    let id = message["messageId"].as_str().filter(|id| id.len() == 26)?;
    id.bytes().take(10).try_fold(0_u64, |sum, byte| {
        let digit = DIGITS
            .iter()
            .position(|digit| *digit == byte.to_ascii_uppercase())?;
        Some(sum * 32 + digit as u64)
    })
}
