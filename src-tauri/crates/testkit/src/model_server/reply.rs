//! A step as the bytes of a chat completion.

use serde_json::{Value, json};

use super::script::{Call, Step, Usage};

const ID: &str = "chatcmpl-scripted";

/// The chunks of a streamed reply, `[DONE]` included.
pub(crate) fn chunks(step: &Step, model: &Value) -> Vec<String> {
    let mut chunks = Vec::new();
    let mut first = true;
    let mut delta = |mut members: Value| {
        if std::mem::take(&mut first) {
            members["role"] = json!("assistant");
        }
        chunk(
            model,
            &json!([{ "index": 0, "delta": members, "finish_reason": null }]),
        )
        .to_string()
    };
    let reasoning = if step.plain_reasoning {
        "reasoning"
    } else {
        "reasoning_content"
    };
    for text in &step.reasoning {
        chunks.push(delta(json!({ reasoning: text })));
    }
    for text in &step.text {
        chunks.push(delta(json!({ "content": text })));
    }
    let rounds = step.calls.iter().map(|call| call.pieces.len().max(1)).max();
    for round in 0..rounds.unwrap_or(0) {
        for (index, call) in step.calls.iter().enumerate() {
            if round < call.pieces.len().max(1) {
                chunks.push(delta(
                    json!({ "tool_calls": [call_piece(call, index, round)] }),
                ));
            }
        }
    }
    if !step.without_finish {
        let finish = finish_reason(step);
        chunks.push(
            chunk(
                model,
                &json!([{ "index": 0, "delta": {}, "finish_reason": finish }]),
            )
            .to_string(),
        );
    }
    if let Some(usage) = &step.usage {
        let mut last = chunk(model, &json!([]));
        last["usage"] = usage_json(usage);
        chunks.push(last.to_string());
    }
    if !step.without_done {
        chunks.push("[DONE]".to_owned());
    }
    chunks
}

/// The whole reply as one JSON object.
pub(crate) fn whole(step: &Step, model: &Value) -> String {
    let calls: Vec<Value> = step
        .calls
        .iter()
        .map(|call| {
            json!({
                "id": call.id,
                "type": "function",
                "function": { "name": call.name, "arguments": call.pieces.concat() },
            })
        })
        .collect();
    let mut message = json!({ "role": "assistant", "content": step.text.concat() });
    if !step.reasoning.is_empty() {
        message["reasoning_content"] = json!(step.reasoning.concat());
    }
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let mut reply = json!({
        "id": ID,
        "object": "chat.completion",
        "created": 0,
        "model": model,
        "choices": [{ "index": 0, "message": message, "finish_reason": finish_reason(step) }],
    });
    if let Some(usage) = &step.usage {
        reply["usage"] = usage_json(usage);
    }
    reply.to_string()
}

fn chunk(model: &Value, choices: &Value) -> Value {
    json!({
        "id": ID,
        "object": "chat.completion.chunk",
        "created": 0,
        "model": model,
        "choices": choices,
    })
}

fn finish_reason(step: &Step) -> &str {
    match &step.finish_reason {
        Some(reason) => reason,
        None if step.calls.is_empty() => "stop",
        None => "tool_calls",
    }
}

fn call_piece(call: &Call, index: usize, round: usize) -> Value {
    let text = call.pieces.get(round).map_or("", String::as_str);
    let arguments = if call.as_object {
        serde_json::from_str(text).expect("arguments sent as an object are JSON")
    } else {
        json!(text)
    };
    let mut piece = json!({ "function": { "arguments": arguments } });
    if !call.without_index {
        piece["index"] = json!(index);
    }
    if round == 0 {
        piece["type"] = json!("function");
        piece["function"]["name"] = json!(call.name);
    }
    if let Some(id) = &call.id
        && (round == 0 || call.repeat_id)
    {
        piece["id"] = json!(id);
    }
    piece
}

fn usage_json(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": { "cached_tokens": usage.cached_input },
        "completion_tokens_details": { "reasoning_tokens": usage.reasoning },
    })
}
