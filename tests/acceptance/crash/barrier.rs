//! The barrier after a crash (TR-19, TR-20): every new write is refused under whatever id it comes,
//! from whichever client; reading goes on, over the network too.

use holdfast_testkit::model_server::Call;
use holdfast_testkit::{ModelServer, Step};
use serde_json::json;

use super::publication::unknown_write;
use super::requests::{checked, said, told};
use super::stage::{calls, read, shell, write};
use super::surfaces::Expected;

const BLOCKED: &str = "blocked: recovery_required: inspect and resolve the previous uncertain tool \
                       effect before another write";

#[tokio::test]
async fn tr_19_an_unknown_write_blocks_every_later_one_and_tr_20_no_reading() {
    let mut stage = unknown_write().await;
    let attempt = stage.unresolved().await;
    let pages = ModelServer::start(Step::text("unused"));
    let page = format!("{}/nothing-here", pages.url());
    let fetch = json!({ "url": page }).to_string();
    stage.model.push(calls([
        write("w1", "notes.txt", "the new content\n"),
        read("r1", "notes.txt"),
        Call::new("g1", "grep", r#"{"pattern":"new content"}"#),
        Call::new("f1", "fetch", &fetch),
        shell("s1", &stage.ledger.append("s1")),
    ]));
    // Once more in the same turn, under another id.
    stage
        .model
        .push(calls([write("w2", "other.txt", "other\n")]));
    stage.turn("try everything").await;
    let messages = checked(&stage.model);
    for call in ["w1", "s1", "w2"] {
        let text = told(&messages, call);
        assert_eq!(text.lines().next(), Some(BLOCKED), "{call}");
        assert!(text.contains(&attempt), "the attempt is named: {text}");
    }
    assert!(told(&messages, "r1").contains("the new content"));
    assert!(told(&messages, "g1").contains("notes.txt"));
    assert!(
        told(&messages, "f1").contains("404"),
        "{}",
        told(&messages, "f1")
    );
    assert_eq!(stage.ledger.lines(), Vec::<String>::new());
    assert!(!stage.in_workspace("other.txt").exists());

    // Nor does another turn, another client or another host get around it.
    stage.restart();
    stage
        .model
        .push(calls([write("w3", "other.txt", "other\n")]));
    stage.turn("again").await;
    assert!(told(&checked(&stage.model), "w3").starts_with(BLOCKED));
    assert_eq!(stage.recovery().await["statistics"]["blocked"], 4);
    let expected = Expected {
        calls: &[
            ("c1", "unknown"),
            ("w1", "not_started"),
            ("r1", "completed"),
            ("g1", "completed"),
            ("f1", "completed"),
            ("s1", "not_started"),
            ("w2", "not_started"),
            ("w3", "not_started"),
        ],
        pending: false,
        jobs: 0,
        turn: "completed",
    };
    stage.check_surfaces(&expected).await;
    stage.check_command_line(&expected);
    assert_eq!(stage.count("receipt"), 4, "refused calls have none");
}

#[tokio::test]
async fn tr_19_the_barrier_is_one_sessions_own() {
    let stage = unknown_write().await;
    let created = stage
        .client()
        .post_ok("/sessions", &json!({ "mode": "full" }))
        .await;
    let other = created["sessionId"].as_str().unwrap();
    stage
        .model
        .push(calls([write("w1", "other.txt", "other\n")]));
    let submit = format!("/submit?session={other}");
    stage
        .client()
        .post_ok(&submit, &json!({ "input": "write" }))
        .await;
    holdfast_testkit::wait::until("the write", holdfast_testkit::wait::SOON, || {
        stage.in_workspace("other.txt").exists().then_some(())
    })
    .await;
    assert_eq!(stage.recovery().await["statistics"]["unknown"], 1);
}

#[tokio::test]
async fn tr_39_going_on_afterwards_is_an_ordinary_turn_with_its_note() {
    let stage = unknown_write().await;
    let attempt = stage.unresolved().await;
    let (status, _) = stage.resolve("dismiss", &attempt, "").await;
    assert_eq!(status, 200);
    let go_on = async |call: &str, input: &str| {
        let before = stage.records().len();
        let path = format!("{call}.txt");
        stage.model.push(calls([write(call, &path, "x\n")]));
        stage.model.push(Step::text("done"));
        stage.turn(input).await;
        let records = stage.records().split_off(before);
        records
            .into_iter()
            .map(|(kind, _)| kind)
            .collect::<Vec<_>>()
    };
    let afterwards = go_on("w1", "Continue").await;
    let notes = || {
        let said = said(&checked(&stage.model));
        said.iter()
            .filter(|text| text.contains("[host note]"))
            .count()
    };
    assert_eq!(notes(), 1, "the model is told what the person decided");
    // The next one has nothing behind it, and leaves the same records.
    let ordinary = go_on("w2", "And more").await;
    let (closing, turn) = afterwards.split_at(2);
    assert_eq!(closing, ["synthetic_result", "host_note"]);
    assert_eq!(turn, ordinary, "no path of its own");
    assert_eq!(notes(), 1);
    for call in ["w1", "w2"] {
        assert!(stage.in_workspace(&format!("{call}.txt")).exists());
    }
}
