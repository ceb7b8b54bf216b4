//! A host killed in a file's publication: at each of its steps the file is whole, and what the write
//! left proves whether it happened (C39). Only where something else has interfered is the attempt
//! unknown, and an inspection says what the file is now.

use serde_json::{Value, json};

use super::requests::{checked, told};
use super::stage::{Stage, calls, text, write};
use super::surfaces::Expected;

const OLD: &str = "the old content\n";
const NEW: &str = "the new content\n";

/// A session whose host died at that place of a write of `notes.txt`; `old` is the content before.
async fn dead_in_write(place: &str, old: Option<&str>) -> Stage {
    let mut stage = Stage::new("full", vec![calls([write("c1", "notes.txt", NEW)])]).await;
    if let Some(old) = old {
        std::fs::write(stage.in_workspace("notes.txt"), old).unwrap();
    }
    stage.restart_stopping_at(place, 1);
    stage.submit("write the notes").await;
    stage.kill_where_it_parks().await;
    stage
}

/// The same, and the next host runs.
async fn killed_in_write(place: &str, old: Option<&str>) -> Stage {
    let mut stage = dead_in_write(place, old).await;
    stage.restart();
    stage
}

/// A session with an unknown write, `c1`: the file has the content that was to be written, and
/// something else has replaced it since the kill, so that nobody can say who wrote it.
pub(crate) async fn unknown_write() -> Stage {
    let mut stage = dead_in_write("after_rename", Some(OLD)).await;
    let file = stage.in_workspace("notes.txt");
    std::fs::write(stage.beside("copy"), NEW).unwrap();
    std::fs::rename(stage.beside("copy"), file).unwrap();
    stage.restart();
    stage
}

/// A session with an unknown write, `c1`, whose file is as it was before: something else has taken
/// the temporary file away since the kill.
pub(crate) async fn unknown_write_without_effect() -> Stage {
    let mut stage = dead_in_write("after_claim", Some(OLD)).await;
    for name in left_behind(&stage) {
        std::fs::remove_file(stage.in_workspace(&name)).unwrap();
    }
    stage.restart();
    stage
}

/// Files of the workspace that nobody asked for.
fn left_behind(stage: &Stage) -> Vec<String> {
    std::fs::read_dir(stage.in_workspace(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name != "notes.txt")
        .collect()
}

fn effect_folders(stage: &Stage) -> usize {
    std::fs::read_dir(stage.folder().join("effects")).map_or(0, Iterator::count)
}

async fn check(place: &str, old: Option<&str>, happened: bool) {
    let mut stage = killed_in_write(place, old).await;
    let file = stage.in_workspace("notes.txt");
    let content = || std::fs::read_to_string(&file).ok();
    let wanted = if happened { Some(NEW) } else { old };
    assert_eq!(content().as_deref(), wanted, "{place}: the file is whole");
    let state = if happened { "completed" } else { "not_started" };
    let expected = Expected {
        calls: &[("c1", state)],
        pending: false,
        jobs: 0,
        turn: "interrupted",
    };
    stage.check_surfaces(&expected).await;
    let tool = stage.tool("c1").await;
    if happened {
        assert_eq!(tool["resultSource"], "recovered", "{place}: {tool}");
        let is_shown = text(&tool["diff"]).contains("+the new content");
        assert_eq!(is_shown, old != Some(NEW), "{tool}");
    }
    assert_eq!(left_behind(&stage), Vec::<String>::new(), "{place}");
    assert_eq!(effect_folders(&stage), 0, "{place}");

    // Another host finds nothing new, and nothing blocks the next write.
    let records = stage.records().len();
    stage.restart();
    stage.check_surfaces(&expected).await;
    assert_eq!(stage.records().len(), records, "{place}");
    stage.model.push(calls([write("c2", "next.txt", "next\n")]));
    stage.turn("continue").await;
    let messages = checked(&stage.model);
    let words = if happened {
        "notes.txt, now 16 bytes"
    } else {
        "not started"
    };
    assert!(
        told(&messages, "c1").contains(words),
        "{}",
        told(&messages, "c1")
    );
    assert_eq!(content().as_deref(), wanted, "nothing was written again");
    stage.check_command_line(&Expected {
        calls: &[("c1", state), ("c2", "completed")],
        turn: "completed",
        ..expected
    });
    assert_eq!(stage.count("tool_started"), 2);
}

#[tokio::test]
async fn c39_killed_before_the_temporary_file() {
    check("before_temp", Some(OLD), false).await;
}

#[tokio::test]
async fn c39_killed_behind_the_empty_temporary_file() {
    check("after_create", Some(OLD), false).await;
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
async fn c39_killed_behind_the_claim() {
    check("after_claim", Some(OLD), false).await;
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
async fn c39_killed_before_a_new_file_is_begun() {
    check("before_temp", None, false).await;
}

#[tokio::test]
async fn c39_killed_before_a_new_file_is_there() {
    check("after_claim", None, false).await;
}

#[tokio::test]
async fn c39_killed_behind_a_new_file() {
    check("after_rename", None, true).await;
}

#[tokio::test]
async fn c39_killed_behind_a_write_of_the_same_content() {
    check("after_rename", Some(NEW), true).await;
}

#[tokio::test]
async fn c39_killed_before_a_write_of_the_same_content() {
    check("after_claim", Some(NEW), false).await;
}

#[tokio::test]
async fn tr_17_killed_behind_the_tool_and_before_its_result() {
    check("tool_ended", Some(OLD), true).await;
}

#[tokio::test]
async fn tr_17_killed_behind_the_start_record() {
    check("start_durable", Some(OLD), false).await;
}

/// The result of a write whose file was changed in place afterwards: it happened all the same.
#[tokio::test]
async fn tr_17_a_write_that_happened_is_not_undone_by_a_later_change() {
    let mut stage = dead_in_write("after_rename", Some(OLD)).await;
    // The same file, not another in its place.
    let mut file = std::fs::OpenOptions::new()
        .append(true)
        .open(stage.in_workspace("notes.txt"))
        .unwrap();
    std::io::Write::write_all(&mut file, b"by hand\n").unwrap();
    stage.restart();
    let expected = Expected {
        calls: &[("c1", "completed")],
        pending: false,
        jobs: 0,
        turn: "interrupted",
    };
    stage.check_surfaces(&expected).await;
    stage.turn("continue").await;
    let told = told(&checked(&stage.model), "c1");
    assert!(
        told.contains("something else has changed the file since"),
        "{told}"
    );
}

/// Where something else has interfered since, nothing is proven; the barrier is up.
async fn check_unknown(stage: &mut Stage, happened: bool) {
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
    assert_eq!(record["inspection_state"], state, "{record}");
    assert_eq!(
        record["arguments"],
        json!({ "path": "notes.txt", "content": NEW })
    );
    let file = &record["inspection_evidence"]["file"];
    let now = if happened { "after" } else { "before" };
    assert_eq!(file["now"], file[now], "{file}");
    assert_ne!(file["before"], file["after"]);
    // An inspection changes nothing and lifts nothing.
    stage.check_surfaces(&expected).await;

    // Somebody else's later write is neither of the two.
    std::fs::write(stage.in_workspace("notes.txt"), "by hand\n").unwrap();
    let record = stage.inspect(&attempt).await;
    assert_eq!(record["inspection_state"], "unknown", "{record}");

    stage.turn("continue").await;
    assert!(told(&checked(&stage.model), "c1").contains("unknown"));
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

#[tokio::test]
async fn tr_17_the_right_content_alone_does_not_say_who_wrote_it() {
    check_unknown(&mut unknown_write().await, true).await;
}

#[tokio::test]
async fn tr_17_the_old_content_alone_does_not_say_that_nothing_happened() {
    check_unknown(&mut unknown_write_without_effect().await, false).await;
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
