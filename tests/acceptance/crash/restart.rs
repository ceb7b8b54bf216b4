//! The restart itself: killed in it, with calls that only read, with batches that were cut short,
//! and with effect folders that the log does not know.

use std::fmt::Debug;
use std::net::TcpListener;

use holdfast_testkit::TestClient;
use holdfast_testkit::model_server::Call;
use holdfast_testkit::wait::{SOON, until};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::publication::unknown_write;
use super::requests::{checked, told};
use super::stage::{Stage, calls, read, shell, text, until_there, write};
use super::surfaces::Expected;

/// Kills the host twice where recovery begins, and then behind each record that it stores, until a
/// host comes through.
async fn kill_in_recovery(stage: &mut Stage) -> usize {
    for _ in 0..2 {
        stage.restart_stopping_at("recovery_begun", 1);
        let answer = open_unheard(stage);
        stage.kill_where_it_parks().await;
        assert!(answer.await.unwrap().is_err(), "nobody is answered before");
    }
    for killed in 0..10 {
        stage.restart_stopping_at("recovery_half", 1);
        // Either the host parks, and the answer never comes, or it comes.
        let answered = open_unheard(stage);
        let parked = until("an answer, or the stop point", SOON, || {
            if stage.has_parked() {
                return Some(true);
            }
            answered.is_finished().then_some(false)
        })
        .await;
        stage.kill();
        if !parked {
            return killed;
        }
    }
    panic!("recovery never came to its end");
}

/// Asks for the session, which opens it.
fn open_unheard(stage: &Stage) -> JoinHandle<Result<(u16, Value), impl Debug + use<>>> {
    let client = stage.client();
    let opened = client.request("GET".parse().unwrap(), &stage.route("/status"));
    tokio::spawn(TestClient::send(opened))
}

#[tokio::test]
async fn c05_killed_in_the_recovery_of_a_write() {
    let mut stage = Stage::new("full", vec![calls([write("c1", "a.txt", "new\n")])]).await;
    stage.restart_stopping_at("after_rename", 1);
    stage.submit("write").await;
    stage.kill_where_it_parks().await;
    let killed = kill_in_recovery(&mut stage).await;
    assert!(killed >= 2, "killed behind {killed} records only");
    stage.restart();
    let expected = Expected {
        calls: &[("c1", "completed")],
        pending: false,
        jobs: 0,
        turn: "interrupted",
    };
    stage.check_surfaces(&expected).await;
    for kind in ["restarted", "tool_result", "turn_ended", "receipt"] {
        assert_eq!(stage.count(kind), 1, "{kind}");
    }
    check_usable(&mut stage, "c1", "completed").await;
    assert_eq!(
        std::fs::read_to_string(stage.in_workspace("a.txt")).unwrap(),
        "new\n"
    );
}

#[tokio::test]
async fn c05_killed_in_the_recovery_of_a_write_that_did_not_happen() {
    let mut stage = Stage::new("full", vec![calls([write("c1", "a.txt", "new\n")])]).await;
    stage.restart_stopping_at("after_claim", 1);
    stage.submit("write").await;
    stage.kill_where_it_parks().await;
    let killed = kill_in_recovery(&mut stage).await;
    assert!(killed >= 2, "killed behind {killed} records only");
    stage.restart();
    stage.until_tool("c1", "not_started").await;
    for kind in ["restarted", "not_started", "turn_ended", "receipt"] {
        assert_eq!(stage.count(kind), 1, "{kind}");
    }
    check_usable(&mut stage, "c1", "not_started").await;
    assert!(!stage.in_workspace("a.txt").exists());
}

#[tokio::test]
async fn c05_killed_in_the_recovery_of_a_command() {
    let mut stage = Stage::new("full", vec![]).await;
    let command = format!("{}; echo written", stage.ledger.append("x"));
    stage.model.push(calls([shell("c1", &command)]));
    stage.restart_stopping_at("tool_ended", 1);
    stage.submit("write").await;
    stage.kill_where_it_parks().await;
    let killed = kill_in_recovery(&mut stage).await;
    assert!(killed >= 2, "killed behind {killed} records only");
    stage.restart();
    let tool = stage.until_tool("c1", "completed").await;
    assert_eq!(tool["resultSource"], "recovered");
    for kind in ["restarted", "tool_result", "turn_ended", "receipt"] {
        assert_eq!(stage.count(kind), 1, "{kind}");
    }
    stage.until_no_jobs().await;
    check_usable(&mut stage, "c1", "completed").await;
    assert_eq!(stage.ledger.lines(), ["x"]);
}

/// Another write works, on all surfaces.
async fn check_usable(stage: &mut Stage, call: &str, state: &str) {
    stage.model.push(calls([write("next", "b.txt", "next\n")]));
    stage.turn("continue").await;
    checked(&stage.model);
    let expected = Expected {
        calls: &[(call, state), ("next", "completed")],
        pending: false,
        jobs: 0,
        turn: "completed",
    };
    stage.check_surfaces(&expected).await;
    stage.check_command_line(&expected);
}

#[tokio::test]
async fn c06_parallel_reads_of_which_one_had_its_result() {
    let batch = calls([
        read("r1", "one.txt"),
        read("r2", "two.txt"),
        read("r3", "three.txt"),
    ]);
    let mut stage = Stage::new("full", vec![batch]).await;
    for name in ["one", "two", "three"] {
        std::fs::write(stage.in_workspace(&format!("{name}.txt")), name).unwrap();
    }
    stage.restart_stopping_at("result_durable", 1);
    stage.submit("read them").await;
    stage.kill_where_it_parks().await;
    assert_eq!(stage.count("tool_started"), 3);
    assert_eq!(stage.count("tool_result"), 1);
    stage.restart();
    let states: Vec<String> = stage
        .tools()
        .await
        .values()
        .map(|tool| text(&tool["state"]))
        .collect();
    let with = |state: &str| states.iter().filter(|own| *own == state).count();
    assert_eq!((with("completed"), with("cancelled")), (1, 2), "{states:?}");
    assert_eq!(stage.recovery().await["calls"], json!([]));
    stage.turn("continue").await;
    let messages = checked(&stage.model);
    for call in ["r1", "r2", "r3"] {
        told(&messages, call);
    }
}

#[tokio::test]
async fn c06_a_batch_of_writes_of_which_one_had_its_result() {
    let mut stage = Stage::new("full", vec![]).await;
    let batch = ["s1", "s2", "s3"].map(|call| shell(call, &stage.ledger.append(call)));
    stage.model.push(calls(batch));
    stage.restart_stopping_at("result_durable", 1);
    stage.submit("write them").await;
    stage.kill_where_it_parks().await;
    stage.restart();
    let expected = Expected {
        calls: &[("s1", "completed"), ("s2", "proposed"), ("s3", "proposed")],
        pending: false,
        jobs: 0,
        turn: "interrupted",
    };
    stage.check_surfaces(&expected).await;
    stage.turn("continue").await;
    let messages = checked(&stage.model);
    assert!(told(&messages, "s1").contains("exit status 0"));
    for call in ["s2", "s3"] {
        assert!(told(&messages, call).starts_with("not started"));
    }
    stage.check_command_line(&Expected {
        calls: &[
            ("s1", "completed"),
            ("s2", "not_started"),
            ("s3", "not_started"),
        ],
        turn: "completed",
        ..expected
    });
    assert_eq!(stage.ledger.lines(), ["s1"]);
}

#[tokio::test]
async fn tr_14_a_call_that_only_reads_is_cancelled_and_blocks_nothing() {
    // A server that takes the connection and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let arguments = json!({ "url": url }).to_string();
    let step = calls([Call::new("f1", "fetch", &arguments)]);
    let mut stage = Stage::new("full", vec![step]).await;
    silent.set_nonblocking(true).unwrap();
    stage.submit("fetch it").await;
    let connection = until("the connection", SOON, || silent.accept().ok()).await;
    stage.kill();
    drop(connection);
    stage.restart();
    let expected = Expected {
        calls: &[("f1", "cancelled")],
        pending: false,
        jobs: 0,
        turn: "interrupted",
    };
    stage.check_surfaces(&expected).await;
    stage.model.push(calls([write("w1", "a.txt", "a\n")]));
    stage.turn("continue").await;
    let messages = checked(&stage.model);
    let told = told(&messages, "f1");
    assert!(told.starts_with("cancelled"), "{told}");
    stage.check_command_line(&Expected {
        calls: &[("f1", "cancelled"), ("w1", "completed")],
        turn: "completed",
        ..expected
    });
}

#[tokio::test]
async fn tr_14_an_effect_folder_that_the_log_does_not_know_is_an_unknown_attempt() {
    let mut stage = Stage::new("full", vec![]).await;
    stage.turn("hello").await;
    stage.kill();
    let orphan = "0123456789abcdef0123456789abcdef";
    let folder = stage.folder().join("effects").join(orphan);
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("output"), "something ran here\n").unwrap();
    stage.restart();
    assert_eq!(stage.status().await["runtimeState"]["unresolved"], 1);
    assert_eq!(stage.unresolved().await, orphan);
    let list = stage.client().get_ok("/sessions").await;
    assert_eq!(list["items"][0]["state"]["unresolved"], 1);
    let record = stage.inspect(orphan).await;
    assert_eq!(record["inspection_state"], "unknown");

    stage.model.push(calls([write("w1", "a.txt", "a\n")]));
    stage.turn("write").await;
    assert!(told(&checked(&stage.model), "w1").contains(orphan));
    let (status, body) = stage.resolve("dismiss", orphan, "").await;
    assert_eq!(status, 200, "{body}");
    stage.model.push(calls([write("w2", "a.txt", "a\n")]));
    stage.turn("write again").await;
    checked(&stage.model);
    assert_eq!(stage.tool("w2").await["state"], "completed");
    for _ in 0..2 {
        stage.restart();
        assert_eq!(stage.status().await["runtimeState"]["unresolved"], 0);
        assert_eq!(
            std::fs::read_to_string(folder.join("output")).unwrap(),
            "something ran here\n",
            "it is never deleted"
        );
    }
    assert_eq!(stage.count("attempt_presumed"), 1);
}

#[tokio::test]
async fn tr_18_open_sessions_are_looked_after_without_being_asked_for() {
    let mut stage = Stage::new("full", vec![]).await;
    let gate = stage.beside("gate");
    let began = stage.beside("began");
    let command = format!(
        "touch {}; {}",
        began.display(),
        super::stage::wait_for_file(&gate)
    );
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("wait").await;
    until_there(&began).await;
    stage.restart();
    std::fs::write(gate, "").unwrap();
    // Nobody asks this host for anything: the log tells of the end.
    until("the result", SOON, || {
        (stage.count("tool_result") == 1).then_some(())
    })
    .await;
    assert_eq!(stage.until_tool("c1", "completed").await["exitCode"], 0);
}

#[tokio::test]
async fn tr_26_a_second_restart_finds_nothing_new() {
    let mut stage = unknown_write().await;
    let before = (stage.recovery().await, stage.records().len());
    stage.restart();
    let mut after = stage.recovery().await;
    assert_ne!(after["runtimeEpoch"], before.0["runtimeEpoch"]);
    for field in ["runtimeEpoch", "revision"] {
        after[field] = before.0[field].clone();
    }
    assert_eq!((after, stage.records().len()), before);
}
