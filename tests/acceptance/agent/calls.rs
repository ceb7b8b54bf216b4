//! Calls as models really make them: repeated ids, equal calls, batches, odd text, bad arguments.

use std::collections::BTreeSet;

use holdfast_testkit::model_server::{Call, Step};
use holdfast_testkit::wait::SOON;
use serde_json::{Value, json};

use super::scene::{Scene, eventually, messages, results, shell};

fn call(id: &str, name: &str, arguments: &Value) -> Call {
    Call::new(id, name, &arguments.to_string())
}

#[tokio::test]
async fn c33_one_call_id_in_every_reply_is_many_calls() {
    let scene = Scene::new("full").await;
    for word in ["one", "two"] {
        scene.model.push(shell("call_0", &format!("echo {word}")));
        scene
            .model
            .push(shell("call_0", &format!("echo {word} again")));
        scene.model.push(Step::text("done"));
        scene.turn(word).await;
    }
    let last = scene.model.requests().pop().unwrap();
    let results = results(&last);
    let texts: Vec<&str> = results
        .iter()
        .map(|(_, text)| text.lines().next().unwrap())
        .collect();
    assert_eq!(texts, ["one", "one again", "two", "two again"]);
    let ids: BTreeSet<&String> = results.iter().map(|(id, _)| id).collect();
    assert_eq!(ids.len(), 4, "each call has an id of its own: {results:?}");
    // The same id goes out in the call and in its result, side by side.
    let sent = messages(&last);
    let pairs: Vec<(&Value, &Value)> = sent
        .iter()
        .zip(&sent[1..])
        .filter(|(message, _)| message["tool_calls"].is_array())
        .map(|(message, next)| (&message["tool_calls"][0]["id"], &next["tool_call_id"]))
        .collect();
    assert_eq!(pairs.len(), 4);
    for (id, answered) in pairs {
        assert_eq!(id, answered);
    }
}

#[tokio::test]
async fn c33_two_equal_calls_of_one_turn_are_two_attempts() {
    let scene = Scene::new("full").await;
    let command = json!({ "command": "echo $HOLDFAST_IDEMPOTENCY_KEY | tee -a keys" });
    let step = Step::default()
        .with_call(call("same", "shell", &command))
        .with_call(call("same", "shell", &command));
    scene.model.push(step);
    scene.model.push(Step::text("done"));
    scene.turn("test twice").await;
    let keys = scene.read("keys");
    let keys: Vec<&str> = keys.lines().collect();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0], keys[1]);
    assert!(keys.iter().all(|key| key.len() == 64), "{keys:?}");
    let tools = scene.tools().await;
    assert_ne!(tools[0]["attemptId"], tools[1]["attemptId"]);
    let told = results(&scene.model.requests()[1]);
    for ((tool, (id, text)), key) in tools.iter().zip(&told).zip(keys) {
        assert_eq!(tool["id"], id.as_str());
        assert_eq!(tool["state"], "completed");
        assert!(text.starts_with(key), "each result with its own call");
    }
}

#[tokio::test]
async fn c34_what_stands_behind_a_slow_call_waits_and_is_not_blocked() {
    let scene = Scene::new("full").await;
    let slow =
        json!({ "command": "touch begun; until [ -e go ]; do sleep 0.02; done; echo a > a" });
    let edit = json!({ "path": "a", "edits": [{ "old_text": "a", "new_text": "b" }] });
    let step = Step::default()
        .with_call(call("c1", "shell", &slow))
        .with_call(call(
            "c2",
            "shell",
            &json!({ "command": "cat a; touch second" }),
        ))
        .with_call(call(
            "c3",
            "write_file",
            &json!({ "path": "n", "content": "n" }),
        ))
        .with_call(call("c4", "read_file", &json!({ "path": "a" })))
        .with_call(call("c5", "read_file", &json!({ "path": "n" })));
    scene.model.push(step);
    scene
        .model
        .push(Step::call("c6", "edit_file", &edit.to_string()));
    scene.model.push(Step::text("done"));
    let turn = scene.submit("go").await;
    eventually("the slow call", SOON, async || {
        scene.file("begun").exists().then_some(())
    })
    .await;
    let tools = scene.tools().await;
    let states: Vec<&str> = tools
        .iter()
        .map(|tool| tool["state"].as_str().unwrap())
        .collect();
    assert_eq!(
        states,
        ["in_flight", "proposed", "proposed", "proposed", "proposed"]
    );
    let snapshot = scene.get("/tool-recovery").await;
    assert_eq!(snapshot["calls"], json!([]), "running is not uncertain");
    assert!(!scene.file("second").exists());
    scene.write("go", "");
    scene.ended(&turn).await;
    let tools = scene.tools().await;
    for tool in &tools {
        assert_eq!(tool["state"], "completed", "{tool}");
    }
    assert!(tools[1]["output"].as_str().unwrap().starts_with("a\n"));
    assert!(tools[3]["output"].as_str().unwrap().contains('a'));
    assert_eq!(scene.read("a"), "b\n");
    let told: Vec<String> = results(&scene.model.requests()[1])
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    assert_eq!(told, ["c1", "c2", "c3", "c4", "c5"], "in the model's order");
}

#[tokio::test]
async fn c34_the_call_behind_a_question_is_asked_after_it() {
    let scene = Scene::new("ask").await;
    scene.write("a", "old\n");
    let edit = json!({ "path": "a", "edits": [{ "old_text": "old", "new_text": "new" }] });
    let step = Step::default()
        .with_call(call("c1", "edit_file", &edit))
        .with_call(call("c2", "shell", &json!({ "command": "cat a" })))
        .with_call(call("c3", "read_file", &json!({ "path": "a" })));
    scene.model.push(step);
    scene.model.push(Step::text("done"));
    let turn = scene.submit("go").await;
    scene.question().await;
    let prompts = scene.get("/pending-prompts").await;
    assert_eq!(prompts.as_array().unwrap().len(), 1, "one at a time");
    let waiting = scene.tools().await;
    assert!(
        waiting.iter().all(|tool| tool["state"] == "proposed"),
        "{waiting:?}"
    );
    assert_eq!(scene.answer(true, "once").await["approval"]["callId"], "c1");
    assert_eq!(scene.answer(true, "once").await["approval"]["callId"], "c2");
    scene.ended(&turn).await;
    let told = results(&scene.model.requests()[1]);
    assert!(told[1].1.starts_with("new\n"), "{told:?}");
    assert!(told[2].1.contains("new"), "{told:?}");
}

#[tokio::test]
async fn c35_arguments_that_can_not_be_used_are_refused_and_kept() {
    let deep = format!("{{\"path\":{}{}}}", "[".repeat(65), "]".repeat(65));
    // Arguments, and whether they go back to the model as they came.
    let cases = [
        (r#"{"path":"a","path":"b"}"#, false),
        (r#"{"path":"a","offset":12345678901234567890123}"#, false),
        ("", false),
        ("   ", false),
        (r#"{"path":"#, false),
        ("[1]", false),
        ("\"a\"", false),
        ("null", false),
        (r#"{"path":"\ud800"}"#, false),
        (deep.as_str(), false),
        (r#"{"path":1}"#, true),
        (r#"{"path":"a", "more":1}"#, true),
        (r#"{"path":"../../outside"}"#, true),
    ];
    let scene = Scene::new("full").await;
    scene.write("a", "a");
    let mut step = Step::default();
    for (index, (arguments, _)) in cases.iter().enumerate() {
        step = step.with_call(Call::new(&format!("c{index}"), "read_file", arguments));
    }
    step = step.with_call(Call::new("unknown", "no_such_tool", "{}"));
    scene.model.push(step);
    scene.model.push(Step::text("sorry"));
    scene.turn("go").await;

    let tools = scene.tools().await;
    assert_eq!(tools.len(), cases.len() + 1);
    let request = &scene.model.requests()[1];
    let sent = messages(request);
    let calls = sent
        .iter()
        .find_map(|message| message["tool_calls"].as_array())
        .unwrap();
    let told = results(request);
    let log = scene.log();
    let stored = log
        .iter()
        .find_map(|record| {
            let text = record.to_string();
            text.contains("\"c0\"").then_some(text)
        })
        .unwrap();
    for (index, (arguments, as_they_came)) in cases.iter().enumerate() {
        let tool = &tools[index];
        assert_eq!(tool["state"], "not_started", "{arguments}: {tool}");
        assert_eq!(tool["attemptId"], "", "no receipt: {arguments}");
        assert!(tool["code"].is_string(), "{arguments}: {tool}");
        let outbound = calls[index]["function"]["arguments"].as_str().unwrap();
        let expected = if *as_they_came { arguments } else { &"{}" };
        assert_eq!(&outbound, expected);
        assert!(told[index].1.starts_with("refused: "), "{told:?}");
        let raw = serde_json::to_string(arguments).unwrap();
        assert!(stored.contains(&raw), "{arguments} is kept as it came");
        if serde_json::from_str::<Value>(arguments).is_err() && !arguments.trim().is_empty() {
            assert_eq!(tool["args"], *arguments, "the card shows the raw text");
        }
    }
    assert_eq!(tools.last().unwrap()["state"], "not_started");
    assert!(!scene.kinds().contains(&"tool_started".to_owned()));
}

#[tokio::test]
async fn c35_empty_arguments_are_an_empty_object() {
    let scene = Scene::new("ask").await;
    scene.model.push(Step::call("g", "list_dir", ""));
    scene.model.push(Step::text("done"));
    scene.turn("go").await;
    assert_eq!(scene.tools().await[0]["args"], json!({}));
}

#[tokio::test]
async fn c11_odd_text_goes_through_everything() {
    let odd = "line\u{2028}para\u{2029}😀 \u{feff}é\u{301} \u{7f}\t\"quoted\\\" \u{0}end";
    let scene = Scene::new("full").await;
    let file = json!({ "path": "odd.txt", "content": odd });
    scene.model.push(
        Step::call("w", "write_file", &file.to_string()).with_reasoning("think\u{2028}\u{1f4a9}"),
    );
    // GBK, UTF-16 with its mark, a NUL, a lone continuation byte, a carriage return.
    let bytes =
        "printf '\\316\\322\\n\\377\\376h\\000i\\000\\nnul:\\000:\\n\\200\\r\\n\\342\\200\\250\\n'";
    scene.model.push(shell("s", bytes));
    scene
        .model
        .push(Step::call("r", "read_file", r#"{"path":"odd.txt"}"#));
    scene.model.push(Step::chunks(&["it says ", odd]));
    let said = format!("please write {odd}");
    scene.turn(&said).await;
    assert_eq!(scene.read("odd.txt"), odd);

    let items = scene.items().await;
    assert_eq!(items[0]["text"], said.as_str());
    assert_eq!(
        items.last().unwrap()["text"],
        format!("it says {odd}").as_str()
    );
    let tools = scene.tools().await;
    assert_eq!(tools[0]["args"]["content"], odd);
    let output = tools[1]["output"].as_str().unwrap();
    assert!(
        output.contains('\u{2028}'),
        "what is UTF-8 stays: {output:?}"
    );
    assert!(
        output.contains("nul:") && !output.contains('\0'),
        "{output:?}"
    );
    for tool in &tools {
        assert_eq!(tool["state"], "completed", "{tool}");
    }

    let requests = scene.model.requests();
    for request in &requests {
        assert!(request.json.is_object(), "every request is JSON");
    }
    let last = messages(requests.last().unwrap());
    assert!(
        last.iter()
            .any(|message| message["content"] == said.as_str())
    );
    let sent = last
        .iter()
        .find_map(|message| message["tool_calls"][0]["function"]["arguments"].as_str())
        .unwrap();
    assert_eq!(serde_json::from_str::<Value>(sent).unwrap(), file);

    // One record a line, each on its own, for readers that split at U+2028 as well.
    let lines = scene.log();
    let seqs: Vec<u64> = lines
        .iter()
        .map(|line| line["seq"].as_u64().unwrap())
        .collect();
    let expected: Vec<u64> = (1..=lines.len() as u64).collect();
    assert_eq!(seqs, expected);
}
