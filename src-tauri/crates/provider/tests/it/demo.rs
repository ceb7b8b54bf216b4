//! The demo model, walked through its task by a small tool loop that works on real files and runs
//! the real check; and what it does when a tool's answer is not what it hoped for.

use std::path::Path;
use std::time::Duration;

use futures_util::StreamExt;
use holdfast_domain::transcript::outbound::{OutboundCall, OutboundMessage};
use holdfast_provider::demo::{self, DemoClient};
use holdfast_provider::{ModelCall, ModelClient, ModelEvent, ModelReply};
use serde_json::Value;

use crate::setup::{request, user};

const UNKNOWN: &str = "[host] The outcome of this call is unknown (started 2026-01-01T00:00:00Z). It \
                       may have happened, in part or whole. Look at the outside state before \
                       repeating it.";
#[cfg(unix)]
const BLOCKED: &str = "blocked: recovery_required: inspect and resolve the previous uncertain tool \
                       effect before another write\nattempt 00 (shell on sh check.sh) is unknown.";
#[cfg(unix)]
const DENIED: &str = "denied: the person did not allow this call";
#[cfg(unix)]
const STOPPED: &str = "some output\n[exit status 0]\n[stopped; effects may be partial]\n";

/// The transcript of a session with the demo model.
struct Session {
    folder: tempfile::TempDir,
    messages: Vec<OutboundMessage>,
    /// Tool and first words of each call, in order.
    calls: Vec<String>,
}

impl Session {
    fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in demo::sample_project() {
            std::fs::write(folder.path().join(path), content).unwrap();
        }
        Self {
            folder,
            messages: vec![
                OutboundMessage::System {
                    text: "system".to_owned(),
                },
                user(text),
            ],
            calls: Vec::new(),
        }
    }

    fn say(&mut self, text: &str) {
        self.messages.push(user(text));
    }

    /// Lets the model go on until it calls nothing more. `answer` may put its own answer in place
    /// of a tool's.
    fn run(&mut self, answer: impl Fn(&ModelCall) -> Option<&'static str>) -> String {
        for _ in 0..20 {
            let reply = demo::reply(&self.messages);
            assert_eq!(reply, demo::reply(&self.messages), "a pure function");
            let calls: Vec<OutboundCall> = reply
                .calls
                .iter()
                .map(|call| OutboundCall {
                    id: call.provider_id.clone(),
                    name: call.name.clone(),
                    arguments: call.arguments.clone(),
                })
                .collect();
            self.messages.push(OutboundMessage::Assistant {
                text: reply.text.clone(),
                reasoning: Some(reply.reasoning),
                calls,
            });
            if reply.calls.is_empty() {
                assert_eq!(reply.finish_reason, "stop");
                return reply.text;
            }
            for call in &reply.calls {
                self.calls.push(call.name.clone());
                let text = match answer(call) {
                    Some(text) => text.to_owned(),
                    None => execute(self.folder.path(), call),
                };
                self.messages.push(OutboundMessage::Tool {
                    call_id: call.provider_id.clone(),
                    name: call.name.clone(),
                    text,
                });
            }
        }
        panic!("the demo model does not come to an end: {:?}", self.calls);
    }

    #[cfg(unix)]
    fn program(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("greet.sh")).unwrap()
    }

    fn count(&self, tool: &str) -> usize {
        self.calls.iter().filter(|name| *name == tool).count()
    }
}

/// The four tools, as small as they can be.
fn execute(folder: &Path, call: &ModelCall) -> String {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
    let path = || folder.join(arguments["path"].as_str().unwrap());
    match call.name.as_str() {
        "list_dir" => {
            let mut names: Vec<String> = std::fs::read_dir(path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names.join("\n")
        }
        "read_file" => match std::fs::read_to_string(path()) {
            Ok(text) => text,
            Err(error) => format!("error: {error}"),
        },
        "edit_file" => {
            let mut text = std::fs::read_to_string(path()).unwrap();
            for edit in arguments["edits"].as_array().unwrap() {
                let old = edit["old_text"].as_str().unwrap();
                if text.matches(old).count() != 1 {
                    return "error: old_text does not occur".to_owned();
                }
                text = text.replace(old, edit["new_text"].as_str().unwrap());
            }
            std::fs::write(path(), text).unwrap();
            "edited".to_owned()
        }
        "shell" => {
            let output = std::process::Command::new("sh")
                .args(["-c", arguments["command"].as_str().unwrap()])
                .current_dir(folder)
                .output()
                .unwrap();
            format!(
                "{}[exit status {}]",
                String::from_utf8(output.stdout).unwrap(),
                output.status.code().unwrap()
            )
        }
        other => panic!("the demo model called {other}"),
    }
}

fn is(call: &ModelCall, tool: &str) -> bool {
    call.name == tool
}

/// Streams one reply and checks that its pieces make up the whole.
async fn stream(messages: Vec<OutboundMessage>) -> ModelReply {
    let client = DemoClient::new(Duration::ZERO);
    assert_eq!(client.name(), "demo");
    let mut stream = client.stream(request(messages));
    let (mut text, mut reasoning, mut finished) = (String::new(), String::new(), None);
    let mut lengths: Vec<usize> = Vec::new();
    while let Some(event) = stream.next().await {
        assert!(finished.is_none(), "nothing comes after the end");
        match event.unwrap() {
            ModelEvent::Reasoning(piece) => {
                assert!(text.is_empty(), "reasoning comes first");
                reasoning.push_str(&piece);
            }
            ModelEvent::Text(piece) => text.push_str(&piece),
            ModelEvent::ToolCall {
                index,
                arguments_so_far_len,
                ..
            } => {
                lengths.resize(lengths.len().max(index + 1), 0);
                lengths[index] = arguments_so_far_len;
            }
            ModelEvent::Retrying { .. } => panic!("nothing to retry"),
            ModelEvent::Finished(reply) => finished = Some(reply),
        }
    }
    let reply = finished.unwrap();
    assert_eq!((&reply.text, &reply.reasoning), (&text, &reasoning));
    let whole: Vec<usize> = reply
        .calls
        .iter()
        .map(|call| call.arguments.len())
        .collect();
    assert_eq!(lengths, whole);
    reply
}

#[tokio::test]
async fn the_demo_streams_in_pieces_and_reads_two_files_at_once() {
    let first = stream(vec![user(demo::TASK)]).await;
    assert!(!first.reasoning.is_empty());
    assert_eq!(first.model, "demo");
    assert_eq!(first.calls[0].name, "list_dir");

    let mut messages = vec![user(demo::TASK)];
    messages.push(OutboundMessage::Assistant {
        text: first.text,
        reasoning: None,
        calls: vec![OutboundCall {
            id: "ours".to_owned(),
            name: "list_dir".to_owned(),
            arguments: first.calls[0].arguments.clone(),
        }],
    });
    messages.push(OutboundMessage::Tool {
        call_id: "ours".to_owned(),
        name: "list_dir".to_owned(),
        text: "check.sh\ngreet.sh".to_owned(),
    });
    let second = stream(messages).await;
    let names: Vec<&str> = second.calls.iter().map(|call| call.name.as_str()).collect();
    assert_eq!(names, ["read_file", "read_file"]);
    assert_ne!(second.calls[0].provider_id, second.calls[1].provider_id);
    assert_ne!(second.calls[0].provider_id, first.calls[0].provider_id);
}

#[test]
#[cfg(unix)]
fn the_demo_finds_and_fixes_the_bug_and_proves_it() {
    for text in [demo::TASK, "please look at the Greeting program"] {
        let mut session = Session::new(text);
        let end = session.run(|_| None);
        assert_eq!(
            session.calls,
            [
                "list_dir",
                "read_file",
                "read_file",
                "shell",
                "edit_file",
                "shell"
            ]
        );
        assert!(end.starts_with("Done."), "{end}");
        assert!(session.program().contains("echo \"Hello, $name!\""));
        let check = ModelCall {
            name: "shell".to_owned(),
            arguments: r#"{"command":"sh check.sh"}"#.to_owned(),
            ..ModelCall::default()
        };
        let proof = execute(session.folder.path(), &check);
        assert!(proof.ends_with("[exit status 0]"), "{proof}");
        assert_eq!(proof.matches("ok:").count(), 3);

        // Asked again, it finds nothing to do.
        session.say(demo::TASK);
        let end = session.run(|_| None);
        assert!(end.contains("passes already"), "{end}");
        assert_eq!(session.count("edit_file"), 1);
    }
}

#[test]
fn an_unknown_request_is_answered_honestly() {
    let mut session = Session::new("hello");
    let end = session.run(|_| None);
    assert!(end.contains("scripted model"), "{end}");
    assert!(end.contains(demo::TASK), "{end}");
    session.say("continue");
    assert!(session.run(|_| None).contains("scripted model"));
    assert!(session.calls.is_empty());
}

#[test]
fn a_folder_without_the_sample_project_is_left_alone() {
    let mut session = Session::new(demo::TASK);
    let end = session.run(|call| is(call, "list_dir").then_some("main.rs\nCargo.toml"));
    assert!(end.contains("only the sample project"), "{end}");
    assert_eq!(session.calls, ["list_dir"]);
}

#[test]
fn a_command_of_unknown_outcome_is_never_repeated() {
    let mut session = Session::new(demo::TASK);
    let end = session.run(|call| is(call, "shell").then_some(UNKNOWN));
    assert!(end.contains("is unknown"), "{end}");
    assert!(end.contains("I do not run it again"), "{end}");
    session.say("continue");
    let end = session.run(|_| None);
    assert!(end.contains("I do not run it again"), "{end}");
    assert_eq!(session.count("shell"), 1);
}

#[test]
#[cfg(unix)]
fn after_the_host_has_told_what_became_of_it_the_demo_goes_on() {
    let mut session = Session::new(demo::TASK);
    session.run(|call| is(call, "shell").then_some(UNKNOWN));
    session.say("[host note] What is now known about calls whose outcome was unknown:\n- …");
    session.say("continue");
    let end = session.run(|_| None);
    assert!(end.starts_with("Done."), "{end}");
    assert_eq!(session.count("shell"), 3);
}

#[test]
#[cfg(unix)]
fn an_edit_of_unknown_outcome_is_looked_at_and_not_repeated() {
    let mut session = Session::new(demo::TASK);
    let end = session.run(|call| is(call, "edit_file").then_some(UNKNOWN));
    assert!(end.contains("still holds the wrong line"), "{end}");
    session.say("go on");
    let end = session.run(|_| None);
    assert!(end.contains("is unknown"), "{end}");
    assert_eq!(session.count("edit_file"), 1);
    assert_eq!(session.calls.last().unwrap(), "read_file");
}

#[test]
#[cfg(unix)]
fn a_blocked_a_denied_and_a_stopped_call_end_the_turn_with_the_reason() {
    for (tool, text, words) in [
        ("shell", BLOCKED, "was blocked"),
        ("edit_file", BLOCKED, "was blocked"),
        ("shell", DENIED, "not allowed"),
        ("edit_file", DENIED, "not allowed"),
        ("read_file", DENIED, "not allowed"),
        ("shell", STOPPED, "did not end by itself"),
        (
            "edit_file",
            "not started: the turn ended before this call was run",
            "was not started",
        ),
        (
            "read_file",
            "error: permission denied by the system",
            "I stop here",
        ),
        ("list_dir", "error: no such folder", "did not work"),
        (
            "shell",
            "[the command could not be started: no sh]\n",
            "did not work",
        ),
    ] {
        let mut session = Session::new(demo::TASK);
        let before = session.program();
        let end = session.run(|call| is(call, tool).then_some(text));
        assert!(end.contains(words), "{tool} {text}: {end}");
        assert_eq!(session.calls.last().unwrap(), tool, "nothing after it");
        assert_eq!(session.program(), before);
        // A person who says so gets the rest done.
        session.say("continue");
        let end = session.run(|_| None);
        assert!(end.starts_with("Done."), "{tool} {text}: {end}");
    }
}

#[test]
#[cfg(unix)]
fn an_edit_that_does_not_fit_makes_it_read_again() {
    // Refused for ever: it reads again, tries once more and gives up.
    let mut session = Session::new(demo::TASK);
    let refusal = "error: old_text does not occur (line 4 is alike but for white space)";
    let end = session.run(|call| is(call, "edit_file").then_some(refusal));
    assert!(end.contains("refused twice"), "{end}");
    assert_eq!(
        (session.count("edit_file"), session.count("read_file")),
        (2, 3)
    );

    // Somebody else fixed the file meanwhile: it reads again, checks, and claims nothing.
    let mut session = Session::new(demo::TASK);
    let path = session.folder.path().join("greet.sh");
    let end = session.run(|call| {
        if is(call, "edit_file") {
            let text = std::fs::read_to_string(&path).unwrap();
            std::fs::write(&path, text.replace("$nmae", "$name")).unwrap();
        }
        None
    });
    assert!(end.contains("I changed nothing"), "{end}");
    assert_eq!(session.count("edit_file"), 1);
}

#[test]
#[cfg(unix)]
fn a_check_that_still_fails_is_not_called_a_success() {
    let mut session = Session::new(demo::TASK);
    let end = session.run(|call| is(call, "shell").then_some("FAIL\n[exit status 1]"));
    assert!(end.contains("still fails"), "{end}");
    assert!(!end.starts_with("Done"), "{end}");
    assert_eq!((session.count("shell"), session.count("edit_file")), (2, 1));
}
