//! The model's requests as they arrived: well-formed, and each one the earlier one continued.

use holdfast_testkit::{ModelServer, RecordedRequest};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Body {
    messages: Vec<Box<RawValue>>,
}

/// The messages of a request, byte for byte.
pub(crate) fn bytes_of(request: &RecordedRequest) -> Vec<String> {
    let body: Body = serde_json::from_slice(&request.body_bytes).unwrap();
    body.messages
        .iter()
        .map(|message| message.get().to_owned())
        .collect()
}

/// Every request is well-formed (each call has exactly one result, adjacent, in order) and starts
/// with the messages of the one before, byte for byte. Answers the messages of the last one.
pub(crate) fn checked(model: &ModelServer) -> Vec<Value> {
    let requests = model.requests();
    assert!(!requests.is_empty(), "the model was never asked");
    for request in &requests {
        check_pairing(&request.json["messages"]);
    }
    for pair in requests.windows(2) {
        let (earlier, later) = (bytes_of(&pair[0]), bytes_of(&pair[1]));
        assert!(
            later.starts_with(&earlier),
            "a request does not continue the one before:\n{earlier:#?}\n{later:#?}"
        );
    }
    messages(&requests[requests.len() - 1])
}

/// As [`checked`], of the last request alone.
pub(crate) fn checked_last(model: &ModelServer) -> Vec<Value> {
    let requests = model.requests();
    let messages = messages(requests.last().unwrap());
    check_pairing(&Value::Array(messages.clone()));
    messages
}

fn messages(request: &RecordedRequest) -> Vec<Value> {
    request.json["messages"].as_array().unwrap().clone()
}

fn check_pairing(messages: &Value) {
    let mut expected: Vec<Value> = Vec::new();
    for message in messages.as_array().unwrap() {
        if message["role"] == "tool" {
            assert!(
                !expected.is_empty() && expected[0] == message["tool_call_id"],
                "a result out of place: {messages:#}"
            );
            expected.remove(0);
            continue;
        }
        assert!(
            expected.is_empty(),
            "no result for {expected:?}: {messages:#}"
        );
        if let Some(calls) = message["tool_calls"].as_array() {
            expected.extend(calls.iter().map(|call| call["id"].clone()));
        }
    }
    assert!(
        expected.is_empty(),
        "no result for {expected:?}: {messages:#}"
    );
}

/// What the model was told of a call.
pub(crate) fn told(messages: &[Value], call: &str) -> String {
    let results: Vec<&Value> = messages
        .iter()
        .filter(|message| message["tool_call_id"] == call)
        .collect();
    assert_eq!(results.len(), 1, "results of {call}: {results:?}");
    results[0]["content"].as_str().unwrap().to_owned()
}

/// The texts of a person's messages and of host notes.
pub(crate) fn said(messages: &[Value]) -> Vec<String> {
    messages
        .iter()
        .filter(|message| message["role"] == "user")
        .map(|message| message["content"].as_str().unwrap().to_owned())
        .collect()
}
