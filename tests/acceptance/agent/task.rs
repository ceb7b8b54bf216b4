//! A whole task: ten calls of every kind, over HTTP with a person who answers, and in one command.

use holdfast_testkit::model_server::{ModelServer, Step};
use serde_json::{Value, json};

use super::command_line::holdfast;
use super::scene::{Ground, Plan, Scene, messages, shell};

const BROKEN: &str = "add() { echo $(($1 - $2)); }\n";
const TEST: &str =
    ". ./sum.sh\n[ \"$(add 2 3)\" = 5 ] && echo passed || { echo failed; exit 1; }\n";

fn project(folder: &std::path::Path) {
    std::fs::write(folder.join("sum.sh"), BROKEN).unwrap();
    std::fs::write(folder.join("test.sh"), TEST).unwrap();
    std::fs::create_dir(folder.join("docs")).unwrap();
    std::fs::write(folder.join("docs/notes.md"), "adds numbers\n").unwrap();
}

fn script(model: &ModelServer) {
    let call = |id: &str, name: &str, arguments: Value| {
        model.push(Step::call(id, name, &arguments.to_string()));
    };
    call("t1", "list_dir", json!({ "path": "." }));
    call("t2", "read_file", json!({ "path": "sum.sh" }));
    call("t3", "grep", json!({ "pattern": "add", "path": "." }));
    call("t4", "glob", json!({ "pattern": "**/*.md" }));
    call(
        "t5",
        "edit_file",
        json!({ "path": "sum.sh", "edits": [{ "old_text": "$1 - $2", "new_text": "$1 * $2" }] }),
    );
    model.push(shell("t6", "sh test.sh"));
    call(
        "t7",
        "edit_file",
        json!({ "path": "sum.sh", "edits": [{ "old_text": "$1 * $2", "new_text": "$1 + $2" }] }),
    );
    model.push(shell("t8", "sh test.sh"));
    call(
        "t9",
        "write_file",
        json!({ "path": "docs/change.md", "content": "It adds now.\n" }),
    );
    call("t10", "read_file", json!({ "path": "docs/change.md" }));
    model.push(Step::chunks(&["The sum ", "is mended."]));
}

const STATES: [(&str, &str); 10] = [
    ("t1", "completed"),
    ("t2", "completed"),
    ("t3", "completed"),
    ("t4", "completed"),
    ("t5", "completed"),
    ("t6", "failed"),
    ("t7", "completed"),
    ("t8", "completed"),
    ("t9", "completed"),
    ("t10", "completed"),
];

#[tokio::test]
async fn ten_calls_with_a_person_who_answers() {
    let scene = Scene::new("ask").await;
    project(&scene.workspace);
    script(&scene.model);
    let turn = scene.submit("Mend the sum").await;

    let asked = scene.question().await;
    assert_eq!(asked["kind"], "approval");
    assert_eq!(asked["turnId"], turn.as_str());
    assert_eq!(asked["approval"]["tool"], "edit_file");
    assert_eq!(asked["approval"]["callId"], "t5");
    let diff = asked["approval"]["diff"].as_str().unwrap();
    assert!(diff.contains("-add() { echo $(($1 - $2)); }"), "{diff}");
    assert!(diff.contains("+add() { echo $(($1 * $2)); }"), "{diff}");
    assert_eq!(scene.read("sum.sh"), BROKEN, "asked before it is done");
    assert_eq!(scene.get("/status").await["pendingPrompt"], true);
    assert_eq!(scene.approve(&asked, true, "once", None).await.0, 204);

    let asked = scene.answer(true, "once").await;
    assert_eq!(asked["approval"]["subject"], "sh test.sh");
    assert_eq!(scene.answer(true, "once").await["approval"]["callId"], "t7");
    assert_eq!(scene.answer(true, "once").await["approval"]["callId"], "t8");
    assert_eq!(scene.answer(true, "once").await["approval"]["callId"], "t9");
    let status = scene.ended(&turn).await;
    assert_eq!(status["runtimeState"]["turnStatus"], "completed");

    let tools = scene.tools().await;
    let states: Vec<(&str, &str)> = tools
        .iter()
        .map(|tool| {
            (
                tool["id"].as_str().unwrap(),
                tool["state"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(states, STATES);
    assert_eq!(tools[5]["exitCode"], 1);
    assert!(tools[5]["output"].as_str().unwrap().contains("failed"));
    assert_eq!(tools[7]["exitCode"], 0);
    assert!(tools[7]["output"].as_str().unwrap().contains("passed"));
    assert_eq!(scene.read("docs/change.md"), "It adds now.\n");
    let items = scene.items().await;
    assert_eq!(items.last().unwrap()["text"], "The sum is mended.");

    let attempt = tools[6]["attemptId"].as_str().unwrap();
    let diff = scene.get(&format!("/diff?attempt={attempt}")).await;
    assert!(
        diff["diff"]
            .as_str()
            .unwrap()
            .contains("+add() { echo $(($1 + $2)); }")
    );
    let attempt = tools[7]["attemptId"].as_str().unwrap();
    let output = scene
        .get(&format!("/output?attempt={attempt}&offset=0"))
        .await;
    assert_eq!(output["text"], "passed\n");
    assert_eq!(output["more"], false);

    // Each result went back to the model behind its own call.
    let last = scene.model.requests().pop().unwrap();
    let answered: Vec<String> = super::scene::results(&last)
        .into_iter()
        .map(|(id, _)| id)
        .collect();
    let ids: Vec<&str> = STATES.iter().map(|(id, _)| *id).collect();
    assert_eq!(answered, ids);
    assert_eq!(messages(&last)[0]["role"], "system");
}

#[tokio::test]
async fn ten_calls_in_one_command() {
    let ground = Ground::new(&Plan::default());
    project(&ground.workspace);
    script(&ground.model);
    let ran = holdfast(&ground, &["run", "Mend the sum", "--output", "json"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let outcome: Value = serde_json::from_str(ran.stdout.trim()).unwrap();
    assert_eq!(outcome["status"], "completed");
    assert_eq!(outcome["text"], "The sum is mended.");
    assert_eq!(outcome["unresolved"], 0);
    assert_eq!(outcome["pendingPrompt"], false);
    let session = outcome["sessionId"].as_str().unwrap();
    let shown = holdfast(&ground, &["sessions", "show", session, "--json"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let items = shown
        .as_array()
        .cloned()
        .unwrap_or_else(|| shown["items"].as_array().unwrap().clone());
    let states: Vec<(&str, &str)> = items
        .iter()
        .filter(|item| item["kind"] == "tool")
        .map(|item| &item["tool"])
        .map(|tool| {
            (
                tool["id"].as_str().unwrap(),
                tool["state"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(states, STATES);
    let sum = std::fs::read_to_string(ground.workspace.join("sum.sh")).unwrap();
    assert!(sum.contains("$1 + $2"));
}
