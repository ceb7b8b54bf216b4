//! What is not believed: requests and receipts of others.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::Path;

use holdfast_domain::recovery::process::{ExitReceipt, ProcessEvidence};
use holdfast_supervisor::{
    Attachment, PROTOCOL, Presence, Progress, Request, SupervisorError, launch, prepare, read_end,
    read_receipt, remove,
};

use crate::stage::{Stage, binary, next, root};

/// Runs a command, changes its folder, and gives the reason why the look then believes nothing.
async fn reason_after(stage: &Stage, change: impl FnOnce(&Path, ExitReceipt)) -> String {
    let request = stage.request("echo out");
    let (_, receipt) = stage.run(&request).await;
    let folder = stage.folder(&request);
    change(&folder, receipt);
    match stage.look(&request) {
        ProcessEvidence::Lost { reason, .. } => reason,
        // The supervisor syncs for a moment after its receipt.
        ProcessEvidence::Running { .. } => {
            crate::stage::until("its supervisor ends", || match stage.look(&request) {
                ProcessEvidence::Lost { reason, .. } => Some(reason),
                _ => None,
            })
        }
        other => panic!("{other:?}"),
    }
}

fn rewrite(folder: &Path, receipt: &ExitReceipt) {
    fs::write(folder.join("exit"), serde_json::to_vec(receipt).unwrap()).unwrap();
}

#[tokio::test]
async fn sv_02_a_receipt_of_another_attempt_digest_protocol_or_shape_is_refused() {
    let stage = Stage::new();
    let reason = reason_after(&stage, |folder, mut receipt| {
        receipt.attempt_id = "f".repeat(32);
        rewrite(folder, &receipt);
    });
    assert!(reason.await.contains("another attempt"));
    let reason = reason_after(&stage, |folder, mut receipt| {
        receipt.argument_digest = "f".repeat(64);
        rewrite(folder, &receipt);
    });
    assert!(reason.await.contains("other arguments"));
    let reason = reason_after(&stage, |folder, mut receipt| {
        receipt.protocol = 2;
        rewrite(folder, &receipt);
    });
    assert!(reason.await.contains("protocol 2"));
    for garbage in [&b""[..], b"{}", b"null", &[0; 4096], &[b' '; 5000]] {
        let reason = reason_after(&stage, |folder, _| {
            fs::write(folder.join("exit"), garbage).unwrap();
        });
        assert!(reason.await.contains("refused"));
    }
}

#[tokio::test]
async fn sv_02_a_receipt_of_another_mode_kind_or_owner_is_refused() {
    let stage = Stage::new();
    let reason = reason_after(&stage, |folder, _| {
        let open = fs::Permissions::from_mode(0o644);
        fs::set_permissions(folder.join("exit"), open).unwrap();
    });
    assert!(reason.await.contains("mode is 644"));
    let reason = reason_after(&stage, |folder, _| {
        fs::rename(folder.join("exit"), folder.join("elsewhere")).unwrap();
        symlink(folder.join("elsewhere"), folder.join("exit")).unwrap();
    });
    assert!(reason.await.contains("symbolic link"));
    let reason = reason_after(&stage, |folder, _| {
        fs::remove_file(folder.join("exit")).unwrap();
        fs::create_dir(folder.join("exit")).unwrap();
    });
    assert!(reason.await.contains("not a regular file"));
    if root() {
        let reason = reason_after(&stage, |folder, _| {
            chown(folder.join("exit"), Some(65534), None).unwrap();
        });
        assert!(reason.await.contains("belongs to user 65534"));
    } else {
        eprintln!("not run: only root can make a file of another owner");
    }
}

#[tokio::test]
async fn sv_02_output_that_the_receipt_does_not_vouch_for_is_incomplete() {
    let stage = Stage::new();
    for content in [&b"ouT\n"[..], b"ou", b""] {
        let request = stage.request("echo out");
        stage.run(&request).await;
        let folder = stage.folder(&request);
        fs::write(folder.join("output"), content).unwrap();
        match stage.look(&request) {
            ProcessEvidence::Exited {
                receipt,
                output_incomplete: true,
                ..
            } => {
                assert_eq!(receipt.code, Some(0));
            }
            other => panic!("{other:?}"),
        }
    }
    let request = stage.request("echo out");
    stage.run(&request).await;
    fs::remove_file(stage.folder(&request).join("output")).unwrap();
    assert!(matches!(
        stage.look(&request),
        ProcessEvidence::Exited {
            output_incomplete: true,
            ..
        }
    ));
}

/// Prepares, changes the folder, launches, and expects that nothing runs.
async fn not_started_after(stage: &Stage, change: impl FnOnce(&Path, &Request)) {
    let request = stage.request("echo ran > ledger");
    let folder = stage.prepare(&request);
    change(&folder, &request);
    let child = launch(binary(), &folder).unwrap();
    let mut attachment = Attachment::attach(stage.target(&request), Some(child), 0);
    assert_eq!(next(&mut attachment).await, Progress::NotStarted);
    assert!(!stage.work("ledger").exists());
    assert_eq!(
        read_receipt(&folder, &request.attempt_id, &request.argument_digest).unwrap(),
        None
    );
}

#[tokio::test]
async fn sv_08_a_request_of_another_mode_protocol_folder_or_shape_starts_nothing() {
    let stage = Stage::new();
    let write = |folder: &Path, request: &Request| {
        fs::write(folder.join("request"), serde_json::to_vec(request).unwrap()).unwrap();
    };
    not_started_after(&stage, |folder, _| {
        let open = fs::Permissions::from_mode(0o640);
        fs::set_permissions(folder.join("request"), open).unwrap();
    })
    .await;
    not_started_after(&stage, |folder, _| {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    })
    .await;
    not_started_after(&stage, |folder, request| {
        let mut other = request.clone();
        other.protocol = 99;
        write(folder, &other);
    })
    .await;
    not_started_after(&stage, |folder, request| {
        let mut other = request.clone();
        other.attempt_id = "f".repeat(32);
        write(folder, &other);
    })
    .await;
    not_started_after(&stage, |folder, _| {
        fs::write(folder.join("request"), "{\"protocol\":1").unwrap();
    })
    .await;
    not_started_after(&stage, |folder, _| {
        fs::rename(folder.join("request"), folder.join("elsewhere")).unwrap();
        symlink(folder.join("elsewhere"), folder.join("request")).unwrap();
    })
    .await;
    not_started_after(&stage, |folder, _| {
        fs::remove_file(folder.join("request")).unwrap();
    })
    .await;
}

#[tokio::test]
async fn sv_08_the_protocol_before_is_understood_and_no_other_receipt() {
    let stage = Stage::new();
    let request = stage.request("sleep 600 & exit 5");
    let mut attachment = stage.start(&request);
    let (_, receipt) = crate::stage::ended(&mut attachment).await;
    attachment.stop().unwrap();
    assert_eq!(next(&mut attachment).await, Progress::Gone);
    let folder = stage.folder(&request);
    for (protocol, understood) in [
        (PROTOCOL - 1, true),
        (PROTOCOL, true),
        (PROTOCOL + 1, false),
        (PROTOCOL + 2, false),
    ] {
        for name in ["exit", "ended"] {
            let content = fs::read(folder.join(name)).unwrap();
            let mut content: serde_json::Value = serde_json::from_slice(&content).unwrap();
            content["protocol"] = protocol.into();
            fs::write(folder.join(name), content.to_string()).unwrap();
        }
        let read = read_receipt(&folder, &request.attempt_id, &request.argument_digest);
        assert_eq!(read.is_ok_and(|read| read.is_some()), understood);
        let end = read_end(&folder, &request.attempt_id);
        assert_eq!(end.is_ok_and(|end| end.is_some()), understood);
        // The supervisor syncs for a moment after its last word.
        let seen = crate::stage::until("its supervisor ends", || match stage.look(&request) {
            ProcessEvidence::Running { .. } => None,
            seen => Some(seen),
        });
        match seen {
            ProcessEvidence::Exited { receipt: found, .. } => {
                assert!(understood);
                assert_eq!((found.code, found.protocol), (receipt.code, protocol));
            }
            ProcessEvidence::Lost { reason, .. } => {
                assert!(!understood && reason.contains(&format!("protocol {protocol}")));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn sv_08_a_supervisor_of_an_unknown_protocol_is_running_and_can_be_stopped_only() {
    let stage = Stage::new();
    let request = stage.request("true");
    let folder = stage.prepare(&request);
    // What a supervisor of a far newer version may have left, while it holds its lock.
    let private = |name: &str, content: &str| {
        fs::write(folder.join(name), content).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o600)).unwrap();
    };
    private("alive", "");
    private("start", "{\"by\":\"somebody\",\"of\":\"another version\"}");
    private("exit", "{\"protocol\":99,\"how\":\"it went\"}");
    let alive = fs::File::open(folder.join("alive")).unwrap();
    alive.lock().unwrap();
    assert!(matches!(
        stage.look(&request),
        ProcessEvidence::Running { .. }
    ));
    let presence = |request: &Request| {
        holdfast_supervisor::presence(&folder, &request.attempt_id, &request.argument_digest)
            .unwrap()
    };
    assert_eq!(presence(&request), Presence::Running);
    assert!(matches!(
        remove(&folder).unwrap_err(),
        SupervisorError::StillRunning
    ));
    let mut attachment = Attachment::attach(stage.target(&request), None, 0);
    attachment.stop().unwrap();
    assert!(folder.join("stop").exists());
    drop(alive);
    match next(&mut attachment).await {
        Progress::Lost { reason, .. } => assert!(!reason.is_empty()),
        other => panic!("{other:?}"),
    }
    assert_eq!(presence(&request), Presence::Absent);
}

#[test]
fn prepare_refuses_what_no_supervisor_would_run() {
    let stage = Stage::new();
    let refused = |change: fn(&mut Request)| {
        let mut request = stage.request("true");
        change(&mut request);
        prepare(&stage.effects(), &request).unwrap_err().code()
    };
    assert_eq!(
        refused(|r| r.attempt_id = "../escape".into()),
        "request_refused"
    );
    assert_eq!(refused(|r| r.attempt_id = String::new()), "request_refused");
    assert_eq!(refused(|r| r.cwd = "relative".into()), "request_refused");
    assert_eq!(refused(|r| r.protocol = 7), "request_refused");
    assert_eq!(refused(|r| r.program = "".into()), "request_refused");
    assert!(!stage.effects().exists());
}

#[test]
fn sv_07_files_and_folders_are_private_from_the_beginning() {
    let stage = Stage::new();
    let request = stage.request("true");
    let folder = stage.prepare(&request);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join("request")), 0o600);
}
