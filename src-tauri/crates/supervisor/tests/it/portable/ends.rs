//! Stop and timeout end the whole tree; what lives on is a job.

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::{EndedBy, TreeProof, outcome_of};
use holdfast_supervisor::{Progress, read_end};

use super::stage::{Stage, ended, lives, next, until};

/// What is proven of a tree that was ended: macOS proves the group only.
const PROOF: TreeProof = if cfg!(target_os = "macos") {
    TreeProof::Group
} else {
    TreeProof::Full
};

fn all_gone(pids: &[u32]) {
    let left: Vec<_> = pids.iter().filter(|pid| lives(**pid)).collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn sv_03_stop_kills_the_whole_tree_everywhere() {
    let stage = Stage::new();
    let mut request = stage.actor("tree");
    request.grace_ms = 0;
    let mut attachment = stage.start(&request);
    let pids = stage.pids(3);
    assert!(pids.iter().all(|pid| lives(*pid)));
    attachment.stop().unwrap();
    let (_, receipt) = ended(&mut attachment).await;
    assert_eq!(
        (receipt.ended_by, receipt.tree_proof),
        (EndedBy::Stop, PROOF)
    );
    assert_eq!(receipt.code, None, "what was killed has no exit code");
    assert!(receipt.stragglers.is_empty() && receipt.survivors.is_empty());
    all_gone(&pids);
    let expected = match PROOF {
        TreeProof::Full => AttemptState::Interrupted,
        TreeProof::Group | TreeProof::None => AttemptState::Unknown,
    };
    assert_eq!(outcome_of(&receipt).state, expected);
    assert_eq!(next(&mut attachment).await, Progress::Gone);
}

#[tokio::test]
async fn sv_03_stop_asks_before_it_kills_everywhere() {
    let stage = Stage::new();
    let mut request = stage.actor("sleep");
    // Only the asking can end it before the test's deadline. On Windows Ctrl+Break asks, which Wine
    // does not hand on to a hidden console, so that there the kill behind the grace has to do.
    request.grace_ms = if cfg!(windows) { 500 } else { 3_600_000 };
    let mut attachment = stage.start(&request);
    let pids = stage.pids(1);
    attachment.stop().unwrap();
    let (_, receipt) = ended(&mut attachment).await;
    assert_eq!(receipt.ended_by, EndedBy::Stop);
    if !cfg!(windows) {
        assert_eq!((receipt.code, receipt.signal), (None, Some(15)));
    }
    all_gone(&pids);
}

#[tokio::test]
async fn sv_02_a_timeout_ends_the_whole_tree_everywhere() {
    let stage = Stage::new();
    let mut request = stage.actor("tree");
    request.timeout_ms = Some(1);
    request.grace_ms = 0;
    let (_, receipt) = stage.run(&request).await;
    assert_eq!(
        (receipt.ended_by, receipt.tree_proof),
        (EndedBy::Timeout, PROOF)
    );
}

#[tokio::test]
async fn tr_50_what_lives_on_is_a_job_that_can_be_stopped_everywhere() {
    let stage = Stage::new();
    let mut request = stage.actor("leave");
    request.grace_ms = 0;
    let mut attachment = stage.start(&request);
    let (_, receipt) = ended(&mut attachment).await;
    assert_eq!((receipt.ended_by, receipt.code), (EndedBy::Itself, Some(3)));
    assert_eq!(receipt.tree_proof, TreeProof::None);
    let pids = stage.pids(2);
    let job: Vec<u32> = receipt
        .survivors
        .iter()
        .map(|process| process.pid)
        .collect();
    assert_eq!(job.len(), 1, "{:?}", receipt.survivors);
    assert!(pids.contains(&job[0]) && lives(job[0]));
    assert!(!receipt.survivors[0].name.is_empty());
    attachment.stop().unwrap();
    loop {
        match next(&mut attachment).await {
            Progress::Output(_) => {}
            Progress::Gone => break,
            other => panic!("{other:?}"),
        }
    }
    let end = read_end(&stage.folder(&request), &request.attempt_id)
        .unwrap()
        .unwrap();
    assert_eq!((end.ended_by, end.tree_proof), (EndedBy::Stop, PROOF));
    until("the job is gone", || (!lives(job[0])).then_some(()));
}

#[tokio::test]
async fn sv_03_who_wants_to_leave_the_tree_ends_with_it() {
    let stage = Stage::new();
    let mut request = stage.actor("escape");
    request.grace_ms = 0;
    let mut attachment = stage.start(&request);
    let said = stage.lines("escape", 1)[0].clone();
    // On Windows the job object has no leave to give; elsewhere the child is followed.
    let pids = if cfg!(windows) {
        assert_eq!(said, "denied 5");
        stage.pids(1)
    } else {
        assert_eq!(said, "escaped");
        stage.pids(2)
    };
    attachment.stop().unwrap();
    let (_, receipt) = ended(&mut attachment).await;
    assert_eq!(receipt.ended_by, EndedBy::Stop);
    until("all are gone", || {
        (!pids.iter().any(|pid| lives(*pid))).then_some(())
    });
}
