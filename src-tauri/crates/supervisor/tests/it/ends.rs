//! Stop, timeout and SIGTERM: the whole tree ends, and the receipt proves it (SV-03, TR-11).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{EndedBy, ProcessEvidence, TreeProof, outcome_of};
use holdfast_supervisor::{Attachment, Progress, read_end, request_stop};
use rustix::process::Signal;

use crate::stage::{Stage, binary, ended, lines, lives, next, pids, root, signal, until};

const STUBBORN: &str = r#"trap "" TERM
sleep 600 & echo $! >> pids
setsid sleep 600 & echo $! >> pids
echo $$ >> pids
sleep 600"#;

#[tokio::test]
async fn sv_03_stop_leaves_nothing_of_a_tree_that_ignores_term() {
    let stage = Stage::new();
    let mut request = stage.request(STUBBORN);
    request.grace_ms = 200;
    let mut attachment = stage.start(&request);
    let pids = pids(&stage.work("pids"), 3);
    assert!(pids.iter().all(|pid| lives(*pid)));
    attachment.stop().unwrap();
    let (_, receipt) = ended(&mut attachment).await;
    let left: Vec<_> = pids.iter().filter(|pid| lives(**pid)).collect();
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(
        (receipt.ended_by, receipt.tree_proof),
        (EndedBy::Stop, TreeProof::Full)
    );
    assert_eq!((receipt.code, receipt.signal), (None, Some(9)));
    assert!(receipt.stragglers.is_empty() && receipt.survivors.is_empty());
    assert_eq!(next(&mut attachment).await, Progress::Gone);
}

#[tokio::test]
async fn tr_11_a_proven_stop_is_interrupted_and_its_words_are_kept() {
    let stage = Stage::new();
    let mut request =
        stage.request("trap 'echo bye; exit 7' TERM; echo ready; while :; do sleep 0.02; done");
    // Nothing but the command's own obedience ends it before the test's deadline.
    request.grace_ms = 600_000;
    let mut attachment = stage.start(&request);
    assert_eq!(
        next(&mut attachment).await,
        Progress::Output(b"ready\n".to_vec())
    );
    attachment.stop().unwrap();
    let (output, receipt) = ended(&mut attachment).await;
    // Before it, the shell may have said that its `sleep` was terminated.
    assert!(output.ends_with("bye\n"), "{output}");
    assert_eq!(receipt.code, Some(7));
    assert_eq!(receipt.ended_by, EndedBy::Stop);
    let outcome = outcome_of(&receipt);
    assert_eq!(outcome.state, AttemptState::Interrupted);
    assert_eq!(outcome.effect_summary, "effects may be partial");
}

#[tokio::test]
async fn sv_03_a_process_that_keeps_giving_birth_is_ended() {
    let stage = Stage::new();
    // Each generation ignores TERM, starts the next one in a session of its own, and ends.
    let script = stage.work("hop");
    fs::write(
        &script,
        "#!/bin/sh\ntrap '' TERM\necho x >> births\nsetsid \"$0\" &\n",
    )
    .unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o700)).unwrap();
    let mut request = stage.request("./hop; sleep 600");
    request.grace_ms = 50;
    let mut attachment = stage.start(&request);
    lines(&stage.work("births"), 20);
    attachment.stop().unwrap();
    let (_, receipt) = ended(&mut attachment).await;
    assert_eq!(
        (receipt.ended_by, receipt.tree_proof),
        (EndedBy::Stop, TreeProof::Full)
    );
    assert!(
        holdfast_supervisor::stragglers(&request.attempt_id)
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn sv_03_a_stopped_process_is_ended_within_the_grace() {
    let stage = Stage::new();
    let mut request = stage.request("echo $$ > pids; kill -STOP $$; sleep 600");
    // Only TERM and CONT can end it before the test's deadline.
    request.grace_ms = 600_000;
    let mut attachment = stage.start(&request);
    let pid = pids(&stage.work("pids"), 1)[0];
    until("it is stopped", || {
        fs::read_to_string(format!("/proc/{pid}/stat"))
            .ok()?
            .contains(") T ")
            .then_some(())
    });
    attachment.stop().unwrap();
    let (_, receipt) = ended(&mut attachment).await;
    assert_eq!(
        (receipt.signal, receipt.tree_proof),
        (Some(15), TreeProof::Full)
    );
}

#[tokio::test]
async fn sv_03_a_timeout_ends_the_tree() {
    let stage = Stage::new();
    let mut request = stage.request("sleep 600 & sleep 600");
    request.timeout_ms = Some(300);
    let (_, receipt) = stage.run(&request).await;
    assert_eq!(
        (receipt.ended_by, receipt.tree_proof),
        (EndedBy::Timeout, TreeProof::Full)
    );
    assert_eq!(receipt.signal, Some(15));
    assert!(
        holdfast_supervisor::stragglers(&request.attempt_id)
            .unwrap()
            .is_empty()
    );
}

#[tokio::test]
async fn sv_05_sigterm_to_the_supervisor_ends_the_tree_as_external() {
    let stage = Stage::new();
    let request = stage.request("sleep 600 & echo $! > pids; sleep 600");
    let mut attachment = stage.start(&request);
    let pid = pids(&stage.work("pids"), 1)[0];
    signal(stage.supervisor_of(&request), Signal::TERM);
    let (_, receipt) = ended(&mut attachment).await;
    assert_eq!(
        (receipt.ended_by, receipt.tree_proof),
        (EndedBy::External, TreeProof::Full)
    );
    assert!(!lives(pid));
}

#[tokio::test]
async fn sv_07_the_stop_file_does_what_the_socket_does() {
    let stage = Stage::new();
    let mut request = stage.request("echo ready; sleep 600");
    request.runtime_folder = None;
    let mut attachment = stage.start(&request);
    assert_eq!(
        next(&mut attachment).await,
        Progress::Output(b"ready\n".to_vec())
    );
    request_stop(&stage.folder(&request)).unwrap();
    request_stop(&stage.folder(&request)).unwrap();
    let (_, receipt) = ended(&mut attachment).await;
    assert_eq!(
        (receipt.ended_by, receipt.tree_proof),
        (EndedBy::Stop, TreeProof::Full)
    );
}

#[tokio::test]
async fn a_stop_before_the_start_starts_nothing() {
    let stage = Stage::new();
    let request = stage.request("echo ran > ledger");
    let folder = stage.prepare(&request);
    request_stop(&folder).unwrap();
    let child = holdfast_supervisor::launch(binary(), &folder).unwrap();
    let mut attachment = Attachment::attach(stage.target(&request), Some(child), 0);
    assert_eq!(next(&mut attachment).await, Progress::NotStarted);
    assert!(!stage.work("ledger").exists());
}

#[tokio::test]
async fn c38_a_process_that_may_not_be_signalled_is_named_and_nothing_claims_it_stopped() {
    let stage = Stage::new();
    if !root() {
        eprintln!("not run: only root can set up a process that its supervisor may not signal");
        return;
    }
    let nobody = 65534;
    let own = |path: &std::path::Path| {
        std::os::unix::fs::chown(path, Some(nobody), Some(nobody)).unwrap()
    };
    let open = fs::Permissions::from_mode(0o755);
    fs::set_permissions(stage.path(), open.clone()).unwrap();
    own(&stage.path().join("work"));
    // A stand-in for sudo: all its user ids become root's.
    let become_root = stage.path().join("become-root");
    fs::copy("/usr/bin/setpriv", &become_root).unwrap();
    fs::set_permissions(&become_root, fs::Permissions::from_mode(0o4755)).unwrap();
    let supervisor = stage.path().join("supervisor");
    fs::copy(binary(), &supervisor).unwrap();
    fs::set_permissions(&supervisor, open).unwrap();

    let mut request = stage.request(&format!(
        "'{}' --reuid 0 sleep 600 & echo $! > pids; wait",
        become_root.display()
    ));
    request.grace_ms = 50;
    request.runtime_folder = None;
    let folder = stage.prepare(&request);
    for path in [stage.effects(), folder.clone(), folder.join("request")] {
        own(&path);
    }
    let mut child = Command::new("/usr/bin/setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(&supervisor)
        .arg(&folder)
        .spawn()
        .unwrap();
    let straggler = pids(&stage.work("pids"), 1)[0];
    until("it has become root's", || {
        let status = fs::read_to_string(format!("/proc/{straggler}/status")).ok()?;
        (status.contains("Uid:\t0\t0") && status.starts_with("Name:\tsleep")).then_some(())
    });
    fs::write(folder.join("stop"), "").unwrap();
    own(&folder.join("stop"));
    until("there is a receipt", || {
        folder.join("exit").exists().then_some(())
    });
    // The looker is the same user in life; here root looks with the owner changed back.
    let receipt = fs::read(folder.join("exit")).unwrap();
    let receipt: holdfast_domain::recovery::process::ExitReceipt =
        serde_json::from_slice(&receipt).unwrap();
    assert_eq!(
        (receipt.ended_by, receipt.tree_proof),
        (EndedBy::Stop, TreeProof::None)
    );
    let named: Vec<_> = receipt
        .stragglers
        .iter()
        .map(|s| (s.pid, s.name.as_str()))
        .collect();
    assert_eq!(named, [(straggler, "sleep")]);
    assert_eq!(outcome_of(&receipt).state, AttemptState::Unknown);
    assert!(lives(straggler));
    // Asked again it tries again, and says by taking the file away that it could do no more.
    fs::write(folder.join("stop"), "").unwrap();
    own(&folder.join("stop"));
    until("the second stop is given up", || {
        (!folder.join("stop").exists()).then_some(())
    });
    assert!(lives(straggler) && !folder.join("ended").exists());
    // A receipt of another owner is refused, so root's own look believes nothing.
    assert!(matches!(
        stage.look(&request),
        ProcessEvidence::Running { .. }
    ));
    signal(straggler, Signal::KILL);
    assert!(child.wait().unwrap().success());
    for entry in fs::read_dir(&folder).unwrap() {
        std::os::unix::fs::chown(entry.unwrap().path(), Some(0), Some(0)).unwrap();
    }
    let end = read_end(&folder, &request.attempt_id).unwrap().unwrap();
    assert_eq!(
        (end.ended_by, end.tree_proof),
        (EndedBy::Itself, TreeProof::Full)
    );
}
