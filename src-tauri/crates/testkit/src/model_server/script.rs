//! The script of a model server: what each reply holds, and how it goes wrong. Readable from JSON.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Where this stands in a chunk, the server puts the moment at which it writes the chunk, in
/// microseconds since the Unix epoch.
pub const NOW_US: &str = "{now_us}";

/// Replies in order, and what comes after the last one.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// One step per request.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// What answers when the steps are used up.
    #[serde(default)]
    pub when_exhausted: Exhausted,
}

impl From<Vec<Step>> for Script {
    fn from(steps: Vec<Step>) -> Self {
        Self {
            steps,
            when_exhausted: Exhausted::default(),
        }
    }
}

impl From<Step> for Script {
    fn from(step: Step) -> Self {
        vec![step].into()
    }
}

impl Script {
    /// A request after the last step is answered with status 400, which no client retries.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.when_exhausted = Exhausted::Fail;
        self
    }
}

/// What answers after the last step.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Exhausted {
    /// The text `done`.
    #[default]
    Done,
    /// Status 400 with a message that says so.
    Fail,
}

/// One tool call of a reply.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// Id; `None` leaves the member out.
    #[serde(default)]
    pub id: Option<String>,
    /// Tool name, sent with the first piece only.
    pub name: String,
    /// Raw argument text, in the pieces in which it is streamed.
    pub pieces: Vec<String>,
    /// Sends the text of the pieces as a JSON value instead of a string of JSON.
    #[serde(default)]
    pub as_object: bool,
    /// Sends the id with every piece, not with the first only.
    #[serde(default)]
    pub repeat_id: bool,
    /// Leaves `index` out.
    #[serde(default)]
    pub without_index: bool,
}

impl Call {
    /// A call whose arguments come in one piece.
    #[must_use]
    pub fn new(id: &str, name: &str, arguments: &str) -> Self {
        Self {
            id: Some(id.to_owned()),
            name: name.to_owned(),
            pieces: vec![arguments.to_owned()],
            ..Self::default()
        }
    }

    /// Cuts the arguments into pieces of at most `size` characters.
    #[must_use]
    pub fn split(mut self, size: usize) -> Self {
        let text: Vec<char> = self.pieces.concat().chars().collect();
        self.pieces = text
            .chunks(size)
            .map(|piece| piece.iter().collect())
            .collect();
        self
    }
}

/// Token counts as the server reports them.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    /// Prompt tokens.
    pub input: u64,
    /// Completion tokens.
    pub output: u64,
    /// Prompt tokens that came from the cache.
    #[serde(default)]
    pub cached_input: u64,
    /// Completion tokens that were reasoning.
    #[serde(default)]
    pub reasoning: u64,
}

/// A named gate: the reply waits before chunk `after` until the test releases it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gate {
    /// Name for `release`.
    pub name: String,
    /// Chunks that pass before the gate; 0 holds back the status line too.
    #[serde(default)]
    pub after: usize,
}

/// One reply. A chunk is one event: reasoning first, then text, then the pieces of calls (those of
/// parallel calls interleaved), then the finish reason, then the usage.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Step {
    /// Reasoning chunks.
    pub reasoning: Vec<String>,
    /// Sends reasoning as `reasoning` instead of `reasoning_content`.
    pub plain_reasoning: bool,
    /// Text chunks.
    pub text: Vec<String>,
    /// Calls.
    pub calls: Vec<Call>,
    /// Usage-only last chunk.
    pub usage: Option<Usage>,
    /// Finish reason; by default `tool_calls` with calls and `stop` without.
    pub finish_reason: Option<String>,
    /// Leaves the finish reason out.
    pub without_finish: bool,
    /// Ends the stream without `[DONE]`.
    pub without_done: bool,
    /// Pause before each chunk, in milliseconds.
    pub gap_ms: u64,
    /// Line ends of `\r\n`.
    pub crlf: bool,
    /// A comment before each chunk.
    pub comments: bool,
    /// Where the reply waits for the test.
    pub gate: Option<Gate>,
    /// How the reply goes wrong.
    pub fault: Option<Fault>,
}

/// How a reply goes wrong.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Another status, with its body.
    Status {
        /// HTTP status.
        status: u16,
        /// Body.
        #[serde(default)]
        body: String,
        /// Headers.
        #[serde(default)]
        headers: BTreeMap<String, String>,
    },
    /// The connection is cut after this many chunks; 0 cuts it before the status line.
    DropAfter(usize),
    /// Nothing more comes after this many chunks, and the connection stays open; 0 sends not even
    /// the status line.
    StallAfter(usize),
    /// After this many chunks half a line follows, then a clean end.
    HalfLineAfter(usize),
    /// After this many chunks an event with this `error` member follows, then a clean end.
    ErrorAfter(usize, serde_json::Value),
    /// A stream of events whose data is no JSON.
    Garbage,
    /// A body of no bytes, as a stream of events.
    EmptyBody,
    /// A web page with status 200.
    Html,
    /// The whole reply as one JSON object: a server that ignores `stream`.
    NonStream,
    /// The reply's chunks under another content type.
    ContentType(String),
    /// A body that never ends.
    Endless(Endless),
    /// Exactly this body.
    Raw {
        /// Content type.
        content_type: String,
        /// Body.
        body: RawBody,
        /// Bytes per network write; the whole body when absent.
        #[serde(default)]
        write_size: Option<usize>,
    },
}

impl Fault {
    /// A stream of events with exactly these bytes.
    #[must_use]
    pub fn events(body: impl Into<RawBody>) -> Self {
        Self::Raw {
            content_type: "text/event-stream".to_owned(),
            body: body.into(),
            write_size: None,
        }
    }
}

/// What a never-ending body repeats, as fast as it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Endless {
    /// Events with text.
    Text,
    /// Keep-alive comments, paced by `gap_ms`.
    Comments,
    /// One line without an end.
    Line,
    /// JSON that is no stream of events.
    Json,
}

/// A body as text or as bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RawBody {
    /// Text.
    Text(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl RawBody {
    /// The bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl From<&str> for RawBody {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for RawBody {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<Vec<u8>> for RawBody {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl Step {
    /// A reply of this one text chunk.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::chunks(&[text])
    }

    /// A reply of these text chunks.
    #[must_use]
    pub fn chunks(text: &[&str]) -> Self {
        Self {
            text: text.iter().map(|chunk| (*chunk).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// A reply that goes wrong and holds nothing else.
    #[must_use]
    pub fn fault(fault: Fault) -> Self {
        Self::default().with_fault(fault)
    }

    /// A reply with this call.
    #[must_use]
    pub fn call(id: &str, name: &str, arguments: &str) -> Self {
        Self::default().with_call(Call::new(id, name, arguments))
    }

    /// A reply with this status and body.
    #[must_use]
    pub fn status(status: u16, body: &str) -> Self {
        Self::fault(Fault::Status {
            status,
            body: body.to_owned(),
            headers: BTreeMap::new(),
        })
    }

    /// Adds a call.
    #[must_use]
    pub fn with_call(mut self, call: Call) -> Self {
        self.calls.push(call);
        self
    }

    /// Adds a reasoning chunk.
    #[must_use]
    pub fn with_reasoning(mut self, chunk: &str) -> Self {
        self.reasoning.push(chunk.to_owned());
        self
    }

    /// Sets the usage.
    #[must_use]
    pub fn with_usage(mut self, usage: Usage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Sets the fault.
    #[must_use]
    pub fn with_fault(mut self, fault: Fault) -> Self {
        self.fault = Some(fault);
        self
    }

    /// Waits before each chunk.
    #[must_use]
    pub fn with_gap_ms(mut self, gap_ms: u64) -> Self {
        self.gap_ms = gap_ms;
        self
    }

    /// Holds the whole reply back until this gate is released.
    #[must_use]
    pub fn held(self, gate: &str) -> Self {
        self.held_after(gate, 0)
    }

    /// Holds the reply back after `after` chunks until this gate is released.
    #[must_use]
    pub fn held_after(mut self, gate: &str, after: usize) -> Self {
        self.gate = Some(Gate {
            name: gate.to_owned(),
            after,
        });
        self
    }
}
