//! A request as bytes.
//!
//! Guarantees: the same request gives the same bytes; `messages` is the last member, so that a
//! request whose messages continue an earlier one's starts with the earlier one's bytes up to the
//! end of its last message.

use holdfast_domain::transcript::outbound::{OutboundCall, OutboundMessage, ToolSpec};
use serde::Serialize;

use crate::client::ModelRequest;
use crate::error::ProviderError;

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    stream: bool,
    stream_options: StreamOptions,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    // Last, for the prefix.
    messages: Vec<Message<'a>>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: &'a ToolSpec,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "snake_case")]
enum Message<'a> {
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
    },
    Assistant {
        content: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

/// The body of a request.
pub(crate) fn serialise(request: &ModelRequest) -> Result<Vec<u8>, ProviderError> {
    let body = Body {
        model: &request.model,
        stream: true,
        stream_options: StreamOptions {
            include_usage: true,
        },
        tools: request
            .tools
            .iter()
            .map(|function| Tool {
                r#type: "function",
                function,
            })
            .collect(),
        messages: request.messages.iter().map(message).collect(),
    };
    serde_json::to_vec(&body).map_err(|error| ProviderError::Configuration {
        message: format!("the request can't be written as JSON ({error})"),
    })
}

fn message(message: &OutboundMessage) -> Message<'_> {
    match message {
        OutboundMessage::System { text } => Message::System { content: text },
        OutboundMessage::User { text } => Message::User { content: text },
        OutboundMessage::Assistant {
            text,
            reasoning,
            calls,
        } => Message::Assistant {
            content: text,
            // Wanted back on tool turns only (C29): with a plain answer some models refuse it.
            reasoning_content: reasoning.as_deref().filter(|_| !calls.is_empty()),
            tool_calls: calls.iter().map(call).collect(),
        },
        OutboundMessage::Tool {
            call_id,
            name: _,
            text,
        } => Message::Tool {
            tool_call_id: call_id,
            content: text,
        },
    }
}

fn call(call: &OutboundCall) -> Call<'_> {
    Call {
        id: &call.id,
        r#type: "function",
        function: Function {
            name: &call.name,
            arguments: &call.arguments,
        },
    }
}
