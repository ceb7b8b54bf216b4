//! A host killed in a file's publication: at each of its steps the file is whole, the attempt is
//! unknown, and an inspection says what the file is now.

use serde_json::{Value, json};

use super::requests::{checked, told};
use super::stage::{Stage, calls, text, write};
use super::surfaces::Expected;

const OLD: &str = "the old content\n";
const NEW: &str = "the new content\n";

/// A session whose host was killed at that place of a write; `old` is the content before.
pub(crate) async fn killed_in_write(place: &str, old: Option<&str>) -> Stage {
    let mut stage = Stage::new("full", vec![calls([write("c1", "notes.txt", NEW)])]).await;
    if let Some(old) = old {
        std::fs::write(stage.in_workspace("notes.txt"), old).unwrap();
    }
    stage.restart_stopping_at(place, 1);
    stage.submit("write the notes").await;
    stage.kill_where_it_parks().await;
    stage.restart();
    stage
}

async fn check(place: &str, old: Option<&str>, happened: bool) {
    let mut stage = killed_in_write(place, old).await;
    let now = std::fs::read_to_string(stage.in_workspace("notes.txt")).ok();
    let wanted = if happened { Some(NEW) } else { old };
    assert_eq!(now.as_deref(), wanted, "{place}: the file is whole");
    let expected = Expected {
        calls: &[("c1", "unknown")],
        pending: false,
        jobs: 0,
        turn: "interrupted",
    };
    stage.check_surfaces(&expected).await;

    let attempt = stage.unresolved().await;
    let record = stage.inspect(&attempt).await;
    let state = if happened {
        "postcondition_satisfied"
    } else {
        "absent_fenced"
    };
    assert_eq!(record["inspection_state"], state, "{place}: {record}");
    assert_eq!(
        record["arguments"],
        json!({ "path": "notes.txt", "content": NEW })
    );
    let file = &record["inspection_evidence"]["file"];
    let now = if happened { "after" } else { "before" };
    assert_eq!(file["now"], file[now], "{place}: {file}");
    assert_ne!(file["before"], file["after"]);
    // An inspection changes nothing and lifts nothing.
    stage.check_surfaces(&expected).await;

    // Somebody else's later write is neither of the two.
    std::fs::write(stage.in_workspace("notes.txt"), "by hand\n").unwrap();
    let record = stage.inspect(&attempt).await;
    assert_eq!(record["inspection_state"], "unknown", "{record}");

    stage.turn("continue").await;
    let messages = checked(&stage.model);
    assert!(told(&messages, "c1").contains("unknown"));
    assert_eq!(left_behind(&stage), Vec::<String>::new(), "{place}");
    assert_eq!(
        std::fs::read_to_string(stage.in_workspace("notes.txt")).unwrap(),
        "by hand\n",
        "nothing was written again"
    );
    stage.check_command_line(&Expected {
        turn: "completed",
        ..expected
    });
    assert_eq!(stage.count("tool_started"), 1);
}

/// Files of the workspace that nobody asked for.
fn left_behind(stage: &Stage) -> Vec<String> {
    std::fs::read_dir(stage.in_workspace(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "notes.txt")
        .collect()
}

#[tokio::test]
async fn c39_killed_before_the_temporary_file() {
    check("before_temp", Some(OLD), false).await;
}

#[tokio::test]
async fn c39_killed_behind_the_temporary_file() {
    check("after_temp", Some(OLD), false).await;
}

#[tokio::test]
async fn c39_killed_behind_the_sync() {
    check("after_sync", Some(OLD), false).await;
}

#[tokio::test]
async fn c39_killed_behind_the_rename() {
    check("after_rename", Some(OLD), true).await;
}

#[tokio::test]
async fn c39_killed_behind_the_folder_sync() {
    check("after_folder_sync", Some(OLD), true).await;
}

#[tokio::test]
async fn c39_killed_before_a_new_file_is_there() {
    check("after_sync", None, false).await;
}

#[tokio::test]
async fn c39_killed_behind_a_new_file() {
    check("after_rename", None, true).await;
}

#[tokio::test]
async fn tr_17_killed_behind_the_tool_and_before_its_result() {
    check("tool_ended", Some(OLD), true).await;
}

#[tokio::test]
async fn tr_08_killed_behind_the_stored_result_of_a_write() {
    let mut stage = killed_in_write("result_durable", Some(OLD)).await;
    let expected = Expected {
        calls: &[("c1", "completed")],
        pending: false,
        jobs: 0,
        turn: "interrupted",
    };
    stage.check_surfaces(&expected).await;
    let tool: Value = stage.tool("c1").await;
    assert_eq!(tool["resultSource"], "live");
    assert!(text(&tool["diff"]).contains("+the new content"));
    stage.turn("continue").await;
    checked(&stage.model);
    stage.check_command_line(&Expected {
        turn: "completed",
        ..expected
    });
    assert_eq!(stage.count("tool_result"), 1);
}
