//! What servers send, read leniently: unknown members are ignored, most are optional, and a lone
//! surrogate in JSON text becomes a visible U+FFFD instead of an error (C11).

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::Usage;

/// One event of a stream, or a whole reply that was not streamed.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Chunk {
    pub(crate) choices: Option<Vec<Choice>>,
    pub(crate) usage: Option<Value>,
    pub(crate) error: Option<Value>,
    pub(crate) model: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Choice {
    pub(crate) index: Option<u64>,
    pub(crate) delta: Option<Delta>,
    /// The whole message of a reply that was not streamed.
    pub(crate) message: Option<Delta>,
    pub(crate) finish_reason: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Delta {
    pub(crate) content: Option<Value>,
    pub(crate) refusal: Option<Value>,
    pub(crate) reasoning_content: Option<Value>,
    pub(crate) reasoning: Option<Value>,
    pub(crate) tool_calls: Option<Vec<CallPart>>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct CallPart {
    pub(crate) index: Option<u64>,
    pub(crate) id: Option<String>,
    pub(crate) function: Option<FunctionPart>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct FunctionPart {
    pub(crate) name: Option<String>,
    /// A string of JSON, or (some servers) the JSON itself.
    pub(crate) arguments: Option<Box<RawValue>>,
}

/// Reads JSON; lone surrogates are replaced when, and only when, it can't be read otherwise.
pub(crate) fn read<T: DeserializeOwned>(json: &str) -> Result<T, serde_json::Error> {
    serde_json::from_str(json).or_else(|error| match without_lone_surrogates(json) {
        Some(mended) => serde_json::from_str(&mended),
        None => Err(error),
    })
}

/// Argument text as the model wrote it: the content of a string, or the JSON itself, untouched.
pub(crate) fn argument_text(raw: &RawValue) -> Result<String, serde_json::Error> {
    if raw.get().starts_with('"') {
        read(raw.get())
    } else {
        Ok(raw.get().to_owned())
    }
}

/// The text of a `content` or reasoning member: a string, or a list of parts with `text`.
pub(crate) fn text(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => parts
            .iter()
            .filter_map(|part| part["text"].as_str())
            .collect(),
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) | None => {
            String::new()
        }
    }
}

/// Token counts; `None` for what is no usage object.
pub(crate) fn usage(value: &Value) -> Option<Usage> {
    let count = |value: &Value| value.as_u64();
    Some(Usage {
        input: count(&value["prompt_tokens"])?,
        output: count(&value["completion_tokens"]).unwrap_or(0),
        cached_input: count(&value["prompt_tokens_details"]["cached_tokens"])
            .or_else(|| count(&value["prompt_cache_hit_tokens"]))
            .unwrap_or(0),
        reasoning: count(&value["completion_tokens_details"]["reasoning_tokens"]).unwrap_or(0),
    })
}

/// Replaces `\uD800`-like escapes without a partner by `\ufffd`; `None` when there is none.
fn without_lone_surrogates(json: &str) -> Option<String> {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    let mut replaced = false;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let taken = match unit(escape) {
            Some(0xd800..=0xdbff) if matches!(unit(&escape[6..]), Some(0xdc00..=0xdfff)) => 12,
            Some(0xd800..=0xdfff) => {
                replaced = true;
                out.push_str("\\ufffd");
                rest = &escape[6..];
                continue;
            }
            Some(_) => 6,
            // Another escape: the backslash and the character after it.
            None => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        out.push_str(&escape[..taken]);
        rest = &escape[taken..];
    }
    out.push_str(rest);
    replaced.then_some(out)
}

/// The code unit of a `\uXXXX` escape at the start of the text.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c11_lone_surrogates_become_visible_and_pairs_stay() {
        let read = |json: &str| read::<String>(json).unwrap();
        assert_eq!(read(r#""a\ud800b""#), "a\u{fffd}b");
        assert_eq!(read(r#""\udc00\ud83d\ude00\ud83d""#), "\u{fffd}😀\u{fffd}");
        assert_eq!(read(r#""\ud800\ud83d\ude00""#), "\u{fffd}😀");
        // An escaped backslash before `ud800` is text, not a surrogate.
        assert_eq!(read(r#""\\ud800 \ud800""#), "\\ud800 \u{fffd}");
        assert_eq!(read(r#""\ud83d\ude00""#), "😀");
    }

    #[test]
    fn c11_text_that_is_no_json_stays_an_error() {
        for json in [r#""\ud8"#, r#""\"#, r#""\u""#, r#""\é""#, "{"] {
            assert!(read::<String>(json).is_err(), "{json}");
        }
    }
}
