//! What is left of a command that nobody can vouch for: named, counted, in the way of a resolution
//! while it lives, and stoppable where the system allows it (SV-04, C38).

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

use holdfast_testkit::HostOptions;
use holdfast_testkit::wait::{SOON, until, until_asked};
use serde_json::{Value, json};

use super::commands::{gated, only_attempt, open};
use super::requests::{checked, told};
use super::stage::{Stage, calls, serve, shell, signal, text, until_there, write};
use super::surfaces::Expected;

/// Living processes that carry an attempt's id: pid and name.
pub(crate) fn carriers(attempt: &str) -> Vec<(u32, String)> {
    let wanted = format!("HOLDFAST_ATTEMPT_ID={attempt}");
    let read = |pid: u32, name: &str| std::fs::read(format!("/proc/{pid}/{name}")).ok();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid: u32| {
            let environment = read(pid, "environ")?;
            let carries = environment
                .split(|byte| *byte == 0)
                .any(|variable| variable == wanted.as_bytes());
            let name = String::from_utf8(read(pid, "comm")?).ok()?;
            carries.then(|| (pid, name.trim().to_owned()))
        })
        .collect()
}

/// While it lives, nobody can say that it is over.
async fn check_held(stage: &Stage, attempt: &str) {
    let record = stage.inspect(attempt).await;
    assert_eq!(record["inspection_state"], "unknown", "{record}");
    assert_eq!(record["inspection_evidence"]["process"]["alive"], true);
    let id = text(&record["inspection_id"]);
    for action in ["confirm", "reject", "dismiss"] {
        let (status, body) = stage.resolve(action, attempt, &id).await;
        assert_eq!((status, &body["code"]), (409, &json!("executor_alive")));
    }
    stage.model.push(calls([write("blocked", "no.txt", "no")]));
    stage.turn("write").await;
    let refused = stage.tool("blocked").await;
    assert_eq!(refused["code"], "recovery_required", "{refused}");
}

async fn check_dismissed(stage: &Stage, attempt: &str) {
    let (status, body) = stage.resolve("dismiss", attempt, "").await;
    assert_eq!(status, 200, "{body}");
    stage.model.push(calls([write("after", "yes.txt", "yes")]));
    stage.turn("write").await;
    assert_eq!(stage.tool("after").await["state"], "completed");
    assert_eq!(stage.tool("c1").await["state"], "user_dismissed");
}

#[tokio::test]
async fn sv_04_what_a_lost_supervisor_left_is_a_job_that_can_be_stopped() {
    let mut stage = Stage::new("full", vec![]).await;
    let command = gated(&stage);
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("do it").await;
    until_there(&stage.beside("began")).await;
    let attempt = only_attempt(&stage);
    let supervisor = stage.supervisor_of(&attempt);
    stage.kill();
    signal(supervisor, "KILL");
    stage.restart();
    stage
        .check_surfaces(&Expected {
            calls: &[("c1", "unknown")],
            pending: false,
            jobs: 1,
            turn: "interrupted",
        })
        .await;
    let jobs = stage.get("/jobs").await;
    assert_eq!(jobs[0]["kind"], "stragglers", "{jobs}");
    assert_eq!(jobs[0]["id"], attempt);
    check_held(&stage, &attempt).await;

    // A restart finds it again.
    stage.restart();
    assert_eq!(stage.get("/jobs").await[0]["kind"], "stragglers");
    assert!(!carriers(&attempt).is_empty());
    let (status, body) = stage.post("/jobs/cancel", &json!({ "id": attempt })).await;
    assert_eq!(status, 202, "{body}");
    stage.until_no_jobs().await;
    assert_eq!(carriers(&attempt), vec![]);
    let tool = stage.tool("c1").await;
    assert_eq!(
        tool["state"], "unknown",
        "its end says nothing of its effect"
    );
    check_dismissed(&stage, &attempt).await;
    assert_eq!(stage.ledger.lines(), Vec::<String>::new());
}

#[tokio::test]
async fn sv_04_a_supervisor_that_dies_under_its_host_leaves_a_job_too() {
    let stage = Stage::new("full", vec![]).await;
    let command = gated(&stage);
    stage.model.push(calls([shell("c1", &command)]));
    stage.submit("do it").await;
    until_there(&stage.beside("began")).await;
    let attempt = only_attempt(&stage);
    signal(stage.supervisor_of(&attempt), "KILL");
    stage.idle().await;
    let tool = stage.tool("c1").await;
    assert_eq!(tool["state"], "unknown");
    let answer = told(&checked(&stage.model), "c1");
    assert!(answer.contains("is unknown"), "{answer}");
    assert_eq!(stage.get("/jobs").await[0]["kind"], "stragglers");
    let (status, body) = stage.resolve("dismiss", &attempt, "").await;
    assert_eq!((status, &body["code"]), (409, &json!("executor_alive")));
    // It ends by itself, and its count with it.
    open(stage.beside("effect-gate"));
    open(stage.beside("end-gate"));
    stage.until_no_jobs().await;
    assert_eq!(stage.ledger.lines(), ["effect"]);
    check_dismissed(&stage, &attempt).await;
}

#[tokio::test]
async fn sv_04_survivors_whose_supervisor_is_lost_stay_a_job_and_can_be_stopped() {
    let mut stage = Stage::new("full", vec![]).await;
    stage
        .model
        .push(calls([shell("c1", "sleep 600 & echo up")]));
    stage.turn("start it").await;
    assert_eq!(stage.tool("c1").await["state"], "completed");
    let attempt = only_attempt(&stage);
    signal(stage.supervisor_of(&attempt), "KILL");
    for _ in 0..2 {
        let jobs = stage.get("/jobs").await;
        assert_eq!(jobs[0]["kind"], "survivors", "{jobs}");
        assert_eq!(carriers(&attempt).len(), 1);
        stage.restart();
    }
    let (status, _) = stage.post("/jobs/cancel", &json!({ "id": attempt })).await;
    assert_eq!(status, 202);
    stage.until_no_jobs().await;
    assert_eq!(carriers(&attempt), vec![]);
    assert_eq!(stage.tool("c1").await["state"], "completed");
}

/// The user that owns nothing.
const NOBODY: u32 = 65534;

/// A host of an unprivileged user, and a stand-in for sudo at `become-root`. `None`, with the reason
/// printed, where that can't be set up.
async fn unprivileged() -> Option<Stage> {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|meta| {
        use std::os::unix::fs::MetadataExt;
        meta.uid() == 0
    });
    let setpriv = Path::new("/usr/bin/setpriv");
    if !is_root || !setpriv.exists() {
        eprintln!("not run: only root can set up a process that its host may not signal");
        return None;
    }
    let stage = Stage::prepared("full", "", vec![], |root| {
        let mode = |path: &Path, mode| {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        };
        let copy = |from: &Path, name: &str, bits| {
            let to = root.join(name);
            std::fs::copy(from, &to).unwrap();
            mode(&to, bits);
            to
        };
        copy(setpriv, "become-root", 0o4755);
        let mut options = serve(root);
        let host = copy(&options.binary, "holdfast", 0o755);
        let supervisor = PathBuf::from(&options.env["HOLDFAST_SUPERVISOR"]);
        let supervisor = copy(&supervisor, "holdfast-supervisor", 0o755);
        for own in ["", "data", "data/config.toml", "workspace"] {
            chown(root.join(own), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        mode(root, 0o755);
        let user = NOBODY.to_string();
        let drop = ["--reuid", &user, "--regid", &user, "--clear-groups"];
        options.arguments = drop
            .into_iter()
            .map(str::to_owned)
            .chain([host.to_string_lossy().into_owned()])
            .chain(options.arguments)
            .collect();
        options.binary = setpriv.to_owned();
        HostOptions { ..options }
            .env("HOME", &root.to_string_lossy())
            .env("XDG_RUNTIME_DIR", "")
            .env("HOLDFAST_SUPERVISOR", &supervisor.to_string_lossy())
    })
    .await;
    Some(stage)
}

/// Everything that a person or a model is shown of the session.
async fn all_words(stage: &Stage) -> String {
    let mut words = json!(stage.transcript().await).to_string();
    words.push_str(&stage.recovery().await.to_string());
    let sent: Vec<Value> = stage
        .model
        .requests()
        .iter()
        .map(|r| r.json.clone())
        .collect();
    words.push_str(&json!(sent).to_string());
    words
}

#[tokio::test]
async fn c38_what_may_not_be_signalled_is_named_and_in_the_way_until_it_has_ended() {
    let Some(mut stage) = unprivileged().await else {
        return;
    };
    let become_root = stage.beside("become-root");
    let command = format!("'{}' --reuid 0 sleep 600", become_root.display());
    stage.model.push(calls([shell("c1", &command)]));
    let turn = stage.submit("as root").await;
    let attempt = until("the attempt", SOON, || {
        (stage.count("tool_started") == 1).then(|| only_attempt(&stage))
    })
    .await;
    let straggler = until("root's sleep", SOON, || {
        let (pid, _) = carriers(&attempt)
            .into_iter()
            .find(|(_, name)| name == "sleep")?;
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        status.contains("Uid:\t0\t0").then_some(pid)
    })
    .await;

    let (status, body) = stage.post("/cancel", &json!({ "turnId": turn })).await;
    assert_eq!(status, 202, "{body}");
    stage.idle().await;
    let name = format!("sleep (pid {straggler})");
    let tool = stage.tool("c1").await;
    assert_eq!(tool["state"], "unknown", "{tool}");
    assert!(text(&tool["effectSummary"]).contains(&name), "{tool}");
    let expected = Expected {
        calls: &[("c1", "unknown")],
        pending: false,
        jobs: 1,
        turn: "cancelled",
    };
    stage.check_surfaces(&expected).await;
    check_held(&stage, &attempt).await;

    // A stop is tried again, says that it failed, and the job stays.
    let events = stage.client().events(&stage.route("/events"), None).await;
    let (status, _) = stage.post("/jobs/cancel", &json!({ "id": attempt })).await;
    assert_eq!(status, 202);
    events
        .wait_for_frame("the failure of the stop", SOON, |frame| {
            frame.kind() == "notice" && frame.data["code"] == "job_stop_failed"
        })
        .await;
    let jobs = stage.get("/jobs").await;
    assert_eq!(
        (&jobs[0]["kind"], &jobs[0]["stopping"]),
        (&json!("stragglers"), &json!(false))
    );

    // Over a restart the same.
    stage.restart();
    assert_eq!(stage.get("/jobs").await[0]["kind"], "stragglers");
    check_held_without_write(&stage, &attempt, straggler).await;
    let words = all_words(&stage).await;
    for claim in ["interrupted", "effects may be partial"] {
        let told = words.replace("\"turnStatus\":\"interrupted\"", "");
        assert!(!told.contains(claim), "{claim}: {words}");
    }

    // Only root can end it; then the way is free.
    signal(straggler, "KILL");
    stage.until_no_jobs().await;
    let tool = stage.tool("c1").await;
    assert_eq!(
        tool["state"], "unknown",
        "its end says nothing of its effect"
    );
    until_asked("the dismissal", SOON, async || {
        let (status, _) = stage.resolve("inspect", &attempt, "").await;
        (status == 200).then_some(())
    })
    .await;
    check_dismissed(&stage, &attempt).await;
}

async fn check_held_without_write(stage: &Stage, attempt: &str, straggler: u32) {
    let record = stage.inspect(attempt).await;
    let process = &record["inspection_evidence"]["process"];
    assert_eq!(process["alive"], true, "{record}");
    let named: Vec<u64> = process["stragglers"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|process| process["pid"].as_u64())
        .collect();
    assert_eq!(named, [u64::from(straggler)]);
    let (status, body) = stage.resolve("dismiss", attempt, "").await;
    assert_eq!((status, &body["code"]), (409, &json!("executor_alive")));
}
