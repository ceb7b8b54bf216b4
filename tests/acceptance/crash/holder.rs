//! The command line beside a host that holds the session: through its local socket (TR-47), and by
//! the lock once it is dead.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use holdfast_testkit::Step;
use holdfast_testkit::wait::{SOON, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::stage::{Stage, calls, shell, until_there};

impl Stage {
    /// A session with one attempt whose supervisor and command were killed: unknown.
    pub(crate) async fn with_lost_command() -> Self {
        let stage = Self::new("full", Vec::new()).await;
        let pids = stage.beside("pids");
        let command = format!(
            "echo $PPID $$ > {}.new; mv {0}.new {0}; exec sleep 600",
            pids.display()
        );
        stage.model.push(calls([shell("c1", &command)]));
        stage.model.push(Step::text("it is not known"));
        stage.submit("run it").await;
        until_there(&pids).await;
        for pid in std::fs::read_to_string(&pids).unwrap().split_whitespace() {
            let pid = Pid::from_raw(pid.parse().unwrap()).unwrap();
            kill_process(pid, Signal::KILL).unwrap();
        }
        stage.idle().await;
        stage
    }

    fn holder(&self) -> Value {
        let text = std::fs::read_to_string(self.folder().join("holder.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

#[tokio::test]
async fn tr_47_the_command_line_resolves_through_the_holders_socket() {
    let stage = Stage::with_lost_command().await;
    let attempt = stage.unresolved().await;
    let before = stage.recovery().await;

    let listed = stage.command(&["recovery", "list", "--session", &stage.session, "--json"]);
    assert_eq!(listed, before, "the holder's own snapshot, epoch and all");

    let inspected = stage.command(&["recovery", "inspect", "--session", &stage.session, "--json"]);
    assert!(inspected["calls"][0]["arguments"]["command"].is_string());
    assert_eq!(
        stage.recovery().await["calls"][0]["inspection_id"],
        inspected["calls"][0]["inspection_id"]
    );

    let left = stage.command(&["recovery", "confirm", "--session", &stage.session, "--json"]);
    assert_eq!(left["calls"], serde_json::json!([]));
    assert_eq!(left, stage.recovery().await);
    let resolved = stage
        .records()
        .into_iter()
        .rfind(|(kind, _)| kind == "resolved")
        .unwrap();
    assert_eq!(resolved.1["attempt_id"], attempt.as_str());
    assert_eq!(resolved.1["source"], "cli");

    // A refused action is told with its code, and nothing is done.
    let again = stage.try_command(&[
        "recovery",
        "dismiss",
        "--session",
        &stage.session,
        "--attempt",
        &attempt,
    ]);
    assert!(!again.status.success());
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(said.contains("[attempt_resolved]"), "{said}");
    assert_eq!(stage.count("resolved"), 1);
}

#[tokio::test]
async fn tr_50_a_job_of_another_host_is_listed_and_stopped() {
    let stage = Stage::new("full", Vec::new()).await;
    let mark = stage.beside("mark");
    let command = format!("sleep 600 & echo up > {}", mark.display());
    stage.model.push(calls([shell("c1", &command)]));
    stage.model.push(Step::text("started"));
    stage.turn("start it").await;
    let jobs = stage.command(&["jobs", "list", "--session", &stage.session, "--json"]);
    let id = jobs[0]["id"].as_str().unwrap().to_owned();
    let left = stage.command(&[
        "jobs",
        "stop",
        "--session",
        &stage.session,
        "--job",
        &id,
        "--json",
    ]);
    assert_eq!(left, serde_json::json!([]));
    stage.until_no_jobs().await;
}

#[tokio::test]
async fn c26_when_the_holder_is_dead_the_command_line_takes_the_session() {
    let mut stage = Stage::with_lost_command().await;
    let socket = PathBuf::from(stage.holder()["socket"].as_str().unwrap());
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().unwrap()), 0o700);
    stage.kill();
    assert!(socket.exists(), "a SIGKILL leaves the socket behind");
    let listed = stage.command(&["recovery", "list", "--session", &stage.session, "--json"]);
    assert_eq!(listed["statistics"]["unknown"], 1);
    // The next host removes it.
    stage.restart();
    stage.idle().await;
    until("the dead socket's end", SOON, || {
        (!socket.exists()).then_some(())
    })
    .await;
    assert_ne!(stage.holder()["socket"], socket.to_str().unwrap());
}

#[tokio::test]
async fn c26_a_holder_that_does_not_answer_changes_nothing() {
    let stage = Stage::with_lost_command().await;
    let records = stage.records().len();
    let mut holder = stage.holder();
    holder["socket"] = stage.beside("nobody").to_str().unwrap().into();
    std::fs::write(stage.folder().join("holder.json"), holder.to_string()).unwrap();
    let refused = stage.try_command(&["recovery", "dismiss", "--session", &stage.session]);
    assert!(!refused.status.success());
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("[holder_unreachable]"), "{said}");

    // One of an older version, or of a system without sockets, names itself alone.
    holder.as_object_mut().unwrap().remove("socket");
    std::fs::write(stage.folder().join("holder.json"), holder.to_string()).unwrap();
    let refused = stage.try_command(&["jobs", "list", "--session", &stage.session]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("[session_held]"), "{said}");
    assert_eq!(stage.records().len(), records);
}
