//! Writes through the host: a file's checkpoint in the session's log and where it stands (TR-17),
//! and Stop while a write is under way (C39).

use std::collections::BTreeMap;

use holdfast_api::event::Event;
use holdfast_domain::canonical::sha256_hex;
use holdfast_domain::transcript::record::{FileCheckpoint, Receipt, Record, ToolStarted};

use holdfast_testkit::wait::scaled;

use crate::bench::{Bench, Session};
use crate::script::write;

/// Each line of the log with its record and the digest of all bytes before it.
fn lines(session: &Session) -> Vec<(Record, String)> {
    let bytes = session.log_bytes();
    let mut at = 0;
    bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(|line| {
            let value: serde_json::Value = serde_json::from_slice(line).unwrap();
            let payload = value["payload"].to_string();
            let record = Record::parse(value["kind"].as_str().unwrap(), &payload);
            let before = sha256_hex(&bytes[..at]);
            at += line.len();
            (record, before)
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tr_17_the_first_writer_of_a_file_binds_itself_and_the_log_so_far() {
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    std::fs::create_dir(bench.workspace().join("dir")).unwrap();
    // Two names of one file, a second file, and a call that is refused and so binds nothing.
    for calls in [
        vec![("write_file", write("dir/a", "one"))],
        vec![
            ("write_file", write("dir/../dir/a", "two")),
            ("write_file", write("b", "three")),
            ("write_file", write("../outside", "no")),
        ],
    ] {
        let calls: Vec<(&str, &str)> = calls.iter().map(|(tool, text)| (*tool, &**text)).collect();
        bench.script.calls(&calls);
        session.turn("go").await;
    }
    // A later host goes on from what the log says.
    session.host.close().await;
    let mut session = bench.of(bench.host(), &session.id);
    bench.script.calls(&[("write_file", &write("b", "four"))]);
    session.turn("go on").await;
    bench.script.calls(&[("write_file", &write("c", "five"))]);
    session.turn("go on").await;

    let lines = lines(&session);
    let mut bound: BTreeMap<String, FileCheckpoint> = BTreeMap::new();
    for (place, (record, before)) in lines.iter().enumerate() {
        let Record::FileCheckpoint(checkpoint) = record else {
            continue;
        };
        assert_eq!(&checkpoint.log_sha256, before, "record {place}");
        // Between the writer's receipt and its start, so that no write is without it.
        let Record::Receipt(Receipt { identity, file, .. }) = &lines[place - 1].0 else {
            panic!("{:?} before a checkpoint", lines[place - 1].0)
        };
        let Record::ToolStarted(ToolStarted { attempt_id, .. }) = &lines[place + 1].0 else {
            panic!("{:?} behind a checkpoint", lines[place + 1].0)
        };
        assert_eq!(checkpoint.attempt_id, identity.attempt_id);
        assert_eq!(&checkpoint.attempt_id, attempt_id);
        let intent = file.as_ref().unwrap();
        assert_eq!(checkpoint.resolved_path, intent.resolved_path);
        assert!(!intent.existed, "the first writers all made their file");
        let again = bound.insert(checkpoint.resolved_path.clone(), checkpoint.clone());
        assert_eq!(again, None, "a second writer does not rebind");
    }
    let root = std::fs::canonicalize(bench.workspace()).unwrap();
    let wanted: Vec<String> = ["b", "c", "dir/a"]
        .map(|name| root.join(name).to_string_lossy().into_owned())
        .into();
    assert_eq!(bound.keys().cloned().collect::<Vec<_>>(), wanted);
    let receipts = lines
        .iter()
        .filter(|(record, _)| matches!(record, Record::Receipt(_)));
    assert_eq!(receipts.count(), 5);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn c39_a_write_that_is_stopped_is_whole_or_absent_and_says_which() {
    const BYTES: usize = 512 * 1024;
    let bench = Bench::new();
    let mut session = bench.session("full").await;
    let content = |step: usize| format!("{step} ").repeat(BYTES / 4);
    let file = bench.workspace().join("a");
    for step in 0..scaled(8) {
        let before = std::fs::read_to_string(&file).ok();
        bench
            .script
            .calls(&[("write_file", &write("a", &content(step)))]);
        session.submit("write").await;
        session
            .until("the write", |event| {
                matches!(event, Event::ToolStarted { .. })
            })
            .await;
        // A little later each time.
        for _ in 0..step % 6 {
            session.status().await;
        }
        session.stop().await;
        session.until_done().await;
        session.idle().await;
        let tool = session.tools().await.pop().unwrap();
        let now = std::fs::read_to_string(&file).ok();
        let is_new = now.as_deref() == Some(&*content(step));
        match tool.state.as_str() {
            "completed" => assert!(is_new, "step {step}"),
            "failed" | "not_started" => assert!(now == before && !is_new, "step {step}"),
            other => panic!("step {step}: {other}"),
        }
        let names = std::fs::read_dir(bench.workspace()).unwrap().count();
        assert_eq!(names, usize::from(now.is_some()), "step {step}");
        // What a model was to say of it is not asked any more.
        bench.script.forget();
    }
    assert_eq!(session.recovery().await.calls, []);
}
