//! The race for `start` and recovery's look (TR-18, C04, C05).

use std::fs;
use std::time::{Duration, Instant};

use holdfast_domain::recovery::process::{ProcessEvidence, StartClaim};
use holdfast_supervisor::{
    Attachment, Claim, Progress, SupervisorError, claim_void, launch, prepare,
};

use crate::stage::{Stage, binary, ended, next, scaled, until};

#[tokio::test]
async fn c04_of_host_and_supervisor_exactly_one_wins_the_start() {
    let stage = Stage::new();
    let rounds = scaled(60);
    let (mut host_won, mut supervisor_won) = (0, 0);
    for round in 0..rounds {
        let request = stage.request(&format!("echo ran >> ledger{round}"));
        let folder = stage.prepare(&request);
        let fence = || claim_void(&folder, &request.attempt_id, &request.boot_id, 1).unwrap();
        // The first and the last round are decided beforehand; between them it is a race, each
        // round a little later.
        let before = (round == 0).then(fence);
        let child = launch(binary(), &folder).unwrap();
        let claim = match before {
            Some(claim) => claim,
            None if round == rounds - 1 => {
                until("the start is claimed", || {
                    folder.join("start").exists().then_some(())
                });
                fence()
            }
            None => {
                let pause = Duration::from_micros(100 * (round as u64 % 60));
                let since = Instant::now();
                while since.elapsed() < pause {
                    std::hint::spin_loop();
                }
                fence()
            }
        };
        let mut attachment = Attachment::attach(stage.target(&request), Some(child), 0);
        let ledger = stage.work(&format!("ledger{round}"));
        match claim {
            Claim::Won => {
                host_won += 1;
                assert_eq!(next(&mut attachment).await, Progress::NotStarted);
                // The supervisor has ended when its folder's lock is free and nothing follows.
                until("the supervisor has seen that it lost", || {
                    (stage.look(&request) == ProcessEvidence::Fenced).then_some(())
                });
            }
            Claim::Lost(StartClaim::Supervisor { ref attempt_id, .. }) => {
                supervisor_won += 1;
                assert_eq!(*attempt_id, request.attempt_id);
                let (_, receipt) = ended(&mut attachment).await;
                assert_eq!(receipt.code, Some(0));
                assert_eq!(fs::read_to_string(&ledger).unwrap(), "ran\n");
            }
            Claim::Lost(ref other) => panic!("{other:?}"),
        }
        if claim == Claim::Won {
            assert!(!ledger.exists(), "round {round}");
        }
    }
    eprintln!("host won {host_won}, supervisor won {supervisor_won}");
    assert!(host_won > 0 && supervisor_won > 0);
}

#[tokio::test]
async fn c04_b_a_start_that_nobody_claimed_is_fenced_for_ever() {
    let stage = Stage::new();
    let request = stage.request("echo ran > ledger");
    let folder = stage.prepare(&request);
    assert_eq!(stage.look(&request), ProcessEvidence::Fenced);
    // C05: the recovery is killed and begins again.
    assert_eq!(stage.look(&request), ProcessEvidence::Fenced);
    // A supervisor that comes late runs nothing.
    let status = std::process::Command::new(binary())
        .arg(&folder)
        .status()
        .unwrap();
    assert!(!status.success());
    assert!(!stage.work("ledger").exists());
    assert_eq!(stage.look(&request), ProcessEvidence::Fenced);
}

#[tokio::test]
async fn c04_looks_at_the_same_moment_agree_with_what_ran() {
    let stage = Stage::new();
    for round in 0..scaled(20) {
        let request = stage.request(&format!("echo ran >> ledger{round}"));
        let folder = stage.prepare(&request);
        let child = launch(binary(), &folder).unwrap();
        let evidence: Vec<ProcessEvidence> = std::thread::scope(|scope| {
            let looks: Vec<_> = (0..3)
                .map(|_| scope.spawn(|| stage.look(&request)))
                .collect();
            looks.into_iter().map(|look| look.join().unwrap()).collect()
        });
        let mut attachment = Attachment::attach(stage.target(&request), Some(child), 0);
        let ran = match next(&mut attachment).await {
            Progress::NotStarted => false,
            Progress::Exited(_) => true,
            other => panic!("{other:?}"),
        };
        for seen in &evidence {
            match seen {
                ProcessEvidence::Fenced => assert!(!ran),
                ProcessEvidence::Exited { .. } => assert!(ran),
                // Between the lock and the claim either end is still open.
                ProcessEvidence::Running { .. } => {}
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(stage.work(&format!("ledger{round}")).exists(), ran);
    }
}

#[tokio::test]
async fn tr_18_without_the_fence_an_unclaimed_start_proves_nothing() {
    let stage = Stage::new();
    let request = stage.request("true");
    let folder = stage.prepare(&request);
    assert!(matches!(
        stage.look_fencing(&request, false),
        ProcessEvidence::Lost { .. }
    ));
    assert!(!folder.join("start").exists());
}

#[tokio::test]
async fn tr_18_after_another_boot_nothing_is_fenced() {
    let stage = Stage::new();
    let mut request = stage.request("true");
    request.boot_id = "another boot".into();
    let folder = stage.prepare(&request);
    match stage.look(&request) {
        ProcessEvidence::Lost { reason, stragglers } => {
            assert!(reason.contains("started again"), "{reason}");
            assert!(stragglers.is_empty());
        }
        other => panic!("{other:?}"),
    }
    assert!(!folder.join("start").exists());
    // Nor does a supervisor take up a request of another boot.
    assert!(
        !std::process::Command::new(binary())
            .arg(&folder)
            .status()
            .unwrap()
            .success()
    );
    assert!(!folder.join("start").exists());
}

#[tokio::test]
async fn tr_18_a_void_of_another_boot_proves_nothing() {
    let stage = Stage::new();
    let request = stage.request("true");
    let folder = stage.prepare(&request);
    let claim = claim_void(&folder, &request.attempt_id, "another boot", 1).unwrap();
    assert_eq!(claim, Claim::Won);
    assert!(matches!(stage.look(&request), ProcessEvidence::Lost { .. }));
}

#[tokio::test]
async fn two_supervisors_on_one_folder_run_the_command_once() {
    let stage = Stage::new();
    let request = stage.request("echo ran >> ledger; until [ -e gate ]; do sleep 0.02; done");
    let folder = stage.prepare(&request);
    let mut attachment = Attachment::attach(
        stage.target(&request),
        Some(launch(binary(), &folder).unwrap()),
        0,
    );
    stage.supervisor_of(&request);
    let second = std::process::Command::new(binary())
        .arg(&folder)
        .output()
        .unwrap();
    assert!(!second.status.success());
    fs::write(stage.work("gate"), "").unwrap();
    ended(&mut attachment).await;
    assert_eq!(fs::read_to_string(stage.work("ledger")).unwrap(), "ran\n");
}

#[test]
fn an_attempt_gets_one_folder() {
    let stage = Stage::new();
    let request = stage.request("true");
    stage.prepare(&request);
    let again = prepare(&stage.effects(), &request).unwrap_err();
    assert!(matches!(again, SupervisorError::FolderExists));
    assert_eq!(
        holdfast_supervisor::list(&stage.effects()).unwrap(),
        [request.attempt_id.as_str()]
    );
    assert!(
        holdfast_supervisor::list(&stage.path().join("missing"))
            .unwrap()
            .is_empty()
    );
}
