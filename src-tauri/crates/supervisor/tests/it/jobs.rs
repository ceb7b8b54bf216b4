//! What outlives its call (TR-50, C31, C18): the call ends, the job is named, watched, stoppable.

use std::fs;

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{EndedBy, ProcessEvidence, TreeProof, outcome_of};
use holdfast_supervisor::{Progress, SupervisorError, read_end, remove, verify_output};

use crate::stage::{Stage, ended, lives, next, pids};

#[tokio::test]
async fn c31_a_server_in_the_background_does_not_hold_its_call() {
    let stage = Stage::new();
    let request = stage.request("sleep 300 & echo $! > pids; echo started");
    let mut attachment = stage.start(&request);
    let (output, receipt) = ended(&mut attachment).await;
    let job = pids(&stage.work("pids"), 1)[0];
    assert_eq!((output.as_str(), receipt.code), ("started\n", Some(0)));
    assert!(lives(job));
    assert_eq!(
        (receipt.ended_by, receipt.tree_proof),
        (EndedBy::Itself, TreeProof::None)
    );
    let named: Vec<_> = receipt
        .survivors
        .iter()
        .map(|s| (s.pid, s.name.as_str()))
        .collect();
    assert_eq!(named, [(job, "sleep")]);
    assert_eq!(outcome_of(&receipt).state, AttemptState::Completed);
    assert!(matches!(
        stage.look(&request),
        ProcessEvidence::Exited { alive: true, .. }
    ));
    let kept = remove(&stage.folder(&request)).unwrap_err();
    assert!(matches!(kept, SupervisorError::StillRunning));

    attachment.stop().unwrap();
    assert_eq!(next(&mut attachment).await, Progress::Gone);
    assert!(!lives(job));
    let end = read_end(&stage.folder(&request), &request.attempt_id)
        .unwrap()
        .unwrap();
    assert_eq!(
        (end.ended_by, end.tree_proof),
        (EndedBy::Stop, TreeProof::Full)
    );
    match stage.look(&request) {
        ProcessEvidence::Exited {
            receipt: again,
            alive: false,
            output_incomplete: false,
        } => {
            assert_eq!(again, receipt);
        }
        other => panic!("{other:?}"),
    }
    remove(&stage.folder(&request)).unwrap();
    assert_eq!(stage.look(&request), ProcessEvidence::NoFolder);
}

#[tokio::test]
async fn c31_a_daemon_that_left_group_and_session_is_seen() {
    let stage = Stage::new();
    let request = stage.request(
        "( setsid sh -c 'setsid sleep 300 < /dev/null > /dev/null 2>&1 & echo $! > pids' ); echo done",
    );
    let mut attachment = stage.start(&request);
    let (_, receipt) = ended(&mut attachment).await;
    let daemon = pids(&stage.work("pids"), 1)[0];
    let named: Vec<_> = receipt.survivors.iter().map(|s| s.pid).collect();
    assert_eq!(named, [daemon]);
    attachment.stop().unwrap();
    assert_eq!(next(&mut attachment).await, Progress::Gone);
    assert!(!lives(daemon));
}

#[tokio::test]
async fn tr_50_a_job_that_never_is_quiet_does_not_hold_its_call_either() {
    let stage = Stage::new();
    let request = stage.request("(while :; do echo x; sleep 0.01; done) & echo $! > pids");
    let mut attachment = stage.start(&request);
    let (_, receipt) = ended(&mut attachment).await;
    let job = pids(&stage.work("pids"), 1)[0];
    assert!(lives(job));
    assert!(receipt.survivors.iter().any(|s| s.pid == job));
    attachment.stop().unwrap();
    while let Progress::Output(_) = next(&mut attachment).await {}
    assert_eq!(next(&mut attachment).await, Progress::Gone);
    assert!(verify_output(&stage.folder(&request), &receipt).unwrap());
}

#[tokio::test]
async fn tr_50_output_just_after_the_exit_still_belongs_to_the_call() {
    let stage = Stage::new();
    // The root can be signalled until the supervisor has reaped it: so "late" comes surely after
    // the exit was seen.
    let request =
        stage.request("(while kill -0 $$ 2> /dev/null; do :; done; echo late) & echo early");
    let (output, receipt) = stage.run(&request).await;
    assert_eq!(output, "early\nlate\n");
    assert_eq!(receipt.tree_proof, TreeProof::Full);
}

#[tokio::test]
async fn a_jobs_output_comes_after_the_receipt_and_its_end_is_told() {
    let stage = Stage::new();
    let request = stage.request("(until [ -e gate ]; do sleep 0.02; done; echo late) & echo early");
    let mut attachment = stage.start(&request);
    let (output, receipt) = ended(&mut attachment).await;
    assert_eq!(output, "early\n");
    fs::write(stage.work("gate"), "").unwrap();
    assert_eq!(
        next(&mut attachment).await,
        Progress::Output(b"late\n".to_vec())
    );
    assert_eq!(next(&mut attachment).await, Progress::Gone);
    let folder = stage.folder(&request);
    assert!(verify_output(&folder, &receipt).unwrap());
    assert_eq!(
        fs::read_to_string(folder.join("output")).unwrap(),
        "early\nlate\n"
    );
    let end = read_end(&folder, &request.attempt_id).unwrap().unwrap();
    assert_eq!(
        (end.ended_by, end.tree_proof),
        (EndedBy::Itself, TreeProof::Full)
    );
}

#[tokio::test]
async fn c18_descendants_of_a_shell_in_a_shell_end_with_the_stop() {
    let stage = Stage::new();
    let request =
        stage.request("sh -c 'sleep 600 & echo $! >> pids; sleep 600 & echo $! >> pids; wait'");
    let mut attachment = stage.start(&request);
    let pids = pids(&stage.work("pids"), 2);
    attachment.stop().unwrap();
    let (_, receipt) = ended(&mut attachment).await;
    assert!(pids.iter().all(|pid| !lives(*pid)));
    assert_eq!(receipt.tree_proof, TreeProof::Full);
}
