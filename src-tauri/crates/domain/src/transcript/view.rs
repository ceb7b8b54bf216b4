//! The model's view of a session, and the gate before it is sent (TR-43, TR-44).

use super::outbound::{OutboundCall, OutboundMessage};
use super::session::{Item, Session};
use crate::canonical::{ArgumentError, check_arguments};

/// What a partial answer ends with in the model's view.
const PARTIAL_MARK: &str = "\n\n[this answer was cut short before it was complete]";

/// How a summary begins in the model's view.
const SUMMARY_MARK: &str = "[host] The conversation up to here was compacted. This summary of it \
                            stands in its place:\n\n";

/// What a model is asked for at a compaction, behind the conversation.
pub const SUMMARY_REQUEST: &str = "[host] The conversation is about to be compacted: your next \
    answer will stand in place of everything above it. Write a summary from which the work can go \
    on without the rest: the person's aims and wishes in their own words where they matter, what \
    was decided, what was changed in which files and which commands were run with what outcome, \
    what is known about calls whose outcome was unknown, what is open. State as fact only what a \
    tool's result or the person said; keep what is unknown as unknown. Call no tool. Answer with \
    the summary alone.";

/// The request for a summary of all that the model was told so far.
pub fn summary_request(session: &Session) -> Vec<OutboundMessage> {
    let mut messages = outbound(session);
    messages.push(OutboundMessage::User {
        text: SUMMARY_REQUEST.to_owned(),
    });
    messages
}

/// The messages of the next request. Between compactions and rewinds a later view starts with an
/// earlier one, since items are only added and every text comes from a stored record.
pub fn outbound(session: &Session) -> Vec<OutboundMessage> {
    let mut messages = Vec::new();
    if let Some(text) = &session.system_prompt {
        messages.push(OutboundMessage::System { text: text.clone() });
    }
    messages.extend(session.summary().map(|summary| OutboundMessage::User {
        text: format!("{SUMMARY_MARK}{summary}"),
    }));
    let upto = session.compacted_upto;
    for item in session.items.iter().filter(|item| item.seq() > upto) {
        match item {
            Item::User { text, .. } | Item::Note { text, .. } => {
                messages.push(OutboundMessage::User { text: text.clone() });
            }
            Item::Compacted { .. } | Item::Rewound { .. } => {}
            Item::Assistant { message, .. } => {
                if message.text.is_empty() && message.calls.is_empty() {
                    continue;
                }
                let text = if message.partial {
                    format!("{}{PARTIAL_MARK}", message.text)
                } else {
                    message.text.clone()
                };
                messages.push(OutboundMessage::Assistant {
                    text,
                    reasoning: (!message.reasoning.is_empty() && !message.calls.is_empty())
                        .then(|| message.reasoning.clone()),
                    calls: message
                        .calls
                        .iter()
                        .map(|call| OutboundCall {
                            id: call.call_id.clone(),
                            name: call.name.clone(),
                            arguments: outbound_arguments(&call.arguments),
                        })
                        .collect(),
                });
                for call in &message.calls {
                    if let Some(text) = session.answer(&call.call_id) {
                        messages.push(OutboundMessage::Tool {
                            call_id: call.call_id.clone(),
                            name: call.name.clone(),
                            text,
                        });
                    }
                }
            }
            Item::Retry { .. } => {}
        }
    }
    messages
}

/// TR-44: the model's own bytes when they are JSON that any provider takes back, else `{}`.
fn outbound_arguments(raw: &str) -> String {
    match check_arguments(raw) {
        Ok(_) if !raw.trim().is_empty() => raw.to_owned(),
        Ok(_)
        | Err(
            ArgumentError::Invalid(_)
            | ArgumentError::NotAnObject
            | ArgumentError::DuplicateKey(_)
            | ArgumentError::UnsafeInteger(_)
            | ArgumentError::LoneSurrogate
            | ArgumentError::TooDeep,
        ) => "{}".to_owned(),
    }
}

/// Why a request may not be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PairingError {
    /// A call has no result right behind its message.
    #[error("the call {0} has no result; nothing was sent")]
    Missing(String),
    /// A result has no call, or comes twice, or out of order.
    #[error("the result of {0} does not follow its call; nothing was sent")]
    Misplaced(String),
}

/// TR-43: the sampling gate. Every call has exactly one result, adjacent, in order. It reads and
/// changes nothing.
///
/// # Errors
/// The first call or result that is out of place.
pub fn check_pairing(messages: &[OutboundMessage]) -> Result<(), PairingError> {
    let mut expected = std::collections::VecDeque::new();
    for message in messages {
        match (message, expected.front()) {
            (OutboundMessage::Tool { call_id, .. }, Some(next)) if call_id == next => {
                expected.pop_front();
            }
            (OutboundMessage::Tool { call_id, .. }, _) => {
                return Err(PairingError::Misplaced(call_id.clone()));
            }
            (_, Some(missing)) => return Err(PairingError::Missing(String::clone(missing))),
            (OutboundMessage::Assistant { calls, .. }, None) => {
                expected.extend(calls.iter().map(|call| call.id.clone()));
            }
            (OutboundMessage::System { .. } | OutboundMessage::User { .. }, None) => {}
        }
    }
    match expected.pop_front() {
        Some(missing) => Err(PairingError::Missing(missing)),
        None => Ok(()),
    }
}
