//! Start, output and receipt.

use std::fs;

use holdfast_domain::recovery::process::{EndedBy, ProcessEvidence, TreeProof};
use holdfast_supervisor::{
    Attachment, Claim, Progress, boot_id, claim_void, launch, prepare, remove, verify_output,
};

use super::stage::{Stage, binary, ended, lives, next, until};

/// What is proven when a tree has ended by itself.
const PROOF: TreeProof = if cfg!(target_os = "macos") {
    TreeProof::Group
} else {
    TreeProof::Full
};

#[tokio::test]
async fn sv_02_code_output_and_times_are_in_the_receipt_everywhere() {
    let stage = Stage::new();
    let request = stage.shell(
        "echo out; echo err >&2; exit 7",
        "echo out&echo err>&2&exit 7",
    );
    let (output, receipt) = stage.run(&request).await;
    assert_eq!(output, "out\nerr\n");
    assert_eq!((receipt.code, receipt.signal), (Some(7), None));
    assert_eq!(receipt.ended_by, EndedBy::Itself);
    assert_eq!(receipt.tree_proof, PROOF);
    assert!(receipt.survivors.is_empty() && receipt.stragglers.is_empty());
    assert!(receipt.started_at > 0 && receipt.finished_at >= receipt.started_at);
    assert!(verify_output(&stage.folder(&request), &receipt).unwrap());
    match stage.look(&request, true) {
        ProcessEvidence::Exited {
            receipt: found,
            output_incomplete: false,
            alive: false,
        } => assert_eq!(found, receipt),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn sv_02_the_order_of_both_streams_is_the_real_one_everywhere() {
    let stage = Stage::new();
    let request = stage.shell(
        "i=1; while [ $i -le 100 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done",
        "for /L %i in (1,1,100) do @(echo o%i&echo e%i>&2)",
    );
    let (output, receipt) = stage.run(&request).await;
    let expected: String = (1..=100).map(|i| format!("o{i}\ne{i}\n")).collect();
    assert_eq!(output, expected);
    assert_eq!(receipt.code, Some(0));
}

#[tokio::test]
async fn sv_02_output_past_the_cap_is_discarded_everywhere() {
    let stage = Stage::new();
    let mut request = stage.shell(
        "i=0; while [ $i -lt 500 ]; do echo 0123456789; i=$((i+1)); done; exit 5",
        "(for /L %i in (1,1,500) do @echo 0123456789)&exit 5",
    );
    request.output_cap = 1001;
    let (_, receipt) = stage.run(&request).await;
    assert!(receipt.output_truncated);
    assert_eq!((receipt.output_length, receipt.code), (1001, Some(5)));
    assert!(verify_output(&stage.folder(&request), &receipt).unwrap());
}

#[tokio::test]
async fn sv_01_input_is_null_and_the_environment_the_requested_one() {
    let stage = Stage::new();
    // The input's end comes at once, or this would never end.
    let mut request = stage.shell("cat; env", "findstr x&set");
    request.env.push(("ONE".into(), "1 and a half".into()));
    let (output, receipt) = stage.run(&request).await;
    let lines: Vec<&str> = output.lines().collect();
    assert!(lines.contains(&"ONE=1 and a half"), "{output}");
    let id = format!("HOLDFAST_ATTEMPT_ID={}", request.attempt_id);
    assert!(lines.contains(&id.as_str()), "{output}");
    // Cargo gave this to the test; the command's host is not its source of variables.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!output.contains("CARGO_MANIFEST_DIR"), "{output}");
    assert_eq!(receipt.code, Some(0));
}

#[tokio::test]
async fn a_command_that_can_not_be_executed_says_why_everywhere() {
    let stage = Stage::new();
    let mut request = stage.actor("sleep");
    request.program = stage.work("missing.exe").into();
    let (output, receipt) = stage.run(&request).await;
    assert!(receipt.spawn_error.unwrap().contains("missing.exe"));
    assert_eq!((output.as_str(), receipt.code), ("", None));
    let mut request = stage.actor("sleep");
    request.cwd = stage.work("missing");
    let (_, receipt) = stage.run(&request).await;
    assert!(receipt.spawn_error.unwrap().contains("working folder"));
}

#[tokio::test]
async fn c04_b_a_fenced_start_runs_nothing_everywhere() {
    let stage = Stage::new();
    let request = stage.actor("sleep");
    let folder = stage.prepare(&request);
    assert_eq!(stage.look(&request, true), ProcessEvidence::Fenced);
    let again = claim_void(&folder, &request.attempt_id, &request.boot_id, 1).unwrap();
    assert!(matches!(again, Claim::Lost(_)));
    let launched = launch(binary(), &folder).unwrap();
    let mut attachment = Attachment::attach(stage.target(&request), Some(launched), 0);
    assert_eq!(next(&mut attachment).await, Progress::NotStarted);
    assert!(prepare(&stage.effects(), &request).is_err());
    assert!(!stage.work("pids").exists());
}

#[tokio::test]
async fn c04_of_two_supervisors_one_runs_the_command_everywhere() {
    let stage = Stage::new();
    let request = stage.actor("sleep");
    let folder = stage.prepare(&request);
    let first = launch(binary(), &folder).unwrap();
    let mut second = launch(binary(), &folder).unwrap();
    let mut attachment = Attachment::attach(stage.target(&request), Some(first), 0);
    let pid = stage.pids(1)[0];
    attachment.stop().unwrap();
    ended(&mut attachment).await;
    second.wait().await;
    assert!(!lives(pid));
    assert_eq!(stage.pids(1).len(), 1);
}

#[tokio::test]
async fn a_folder_goes_after_the_end_and_not_before_everywhere() {
    let stage = Stage::new();
    let request = stage.actor("sleep");
    let folder = stage.folder(&request);
    let mut attachment = stage.start(&request);
    stage.pids(1);
    assert_eq!(remove(&folder).unwrap_err().code(), "still_running");
    attachment.stop().unwrap();
    ended(&mut attachment).await;
    remove(&folder).unwrap();
    assert!(!fs::exists(&folder).unwrap());
}

#[test]
fn sv_06_this_boot_and_this_process_have_one_name_each() {
    assert_eq!(boot_id().unwrap(), boot_id().unwrap());
    assert!(boot_id().unwrap().len() > 8);
    let own = holdfast_supervisor::process_start_time(std::process::id()).unwrap();
    assert!(own.is_some_and(|at| at > 0));
    let mut child = super::actor::child("nobody")
        .env_remove(super::actor::ROLE)
        .spawn()
        .unwrap();
    let pid = child.id();
    child.wait().unwrap();
    drop(child);
    until("an ended process has no start time", || {
        (!lives(pid)).then_some(())
    });
}
