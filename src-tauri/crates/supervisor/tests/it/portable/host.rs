//! The host's death.

use holdfast_domain::recovery::process::{EndedBy, ProcessEvidence};
use holdfast_supervisor::{Attachment, HostIdentity, OnHostLoss, Request, process_start_time};

use super::actor::{EFFECT, FOLDER, child};
use super::stage::{Stage, ended, lives, until};

/// Another process as the host: it launches the supervisor of a request and waits.
fn host(stage: &Stage, request: &Request) -> std::process::Child {
    child("host")
        .env(FOLDER, stage.work(""))
        .env(EFFECT, stage.folder(request))
        .spawn()
        .unwrap()
}

fn identity(host: &std::process::Child) -> HostIdentity {
    HostIdentity {
        pid: host.id(),
        start_time: process_start_time(host.id()).unwrap().unwrap(),
    }
}

/// The pid of the command, which is not the host's.
fn command(stage: &Stage, host: &std::process::Child) -> u32 {
    let pids = stage.pids(2);
    *pids.iter().find(|pid| **pid != host.id()).unwrap()
}

#[tokio::test]
async fn tr_18_a_killed_hosts_command_goes_on_and_its_receipt_is_there() {
    let stage = Stage::new();
    let request = stage.actor("sleep");
    stage.prepare(&request);
    let mut host = host(&stage, &request);
    let command = command(&stage, &host);
    host.kill().unwrap();
    host.wait().unwrap();
    assert!(lives(command));
    assert!(matches!(
        stage.look(&request, true),
        ProcessEvidence::Running { pid } if pid != 0
    ));
    let mut attachment = Attachment::attach(stage.target(&request), None, 0);
    attachment.stop().unwrap();
    let (_, receipt) = ended(&mut attachment).await;
    assert_eq!(receipt.ended_by, EndedBy::Stop);
    assert!(!lives(command));
    until("the supervisor has ended", || {
        matches!(
            stage.look(&request, true),
            ProcessEvidence::Exited {
                alive: false,
                output_incomplete: false,
                ..
            }
        )
        .then_some(())
    });
}

#[tokio::test]
async fn sv_09_the_hosts_loss_ends_the_tree_when_the_request_says_so_everywhere() {
    let stage = Stage::new();
    let mut request = stage.actor("sleep");
    let mut other = child("sleep").env(FOLDER, stage.work("")).spawn().unwrap();
    stage.pids(1);
    request.on_host_loss = OnHostLoss::Stop;
    request.grace_ms = 0;
    request.host = identity(&other);
    let mut attachment = stage.start(&request);
    let command = command(&stage, &other);
    other.kill().unwrap();
    other.wait().unwrap();
    let (_, receipt) = ended(&mut attachment).await;
    assert_eq!(receipt.ended_by, EndedBy::HostLoss);
    assert!(!lives(command));
}

/// A supervised command is in a job object that denies breaking away, so a host inside one is a
/// host whose commands can't outlive it.
#[cfg(windows)]
#[tokio::test]
async fn sv_03_where_breakaway_is_denied_it_is_recorded_that_the_command_ends_with_its_host() {
    let stage = Stage::new();
    let inner = stage.actor("sleep");
    let folder = stage.prepare(&inner);
    let mut outer = stage.actor("host");
    outer.grace_ms = 0;
    outer.env.push((EFFECT.into(), folder.clone().into()));
    let mut attachment = stage.start(&outer);
    stage.pids(2);
    let claim = std::fs::read_to_string(folder.join("start")).unwrap();
    assert!(claim.contains(r#""survives_host":false"#), "{claim}");
    let own = std::fs::read_to_string(stage.folder(&outer).join("start")).unwrap();
    assert!(!own.contains("survives_host"), "{own}");
    attachment.stop().unwrap();
    ended(&mut attachment).await;
    until("the inner supervisor is lost", || {
        match stage.look(&inner, true) {
            ProcessEvidence::Lost { reason, .. } => {
                assert!(reason.contains("could not outlive"), "{reason}");
                Some(())
            }
            ProcessEvidence::Running { .. } => None,
            other => panic!("{other:?}"),
        }
    });
}
