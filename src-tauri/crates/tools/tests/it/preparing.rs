//! What is refused before a call, and what a prepared call says.

use holdfast_domain::canonical::{digest, sha256_hex};
use holdfast_tools::ToolKind;
use serde_json::json;

use crate::place::Place;

#[cfg(unix)] // The shell is another one on Windows, and its description says so.
#[test]
fn the_descriptions_have_the_same_bytes_as_before() {
    let place = Place::new();
    let text = serde_json::to_string(place.registry.specs()).unwrap();
    let names: Vec<&str> = place
        .registry
        .specs()
        .iter()
        .map(|s| s.name.as_str())
        .collect();
    assert_eq!(
        names,
        [
            "read_file",
            "list_dir",
            "glob",
            "grep",
            "write_file",
            "edit_file",
            "fetch",
            "shell",
            "job_output",
            "job_stop"
        ]
    );
    // A change here costs every session its prefix cache once: make it on purpose.
    assert_eq!(
        sha256_hex(text.as_bytes()),
        include_str!("specs.sha256").trim()
    );
    let shell = &place.registry.specs()[7].description;
    assert!(shell.contains("no terminal") && shell.contains("stdin is empty"));
}

#[test]
fn tr_04_raw_arguments_are_refused_with_their_reason() {
    let place = Place::new();
    for (raw, code) in [
        (
            r#"{"path":"a","path":"b"}"#.to_owned(),
            "arguments_duplicate_key",
        ),
        (
            r#"{"path":12345678901234567890123}"#.to_owned(),
            "arguments_unsafe_integer",
        ),
        (
            r#"{"path":"\ud800"}"#.to_owned(),
            "arguments_lone_surrogate",
        ),
        ("{\"path\":".to_owned(), "arguments_invalid"),
        ("[1]".to_owned(), "arguments_not_object"),
        (
            format!("{}1{}", "{\"a\":".repeat(70), "}".repeat(70)),
            "arguments_too_deep",
        ),
        (String::new(), "arguments_wrong"),
    ] {
        let refusal = place
            .registry
            .prepare("read_file", &raw, &place.workspace)
            .unwrap_err();
        assert_eq!(refusal.code, code, "{raw}");
    }
}

#[test]
fn tr_04_a_wrong_field_is_named_with_its_place() {
    let place = Place::new();
    place.put("a", "text");
    for (tool, arguments, words) in [
        (
            "read_file",
            json!({"path": "a", "line": 3}),
            "unknown field `line`",
        ),
        ("read_file", json!({"path": 3}), "path: invalid type"),
        (
            "read_file",
            json!({"path": "a", "offset": 0}),
            "offset: 0 is not between",
        ),
        ("read_file", json!({}), "missing field `path`"),
        (
            "edit_file",
            json!({"path": "a", "edits": []}),
            "edits: it is empty",
        ),
        (
            "edit_file",
            json!({"path": "a", "edits": [{"old_text": "t"}]}),
            "edits[0]: missing field `new_text`",
        ),
        (
            "fetch",
            json!({"url": "http://x", "method": "POST"}),
            "unknown variant `POST`",
        ),
    ] {
        let refusal = place.prepare(tool, &arguments).unwrap_err();
        assert_eq!(refusal.code, "arguments_wrong", "{arguments}");
        assert!(refusal.message.contains(words), "{}", refusal.message);
        assert!(
            refusal.message.contains("nothing was run"),
            "{}",
            refusal.message
        );
    }
    assert_eq!(place.refusal("reed_file", &json!({})), "unknown_tool");
}

#[test]
fn tr_06_a_file_writers_scope_is_its_canonical_path() {
    let place = Place::new();
    place.put("dir/a.txt", "one\n");
    let root = place.workspace.root().display().to_string();
    let arguments = json!({"path": "dir/../dir/./a.txt", "content": "two\n"});
    let prepared = place.prepare("write_file", &arguments).unwrap();
    assert_eq!(prepared.argument_digest, digest(&arguments));
    assert_eq!(prepared.arguments, arguments);
    assert_eq!((prepared.kind, prepared.read_only), (ToolKind::Edit, false));
    let scope = prepared.resource_scope.unwrap();
    let file = std::path::Path::new("dir").join("a.txt");
    assert_eq!(
        scope,
        format!("file:{}", std::path::Path::new(&root).join(file).display())
    );
    assert_eq!(prepared.subject, "dir/a.txt");

    let reading = place
        .prepare("read_file", &json!({"path": "dir/a.txt"}))
        .unwrap();
    assert_eq!((reading.kind, reading.read_only), (ToolKind::Read, true));
    assert_eq!((reading.resource_scope, reading.file), (None, None));
    let fetching = place
        .prepare("fetch", &json!({"url": "http://localhost:1/x"}))
        .unwrap();
    assert_eq!(
        (fetching.kind, fetching.read_only),
        (ToolKind::Network, true)
    );
    assert_eq!(fetching.subject, "GET http://localhost:1/x");
}

#[test]
fn tr_17_the_intent_is_complete_before_anything_is_written() {
    let place = Place::new();
    place.put("a.txt", "one\ntwo\n");
    let edits = json!([{"old_text": "two", "new_text": "2"}]);
    let prepared = place
        .prepare("edit_file", &json!({"path": "a.txt", "edits": edits}))
        .unwrap();
    let intent = prepared.file.unwrap();
    assert_eq!(intent.version, 1);
    assert_eq!(intent.path, "a.txt");
    assert_eq!(
        intent.resolved_path,
        place.workspace.root().join("a.txt").to_str().unwrap()
    );
    assert_eq!(intent.before, sha256_hex(b"one\ntwo\n"));
    assert_eq!(intent.after, sha256_hex(b"one\n2\n"));
    assert_eq!((intent.encoding.as_str(), intent.existed), ("utf-8", true));
    assert_eq!(place.get("a.txt"), "one\ntwo\n");
    let diff = prepared.diff.unwrap();
    assert_eq!(
        diff,
        "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"
    );

    let new = place
        .prepare("write_file", &json!({"path": "new/b", "content": "x"}))
        .unwrap();
    let intent = new.file.unwrap();
    assert_eq!((intent.before.as_str(), intent.existed), ("", false));
    assert!(
        new.diff
            .unwrap()
            .starts_with("--- /dev/null\n+++ b/new/b\n")
    );
    assert!(!place.path("new").exists());
}

#[test]
fn what_is_not_there_yet_is_refused_clearly() {
    let place = Place::new();
    let code = |arguments| place.refusal("shell", &arguments);
    assert_eq!(
        code(json!({"command": "ls", "read_only": true})),
        "sandbox_unavailable"
    );
    assert_eq!(code(json!({"command": "  "})), "arguments_wrong");
    assert_eq!(code(json!({"command": "ls\u{0}"})), "arguments_wrong");
    assert_eq!(
        code(json!({"command": "ls", "timeout_s": 0})),
        "arguments_wrong"
    );
    let prepared = place
        .prepare("shell", &json!({"command": "docker run -d x"}))
        .unwrap();
    assert_eq!(prepared.hands_over.as_deref(), Some("docker"));
    assert_eq!(
        (prepared.kind, prepared.read_only),
        (ToolKind::Shell, false)
    );
}
