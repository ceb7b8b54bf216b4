//! Hosts and supervisors that die (TR-18, SV-04, SV-09, C01, C32).

use std::fs;
use std::time::Duration;

use holdfast_domain::recovery::process::{EndedBy, ProcessEvidence, TreeProof};
use holdfast_supervisor::{Attachment, OnHostLoss, Progress, end_stragglers, request_keep};
use rustix::process::Signal;

use crate::stage::{ShellHost, Stage, ended, lives, next, pids, signal, until};

#[tokio::test]
async fn c01_a_command_outlives_the_kill_of_its_host_and_its_receipt_is_real() {
    let stage = Stage::new();
    let mut host = ShellHost::new();
    let mut request = stage.request(
        "echo before; until [ -e gate ]; do sleep 0.02; done; echo done >> ledger; echo after; exit 3",
    );
    request.host = host.identity();
    host.launch(&stage.prepare(&request));
    stage.supervisor_of(&request);
    host.kill();
    let ProcessEvidence::Running { pid } = stage.look(&request) else {
        panic!("it should run");
    };
    assert!(lives(pid));
    // The next host attaches.
    let mut attachment = Attachment::attach(stage.target(&request), None, 0);
    fs::write(stage.work("gate"), "").unwrap();
    let (output, receipt) = ended(&mut attachment).await;
    assert_eq!(output, "before\nafter\n");
    assert_eq!((receipt.code, receipt.ended_by), (Some(3), EndedBy::Itself));
    assert_eq!(fs::read_to_string(stage.work("ledger")).unwrap(), "done\n");
    match stage.look(&request) {
        ProcessEvidence::Exited {
            receipt: again,
            output_incomplete: false,
            alive: false,
        } => {
            assert_eq!(again, receipt);
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn c04_c_a_host_killed_after_the_claim_finds_the_real_end() {
    let stage = Stage::new();
    let mut host = ShellHost::new();
    let mut request = stage.request("echo ran >> ledger; echo out; exit 9");
    request.host = host.identity();
    let folder = stage.prepare(&request);
    host.launch(&folder);
    until("the start is claimed", || {
        folder.join("start").exists().then_some(())
    });
    host.kill();
    let receipt = until("it has ended", || match stage.look(&request) {
        ProcessEvidence::Exited {
            receipt,
            output_incomplete: false,
            ..
        } => Some(receipt),
        ProcessEvidence::Running { .. } => None,
        other => panic!("{other:?}"),
    });
    assert_eq!(receipt.code, Some(9));
    assert_eq!(fs::read_to_string(stage.work("ledger")).unwrap(), "ran\n");
}

#[tokio::test]
async fn sv_09_host_loss_ends_the_tree_when_the_request_says_so() {
    let stage = Stage::new();
    let mut host = ShellHost::new();
    let mut request = stage.request("sleep 600 & echo $! > pids; sleep 600");
    request.host = host.identity();
    request.on_host_loss = OnHostLoss::Stop;
    host.launch(&stage.prepare(&request));
    let pid = pids(&stage.work("pids"), 1)[0];
    host.kill();
    let mut attachment = Attachment::attach(stage.target(&request), None, 0);
    let (_, receipt) = ended(&mut attachment).await;
    assert_eq!(
        (receipt.ended_by, receipt.tree_proof),
        (EndedBy::HostLoss, TreeProof::Full)
    );
    assert!(!lives(pid));
}

#[tokio::test]
async fn sv_09_a_host_that_lets_go_leaves_the_tree_whatever_the_request_says() {
    let stage = Stage::new();
    let mut host = ShellHost::new();
    let mut request = stage.request("until [ -e gate ]; do sleep 0.02; done; echo done");
    request.host = host.identity();
    request.on_host_loss = OnHostLoss::Stop;
    let folder = stage.prepare(&request);
    host.launch(&folder);
    stage.supervisor_of(&request);
    request_keep(&folder).unwrap();
    request_keep(&folder).unwrap();
    host.kill();
    let mut attachment = Attachment::attach(stage.target(&request), None, 0);
    fs::write(stage.work("gate"), "").unwrap();
    let (output, receipt) = ended(&mut attachment).await;
    assert_eq!(
        (output.as_str(), receipt.ended_by),
        ("done\n", EndedBy::Itself)
    );
    request_keep(&stage.work("never")).unwrap();
}

#[tokio::test]
async fn sv_06_a_host_of_another_start_time_is_no_host() {
    let stage = Stage::new();
    let mut request = stage.request("echo ran > ledger");
    request.on_host_loss = OnHostLoss::Stop;
    request.host.start_time += 1;
    let mut attachment = stage.start(&request);
    assert_eq!(next(&mut attachment).await, Progress::NotStarted);
    assert!(!stage.work("ledger").exists());
}

#[tokio::test]
async fn c32_supervisor_and_command_killed_together_mean_lost_with_nobody_left() {
    let stage = Stage::new();
    let request = stage.request("echo ran >> ledger; echo $$ > pids; exec sleep 600");
    let mut attachment = stage.start(&request);
    let command = pids(&stage.work("pids"), 1)[0];
    // As when a whole control group is killed: the supervisor first, so that it can't tell.
    signal(stage.supervisor_of(&request), Signal::KILL);
    signal(command, Signal::KILL);
    let lost = loop {
        match next(&mut attachment).await {
            Progress::Output(_) => {}
            other => break other,
        }
    };
    // The command may be seen for the moment until the system has taken it away.
    assert!(matches!(lost, Progress::Lost { .. }), "{lost:?}");
    until("nothing of it is left", || match stage.look(&request) {
        ProcessEvidence::Lost { stragglers, .. } => stragglers.is_empty().then_some(()),
        other => panic!("{other:?}"),
    });
    let ledger = fs::read_to_string(stage.work("ledger")).unwrap();
    assert_eq!(ledger, "ran\n");
}

#[tokio::test]
async fn c32_a_killed_supervisor_means_lost_with_its_straggler_named() {
    let stage = Stage::new();
    let request = stage.request("echo some; echo $$ > pids; exec sleep 600");
    let mut attachment = stage.start(&request);
    let straggler = pids(&stage.work("pids"), 1)[0];
    until("it is sleep", || {
        (fs::read_to_string(format!("/proc/{straggler}/comm")).ok()? == "sleep\n").then_some(())
    });
    // What is still in the pipe dies with its reader, so the output is seen first.
    assert_eq!(
        next(&mut attachment).await,
        Progress::Output(b"some\n".to_vec())
    );
    signal(stage.supervisor_of(&request), Signal::KILL);
    let told = match next(&mut attachment).await {
        Progress::Lost { stragglers, .. } => stragglers,
        other => panic!("{other:?}"),
    };
    let ProcessEvidence::Lost { stragglers, reason } = stage.look(&request) else {
        panic!("it should be lost");
    };
    assert_eq!(told, stragglers);
    let named: Vec<_> = stragglers
        .iter()
        .map(|s| (s.pid, s.name.as_str()))
        .collect();
    assert_eq!(named, [(straggler, "sleep")], "{reason}");
    signal(straggler, Signal::KILL);
    until("it has ended", || (!lives(straggler)).then_some(()));
    let ProcessEvidence::Lost { stragglers, .. } = stage.look(&request) else {
        panic!("it should still be lost");
    };
    assert!(stragglers.is_empty());
}

#[tokio::test]
async fn sv_04_what_a_lost_supervisor_left_is_ended_with_its_children() {
    let stage = Stage::new();
    // One ignores TERM, one has cleared its environment and left the session.
    let request = stage.request(
        "trap '' TERM; setsid env -i /bin/sleep 600 & echo $! >> pids; echo $$ >> pids; wait",
    );
    let folder = stage.prepare(&request);
    let mut supervisor = stage.launch_by_shell("", &folder);
    let both = pids(&stage.work("pids"), 2);
    until("the sleep has cleared its environment", || {
        let environment = fs::read(format!("/proc/{}/environ", both[0])).ok()?;
        let name = fs::read_to_string(format!("/proc/{}/comm", both[0])).ok()?;
        (environment.is_empty() && name == "sleep\n").then_some(())
    });
    supervisor.kill().unwrap();
    supervisor.wait().unwrap();
    assert!(both.iter().all(|pid| lives(*pid)));
    let grace = Duration::from_millis(50);
    // Of another boot nothing can be left, and a number of then is another process now.
    let other = end_stragglers(&request.attempt_id, "another boot", grace).unwrap();
    assert!(other.is_empty() && both.iter().all(|pid| lives(*pid)));
    let left = end_stragglers(&request.attempt_id, &request.boot_id, grace).unwrap();
    assert!(left.is_empty(), "{left:?}");
    assert!(!both.iter().any(|pid| lives(*pid)));
    match stage.look(&request) {
        ProcessEvidence::Lost { stragglers, .. } => assert!(stragglers.is_empty()),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn sv_04_a_killed_supervisor_of_a_job_is_told_as_lost_and_the_receipt_stays() {
    let stage = Stage::new();
    let request = stage.request("sleep 300 & echo $! > pids; echo out");
    let mut attachment = stage.start(&request);
    let (_, receipt) = ended(&mut attachment).await;
    let job = pids(&stage.work("pids"), 1)[0];
    let claim = fs::read_to_string(stage.folder(&request).join("start")).unwrap();
    let claim: serde_json::Value = serde_json::from_str(&claim).unwrap();
    signal(
        u32::try_from(claim["pid"].as_u64().unwrap()).unwrap(),
        Signal::KILL,
    );
    match next(&mut attachment).await {
        Progress::Lost { stragglers, .. } => assert_eq!(stragglers[0].pid, job),
        other => panic!("{other:?}"),
    }
    match stage.look(&request) {
        ProcessEvidence::Exited {
            receipt: again,
            alive: false,
            ..
        } => assert_eq!(again, receipt),
        other => panic!("{other:?}"),
    }
    signal(job, Signal::KILL);
}
