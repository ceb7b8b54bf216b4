//! The scripted model named `demo`: offline, without a key, and honest about being a script.
//!
//! Guarantees: a reply is a pure function of the messages; it calls only `list_dir`, `read_file`,
//! `edit_file` and `shell`; it never repeats a command whose outcome is unknown, and never goes on
//! after a refusal as if nothing had happened.

mod facts;
mod sample;
mod script;

use std::time::Duration;

use futures_util::{StreamExt, stream};
use holdfast_domain::transcript::outbound::OutboundMessage;

pub use sample::{TASK, sample_project};
pub use script::reply;

use crate::client::{ModelClient, ModelEvent, ModelReply, ModelRequest, ModelStream};

/// Name of the model and of its provider.
pub const NAME: &str = "demo";

/// Characters per streamed piece.
const PIECE: usize = 12;

/// The client of the demo model.
#[derive(Debug, Clone)]
pub struct DemoClient {
    pacing: Duration,
}

impl DemoClient {
    /// A client that waits this long before each piece; zero for tests.
    #[must_use]
    pub fn new(pacing: Duration) -> Self {
        Self { pacing }
    }
}

impl ModelClient for DemoClient {
    fn name(&self) -> &str {
        NAME
    }

    fn stream(&self, request: ModelRequest) -> ModelStream {
        let pacing = self.pacing;
        let events = events(&request.messages);
        stream::iter(events)
            .then(move |event| async move {
                if !pacing.is_zero() {
                    tokio::time::sleep(pacing).await;
                }
                Ok(event)
            })
            .boxed()
    }
}

/// The reply in the pieces in which it is streamed: reasoning, text, calls, end.
fn events(messages: &[OutboundMessage]) -> Vec<ModelEvent> {
    let reply: ModelReply = reply(messages);
    let mut events: Vec<ModelEvent> = pieces(&reply.reasoning)
        .map(ModelEvent::Reasoning)
        .chain(pieces(&reply.text).map(ModelEvent::Text))
        .collect();
    for (index, call) in reply.calls.iter().enumerate() {
        let mut length = 0;
        for piece in pieces(&call.arguments) {
            length += piece.len();
            events.push(ModelEvent::ToolCall {
                index,
                name: call.name.clone(),
                arguments_so_far_len: length,
            });
        }
    }
    events.push(ModelEvent::Finished(reply));
    events
}

fn pieces(text: &str) -> impl Iterator<Item = String> + '_ {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest
            .char_indices()
            .nth(PIECE)
            .map_or(rest.len(), |(at, _)| at);
        let (piece, after) = rest.split_at(end);
        rest = after;
        Some(piece.to_owned())
    })
}
