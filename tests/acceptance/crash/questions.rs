//! C36: a batch in which one call is done, one waits for a person, one was not dispatched; the host
//! is killed. Then either the person allows, or a new message closes both.

use serde_json::{Value, json};

use super::requests::{checked, said, told};
use super::stage::{Stage, calls, shell, text, until_there, wait_for_file, write};
use super::surfaces::Expected;

/// The host was killed while `c2` waits: `c1` is done, `c3` was not dispatched.
async fn waiting(second_is_a_write: bool) -> Stage {
    let mut stage = Stage::new("ask", vec![]).await;
    let append = |call: &str| shell(call, &stage.ledger.append(call));
    let second = if second_is_a_write {
        write("c2", "notes.txt", "written by c2\n")
    } else {
        append("c2")
    };
    stage
        .model
        .push(calls([append("c1"), second, append("c3")]));
    std::fs::write(stage.in_workspace("notes.txt"), "as it was\n").unwrap();
    stage.submit("three things").await;
    let first = stage.until_asked("c1").await;
    assert_eq!(stage.allow(&first).await.0, 204);
    stage.until_asked("c2").await;
    stage.kill();
    stage.restart();
    let expected = Expected {
        calls: &[("c1", "completed"), ("c2", "proposed"), ("c3", "proposed")],
        pending: true,
        jobs: 0,
        turn: "interrupted",
    };
    stage.check_surfaces(&expected).await;
    stage
}

#[tokio::test]
async fn c36_allowed_the_second_runs_and_the_third_is_asked() {
    let mut stage = waiting(false).await;
    let second = stage.until_asked("c2").await;
    assert_eq!(stage.allow(&second).await.0, 204);
    let third = stage.until_asked("c3").await;
    assert_eq!(stage.ledger.lines(), ["c1", "c2"]);
    assert_ne!(third["promptId"], second["promptId"]);
    assert_eq!(stage.allow(&third).await.0, 204);
    stage.idle().await;
    let messages = checked(&stage.model);
    assert_eq!(said(&messages), ["three things"]);
    assert_eq!(stage.ledger.lines(), ["c1", "c2", "c3"]);
    let expected = Expected {
        calls: &[
            ("c1", "completed"),
            ("c2", "completed"),
            ("c3", "completed"),
        ],
        pending: false,
        jobs: 0,
        turn: "completed",
    };
    stage.check_surfaces(&expected).await;
    stage.check_command_line(&expected);
}

#[tokio::test]
async fn c36_killed_again_in_the_continuation_the_third_is_still_asked() {
    let mut stage = waiting(false).await;
    let second = stage.until_asked("c2").await;
    assert_eq!(stage.allow(&second).await.0, 204);
    let third = stage.until_asked("c3").await;
    stage.kill();
    stage.restart();
    assert_eq!(stage.prompt().await, third);
    assert_eq!(stage.allow(&third).await.0, 204);
    stage.idle().await;
    checked(&stage.model);
    assert_eq!(stage.ledger.lines(), ["c1", "c2", "c3"]);
}

#[tokio::test]
async fn c36_a_new_message_closes_both_as_not_started() {
    let mut stage = waiting(false).await;
    let second = stage.until_asked("c2").await;
    stage.turn("something else").await;
    let (status, late) = stage.allow(&second).await;
    assert_eq!((status, &late["code"]), (409, &json!("prompt_not_pending")));
    let messages = checked(&stage.model);
    for call in ["c2", "c3"] {
        assert!(told(&messages, call).starts_with("not started"));
    }
    assert_eq!(said(&messages), ["three things", "something else"]);
    assert_eq!(stage.ledger.lines(), ["c1"]);
    let expected = Expected {
        calls: &[
            ("c1", "completed"),
            ("c2", "not_started"),
            ("c3", "not_started"),
        ],
        pending: false,
        jobs: 0,
        turn: "completed",
    };
    stage.check_surfaces(&expected).await;
    stage.check_command_line(&expected);
}

#[tokio::test]
async fn c36_a_file_that_changed_meanwhile_is_asked_again_on_its_new_state() {
    let stage = waiting(true).await;
    let second = stage.until_asked("c2").await;
    assert_eq!(second["approval"]["generation"], 1);
    std::fs::write(stage.in_workspace("notes.txt"), "changed by hand\n").unwrap();
    let (status, stale) = stage.allow(&second).await;
    assert_eq!((status, &stale["code"]), (409, &json!("prompt_stale")));
    let again = stage.prompt().await;
    assert_eq!(again["approval"]["generation"], 2);
    assert_eq!(again["approval"]["id"], second["approval"]["id"]);
    let diff = again["approval"]["diff"].as_str().unwrap();
    assert!(diff.contains("-changed by hand"), "{diff}");
    // The old generation answers nothing any more.
    let (status, stale) = stage.allow(&second).await;
    assert_eq!((status, &stale["code"]), (409, &json!("prompt_stale")));
    assert_eq!(
        std::fs::read_to_string(stage.in_workspace("notes.txt")).unwrap(),
        "changed by hand\n"
    );
    assert_eq!(stage.allow(&again).await.0, 204);
    let third = stage.until_asked("c3").await;
    assert_eq!(
        std::fs::read_to_string(stage.in_workspace("notes.txt")).unwrap(),
        "written by c2\n"
    );
    assert_eq!(stage.answer(&third, false).await.0, 204);
    stage.idle().await;
    checked(&stage.model);
    assert_eq!(stage.ledger.lines(), ["c1"]);
}

#[tokio::test]
async fn c36_killed_between_the_answer_and_the_start_nothing_ran() {
    let mut stage = waiting(false).await;
    stage.restart_stopping_at("start_durable", 1);
    let second = stage.until_asked("c2").await;
    stage.answer_unheard(&second);
    stage.kill_where_it_parks().await;
    stage.restart();
    let expected = Expected {
        calls: &[
            ("c1", "completed"),
            ("c2", "not_started"),
            ("c3", "proposed"),
        ],
        pending: false,
        jobs: 0,
        turn: "interrupted",
    };
    stage.check_surfaces(&expected).await;
    let (status, late) = stage.allow(&second).await;
    assert_eq!((status, &late["code"]), (409, &json!("prompt_not_pending")));
    stage.turn("go on").await;
    let messages = checked(&stage.model);
    assert!(told(&messages, "c2").contains("never ran"));
    assert!(told(&messages, "c3").starts_with("not started"));
    assert_eq!(stage.ledger.lines(), ["c1"]);
}

#[tokio::test]
async fn c36_behind_a_restart_the_third_is_asked_even_where_the_mode_allows_it() {
    let mut stage = Stage::new("edits", vec![]).await;
    let first = shell("c1", &stage.ledger.append("c1"));
    stage
        .model
        .push(calls([first, write("c2", "two.txt", "two\n")]));
    stage.submit("two things").await;
    let asked = stage.until_asked("c1").await;
    stage.kill();
    stage.restart();
    assert_eq!(stage.allow(&asked).await.0, 204);
    let second = stage.until_asked("c2").await;
    assert!(!stage.in_workspace("two.txt").exists());
    assert_eq!(stage.allow(&second).await.0, 204);
    stage.idle().await;
    checked(&stage.model);
    assert!(stage.in_workspace("two.txt").exists());
    // The next turn is an ordinary one again.
    stage.model.push(calls([write("c3", "three.txt", "3\n")]));
    stage.submit("one more").await;
    stage.idle().await;
    assert_eq!(stage.tool("c3").await["state"], "completed");
    assert_eq!(stage.ledger.lines(), ["c1"]);
}

/// TR-51: an answer that was stored and led to nothing more.
#[tokio::test]
async fn tr_51_allowed_and_not_started_is_asked_again() {
    let mut stage = waiting(true).await;
    stage.restart_stopping_at("start_durable", 1);
    let second = stage.until_asked("c2").await;
    stage.answer_unheard(&second);
    stage.kill_where_it_parks().await;
    // A torn write: the answer is the last line that is whole.
    let log = std::fs::read_to_string(stage.log()).unwrap();
    let lines: Vec<&str> = log.split_inclusive('\n').collect();
    let last = lines
        .iter()
        .rposition(|line| line.contains("\"prompt_answered\""))
        .unwrap();
    std::fs::write(stage.log(), lines[..=last].concat()).unwrap();
    stage.restart();
    let expected = Expected {
        calls: &[("c1", "completed"), ("c2", "proposed"), ("c3", "proposed")],
        pending: true,
        jobs: 0,
        turn: "interrupted",
    };
    stage.check_surfaces(&expected).await;
    let again = stage.until_asked("c2").await;
    assert_eq!(again["promptId"], second["promptId"]);
    assert_ne!(
        again["approval"]["generation"],
        second["approval"]["generation"]
    );
    let (status, late) = stage.allow(&second).await;
    assert_eq!((status, &late["code"]), (409, &json!("prompt_stale")));
    assert_eq!(stage.ledger.lines(), ["c1"]);
    assert_eq!(stage.allow(&again).await.0, 204);
    let third = stage.until_asked("c3").await;
    assert_eq!(stage.answer(&third, false).await.0, 204);
    stage.idle().await;
    checked(&stage.model);
    assert_eq!(
        std::fs::read_to_string(stage.in_workspace("notes.txt")).unwrap(),
        "written by c2\n"
    );
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn tr_51_allow_after_a_restart_meets_the_barrier() {
    let mut stage = Stage::new("full", vec![]).await;
    let (began, gate) = (stage.beside("began"), stage.beside("gate"));
    let command = format!("touch {}; {}", began.display(), wait_for_file(&gate));
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("wait").await;
    until_there(&began).await;
    let attempt = text(&stage.tool("c1").await["attemptId"]);
    stage.kill();
    stage.restart();
    // `c1` runs on, so another command may be asked about.
    stage.model.push(calls([
        shell("c2", &stage.ledger.append("c2")),
        shell("c3", &stage.ledger.append("c3")),
    ]));
    stage.submit("continue").await;
    stage.until_asked("c2").await;
    stage.kill();
    let start = stage.folder().join("effects").join(attempt).join("start");
    let claim: Value = serde_json::from_slice(&std::fs::read(start).unwrap()).unwrap();
    let killed = std::process::Command::new("kill")
        .args(["-9", &claim["pid"].to_string()])
        .status();
    assert!(killed.unwrap().success());
    stage.restart();
    stage.until_tool("c1", "unknown").await;
    let asked = stage.until_asked("c2").await;
    assert_eq!(stage.allow(&asked).await.0, 204);
    stage.idle().await;
    for call in ["c2", "c3"] {
        let card = stage.tool(call).await;
        assert_eq!(card["state"], "not_started", "{card}");
        assert_eq!(card["code"], "recovery_required", "{card}");
    }
    assert_eq!(stage.ledger.lines(), Vec::<String>::new());
    checked(&stage.model);
    std::fs::write(gate, "").unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn tr_51_a_path_that_leads_elsewhere_after_a_restart_is_asked_again() {
    let mut stage = Stage::new("ask", vec![]).await;
    let link = stage.in_workspace("link");
    for name in ["one", "two"] {
        std::fs::create_dir(stage.in_workspace(name)).unwrap();
    }
    std::os::unix::fs::symlink("one", &link).unwrap();
    stage
        .model
        .push(calls([write("c1", "link/notes.txt", "new\n")]));
    stage.submit("write").await;
    let asked = stage.until_asked("c1").await;
    stage.kill();
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("two", &link).unwrap();
    stage.restart();
    let (status, body) = stage.allow(&asked).await;
    assert_eq!((status, &body["code"]), (409, &json!("prompt_stale")));
    let again = stage.until_asked("c1").await;
    assert_eq!(again["approval"]["generation"], 2, "{again}");
    assert!(!stage.in_workspace("one/notes.txt").exists());
    assert!(!stage.in_workspace("two/notes.txt").exists());
    assert_eq!(stage.allow(&again).await.0, 204);
    stage.idle().await;
    assert!(!stage.in_workspace("one/notes.txt").exists());
    assert_eq!(
        std::fs::read_to_string(stage.in_workspace("two/notes.txt")).unwrap(),
        "new\n"
    );
}
