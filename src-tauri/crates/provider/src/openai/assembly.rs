//! A reply grows from its pieces.
//!
//! Guarantee: text, reasoning and arguments are exactly the pieces one after another; nothing is
//! trimmed, repaired or reordered.

use serde::de::IgnoredAny;

use super::wire::{self, CallPart, Chunk, Delta};
use crate::client::{ModelCall, ModelEvent, ModelReply};
use crate::error::ProviderError;
use crate::limits::Limits;

/// The reply so far.
#[derive(Debug)]
pub(crate) struct Assembly {
    reply: ModelReply,
    /// The provider's index of each call, parallel to `reply.calls`.
    indexes: Vec<Option<u64>>,
    size: usize,
    most_bytes: usize,
    most_calls: usize,
}

impl Assembly {
    pub(crate) fn new(model: String, limits: &Limits) -> Self {
        Self {
            reply: ModelReply {
                model,
                ..ModelReply::default()
            },
            indexes: Vec::new(),
            size: 0,
            most_bytes: limits.reply_bytes,
            most_calls: limits.calls,
        }
    }

    /// True once a finish reason came: the reply is whole.
    pub(crate) fn is_finished(&self) -> bool {
        !self.reply.finish_reason.is_empty()
    }

    /// The reply, out of its shell.
    pub(crate) fn take(&mut self) -> ModelReply {
        std::mem::take(&mut self.reply)
    }

    /// Adds one chunk, whose `error` member was looked at before.
    pub(crate) fn add(&mut self, chunk: Chunk) -> Result<Vec<ModelEvent>, ProviderError> {
        let mut events = Vec::new();
        if let Some(model) = chunk.model.filter(|model| !model.is_empty()) {
            self.reply.model = model;
        }
        if let Some(usage) = chunk.usage.as_ref().and_then(wire::usage) {
            self.reply.usage = Some(usage);
        }
        for choice in chunk.choices.unwrap_or_default() {
            // One answer was asked for; a server that gives more has its first one taken.
            if choice.index.unwrap_or(0) != 0 {
                continue;
            }
            if let Some(delta) = choice.delta {
                self.add_delta(delta, false, &mut events)?;
            }
            if let Some(message) = choice.message {
                self.add_delta(message, true, &mut events)?;
            }
            if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty()) {
                self.reply.finish_reason = reason;
            }
        }
        Ok(events)
    }

    fn add_delta(
        &mut self,
        delta: Delta,
        whole: bool,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        // Some servers send the same reasoning under both names.
        let mut reasoning = wire::text(delta.reasoning_content.as_ref());
        if reasoning.is_empty() {
            reasoning = wire::text(delta.reasoning.as_ref());
        }
        if !reasoning.is_empty() {
            self.grow(reasoning.len())?;
            self.reply.reasoning.push_str(&reasoning);
            events.push(ModelEvent::Reasoning(reasoning));
        }
        let mut text = wire::text(delta.content.as_ref());
        text.push_str(&wire::text(delta.refusal.as_ref()));
        if !text.is_empty() {
            self.grow(text.len())?;
            self.reply.text.push_str(&text);
            events.push(ModelEvent::Text(text));
        }
        for part in delta.tool_calls.unwrap_or_default() {
            events.push(self.add_call(part, whole)?);
        }
        Ok(())
    }

    fn add_call(&mut self, part: CallPart, whole: bool) -> Result<ModelEvent, ProviderError> {
        let id = part.id.unwrap_or_default();
        let function = part.function.unwrap_or_default();
        let name = function.name.unwrap_or_default();
        let arguments = match function.arguments.as_deref() {
            Some(raw) => wire::argument_text(raw).map_err(|error| ProviderError::BadReply {
                message: format!("the arguments of a call can't be read ({error})"),
            })?,
            None => String::new(),
        };
        self.grow(id.len() + name.len() + arguments.len())?;
        let known = if whole {
            None
        } else {
            self.place(part.index, &id, &name)
        };
        let index = match known {
            Some(index) => index,
            None if self.reply.calls.len() >= self.most_calls => {
                return Err(ProviderError::BadReply {
                    message: format!("the reply holds more than {} calls", self.most_calls),
                });
            }
            None => {
                self.reply.calls.push(ModelCall::default());
                self.indexes.push(part.index);
                self.reply.calls.len() - 1
            }
        };
        let call = &mut self.reply.calls[index];
        if call.provider_id.is_empty() {
            call.provider_id = id;
        }
        // The name comes with the first piece; some servers repeat it, a few cut it up.
        if call.name != name && call.arguments.is_empty() {
            call.name.push_str(&name);
        }
        call.arguments.push_str(&arguments);
        Ok(ModelEvent::ToolCall {
            index,
            name: call.name.clone(),
            arguments_so_far_len: call.arguments.len(),
        })
    }

    /// The call that a piece belongs to; `None` begins a new one.
    fn place(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        let at = match index {
            Some(_) => self.indexes.iter().rposition(|known| *known == index)?,
            None => self.reply.calls.len().checked_sub(1)?,
        };
        let call = &self.reply.calls[at];
        let other_id = !id.is_empty() && !call.provider_id.is_empty() && id != call.provider_id;
        let begins = match index {
            // Some servers number every parallel call 0: another id with a name is another call.
            Some(_) => other_id && !name.is_empty(),
            // Without numbers a name begins a call, unless the one before is still being written.
            None => other_id || (!name.is_empty() && is_whole_json(&call.arguments)),
        };
        (!begins).then_some(at)
    }

    fn grow(&mut self, bytes: usize) -> Result<(), ProviderError> {
        self.size = self.size.saturating_add(bytes);
        if self.size > self.most_bytes {
            return Err(ProviderError::BadReply {
                message: format!("the reply is larger than {} bytes", self.most_bytes),
            });
        }
        Ok(())
    }
}

fn is_whole_json(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}
