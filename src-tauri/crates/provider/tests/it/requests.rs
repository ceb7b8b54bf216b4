//! What is sent, to the byte.

use std::sync::Arc;

use futures_util::StreamExt;
use holdfast_domain::transcript::outbound::{OutboundCall, OutboundMessage, ToolSpec};
use holdfast_provider::openai::{OpenAiClient, OpenAiConfig};
use holdfast_provider::{ModelClient, ModelRequest};
use holdfast_testkit::{ModelServer, RecordedRequest};
use serde_json::{Value, json};

use crate::setup::{KEY, client_with, limits, request, user};

async fn send(request: ModelRequest) -> RecordedRequest {
    let server = ModelServer::start(vec![]);
    let client = client_with(&server.url(), limits());
    let last = client.stream(request).collect::<Vec<_>>().await.pop();
    assert!(last.unwrap().is_ok());
    server.requests().remove(0)
}

fn assistant(text: &str, reasoning: Option<&str>, calls: &[(&str, &str)]) -> OutboundMessage {
    OutboundMessage::Assistant {
        text: text.to_owned(),
        reasoning: reasoning.map(str::to_owned),
        calls: calls
            .iter()
            .map(|(id, arguments)| OutboundCall {
                id: (*id).to_owned(),
                name: "shell".to_owned(),
                arguments: (*arguments).to_owned(),
            })
            .collect(),
    }
}

fn result(id: &str, text: &str) -> OutboundMessage {
    OutboundMessage::Tool {
        call_id: id.to_owned(),
        name: "shell".to_owned(),
        text: text.to_owned(),
    }
}

fn transcript() -> Vec<OutboundMessage> {
    vec![
        OutboundMessage::System {
            text: "You are careful. \u{2028}é😀\0".to_owned(),
        },
        user("do it"),
        assistant(
            "",
            Some("because"),
            &[("c1", "{\"b\":1, \"a\":2}"), ("c2", "{}")],
        ),
        result("c1", "one"),
        result("c2", "two"),
        assistant("done", Some("quiet"), &[]),
        user("again"),
        assistant("", None, &[("c3", "{}")]),
        result("c3", ""),
    ]
}

#[tokio::test]
async fn a_request_has_this_shape() {
    let mut wanted = request(transcript());
    wanted.tools = vec![ToolSpec {
        name: "shell".to_owned(),
        description: "Runs a command.".to_owned(),
        parameters: json!({ "type": "object" }),
    }];
    let sent = send(wanted).await;
    assert_eq!(sent.path, "/v1/chat/completions");
    assert_eq!(sent.headers["content-type"], "application/json");
    assert_eq!(sent.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(sent.json["model"], "test-model");
    assert_eq!(sent.json["stream"], true);
    assert_eq!(
        sent.json["stream_options"],
        json!({ "include_usage": true })
    );
    assert_eq!(
        sent.json["tools"],
        json!([{ "type": "function", "function": {
            "name": "shell", "description": "Runs a command.", "parameters": { "type": "object" }
        }}])
    );
    let call = |id: &str, arguments: &str| {
        json!({ "id": id, "type": "function",
                "function": { "name": "shell", "arguments": arguments } })
    };
    assert_eq!(
        sent.json["messages"],
        json!([
            { "role": "system", "content": "You are careful. \u{2028}é😀\0" },
            { "role": "user", "content": "do it" },
            { "role": "assistant", "content": "", "reasoning_content": "because",
              "tool_calls": [call("c1", "{\"b\":1, \"a\":2}"), call("c2", "{}")] },
            { "role": "tool", "tool_call_id": "c1", "content": "one" },
            { "role": "tool", "tool_call_id": "c2", "content": "two" },
            { "role": "assistant", "content": "done" },
            { "role": "user", "content": "again" },
            { "role": "assistant", "content": "", "tool_calls": [call("c3", "{}")] },
            { "role": "tool", "tool_call_id": "c3", "content": "" },
        ])
    );
}

#[tokio::test]
async fn c29_reasoning_goes_back_with_calls_exactly_when_it_is_there() {
    let sent = send(request(transcript())).await;
    let has: Vec<bool> = sent.json["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "assistant")
        .map(|message| message.get("reasoning_content").is_some())
        .collect();
    // With calls and reasoning; without calls; with calls, without reasoning.
    assert_eq!(has, [true, false, false]);

    let empty = vec![
        user("x"),
        assistant("", Some(""), &[("c", "{}")]),
        result("c", ""),
    ];
    let sent = send(request(empty)).await;
    assert_eq!(sent.json["messages"][1]["reasoning_content"], "");
}

#[tokio::test]
async fn a_later_body_starts_with_the_bytes_of_the_earlier_one() {
    let all = transcript();
    let mut earlier: Option<Vec<u8>> = None;
    for count in 1..=all.len() {
        let mut wanted = request(all[..count].to_vec());
        wanted.tools = vec![ToolSpec {
            name: "shell".to_owned(),
            description: "Runs \"a\" command.".to_owned(),
            parameters: json!({ "z": 1, "a": { "y": [], "b": null } }),
        }];
        let body = send(wanted.clone()).await.body_bytes;
        assert_eq!(body, send(wanted).await.body_bytes, "the same bytes again");
        assert!(body.ends_with(b"]}"));
        if let Some(earlier) = earlier {
            let content = &earlier[..earlier.len() - 2];
            assert!(body.starts_with(content));
            assert_eq!(body[content.len()], b',');
        }
        earlier = Some(body);
    }
}

#[tokio::test]
async fn c11_every_kind_of_text_makes_valid_json_on_the_way_out() {
    for text in [
        "\u{2028}\u{2029}",
        "😀",
        "\u{fffd}",
        "\0\u{1}\u{7f}\r\n\t\\\"",
    ] {
        let sent = send(request(vec![
            user(text),
            assistant(text, None, &[("c", text)]),
        ]))
        .await;
        let body: Value = serde_json::from_slice(&sent.body_bytes).unwrap();
        assert_eq!(body["messages"][0]["content"], text);
        let calls = &body["messages"][1]["tool_calls"];
        assert_eq!(calls[0]["function"]["arguments"], text);
    }
}

#[tokio::test]
async fn no_key_sends_no_authorization() {
    let server = ModelServer::start(vec![]);
    let config = OpenAiConfig {
        name: "local".to_owned(),
        base_url: format!("{}/", server.url()),
        api_key: None,
    };
    let client = OpenAiClient::new(config, limits(), Arc::new(|| 0.0)).unwrap();
    assert_eq!(client.name(), "local");
    let events = client
        .stream(request(vec![user("x")]))
        .collect::<Vec<_>>()
        .await;
    assert!(events.last().unwrap().is_ok());
    assert!(!server.requests()[0].headers.contains_key("authorization"));
    assert_eq!(server.requests()[0].path, "/v1/chat/completions");
}

#[test]
fn an_unusable_configuration_is_refused_before_anything_is_sent() {
    let make = |base_url: &str, key: &str| {
        let config = OpenAiConfig {
            name: "x".to_owned(),
            base_url: base_url.to_owned(),
            api_key: Some(key.to_owned().into()),
        };
        OpenAiClient::new(config, limits(), Arc::new(|| 0.0))
    };
    for (url, key) in [
        ("not a url", "k"),
        ("ftp://127.0.0.1/v1", "k"),
        ("http://user:canary@127.0.0.1/v1", "k"),
        ("http://127.0.0.1/v1", "canary\nkey"),
    ] {
        let error = make(url, key).unwrap_err();
        assert_eq!(error.code(), "provider_configuration");
        assert!(
            !format!("{error} {error:?}").contains("canary"),
            "{error:?}"
        );
    }
    let client = make("http://127.0.0.1/v1", KEY).unwrap();
    assert!(!format!("{client:?}").contains(KEY), "{client:?}");
}
