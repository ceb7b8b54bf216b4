//! What a command finds around itself (SV-01, SV-05), and what is kept of its output.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::PermissionsExt;

use holdfast_domain::recovery::process::{EndedBy, TreeProof};
use holdfast_supervisor::verify_output;
use rustix::process::{Pid, Signal};

use crate::stage::{Stage, ended, lines, root, signal, until};

#[tokio::test]
async fn sv_02_code_signal_output_and_times_are_in_the_receipt() {
    let stage = Stage::new();
    let (output, receipt) = stage.run(&stage.request("echo out; exit 7")).await;
    assert_eq!(output, "out\n");
    assert_eq!((receipt.code, receipt.signal), (Some(7), None));
    assert_eq!(receipt.ended_by, EndedBy::Itself);
    assert_eq!(receipt.tree_proof, TreeProof::Full);
    assert!(!receipt.output_truncated && receipt.output_length == 4);
    assert!(receipt.started_at > 0 && receipt.finished_at >= receipt.started_at);
    let (_, receipt) = stage.run(&stage.request("kill -9 $$")).await;
    assert_eq!((receipt.code, receipt.signal), (None, Some(9)));
}

#[tokio::test]
async fn the_order_of_both_streams_is_the_real_one() {
    let stage = Stage::new();
    let request =
        stage.request("i=0; while [ $i -lt 200 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done");
    let (output, _) = stage.run(&request).await;
    let expected: String = (0..200).map(|i| format!("o{i}\ne{i}\n")).collect();
    assert_eq!(output, expected);
}

#[tokio::test]
async fn a_large_output_is_told_whole_and_verifies() {
    let stage = Stage::new();
    let request = stage.request("yes 0123456789 | head -c 3000000");
    let (output, receipt) = stage.run(&request).await;
    assert_eq!(output.len(), 3_000_000);
    assert!(output.starts_with("0123456789\n0123456789\n"));
    assert!(verify_output(&stage.folder(&request), &receipt).unwrap());
}

#[tokio::test]
async fn sv_01_input_is_null_and_there_is_no_terminal() {
    let stage = Stage::new();
    let request = stage.request(
        "readlink /proc/self/fd/0; cat; ls /proc/self/fd | tr '\\n' ' '; echo;
         if (: < /dev/tty) 2>/dev/null; then echo terminal; else echo none; fi",
    );
    let (output, _) = stage.run(&request).await;
    // `ls` has its own listing open as 3.
    assert_eq!(output, "/dev/null\n0 1 2 3 \nnone\n");
}

#[tokio::test]
async fn sv_01_the_environment_is_exactly_the_requested_one() {
    let stage = Stage::new();
    let mut request = stage.request("");
    request.program = "/usr/bin/env".into();
    request.args = vec!["-0".into()];
    request.env = vec![
        ("ONE".into(), "1".into()),
        ("TWO".into(), OsString::from_vec(vec![b'a', 0xff, b'\n'])),
        // Another attempt's, as when the program runs inside a command of its own.
        ("HOLDFAST_ATTEMPT_ID".into(), "outer".into()),
    ];
    stage.run(&request).await;
    let output = fs::read(stage.folder(&request).join("output")).unwrap();
    let mut variables: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
    variables.sort();
    let id = format!("HOLDFAST_ATTEMPT_ID={}", request.attempt_id);
    assert_eq!(
        variables,
        [&b""[..], id.as_bytes(), b"ONE=1", b"TWO=a\xff\n"]
    );
}

#[tokio::test]
async fn sv_01_umask_and_limits_are_the_users_and_signals_the_default() {
    let stage = Stage::new();
    let request =
        stage.request("umask; ulimit -n; sed -n 's/^Sig\\(Blk\\|Ign\\):\\t//p' /proc/self/status");
    let folder = stage.prepare(&request);
    let prelude = "umask 0027; ulimit -n 99
        trap '' HUP INT QUIT USR1 USR2 TSTP TTIN TTOU PIPE ALRM PROF VTALRM XCPU XFSZ URG WINCH IO";
    let mut child = stage.launch_by_shell(prelude, &folder);
    assert!(child.wait().unwrap().success());
    let output = fs::read_to_string(folder.join("output")).unwrap();
    let found: Vec<&str> = output.lines().collect();
    assert_eq!(found[..2], ["0027", "99"]);
    for mask in &found[2..4] {
        // 32 and 33 belong to the C library, which ignores them in what it spawns.
        let mask = u64::from_str_radix(mask, 16).unwrap() & !(3 << 31);
        assert_eq!(mask, 0, "{output}");
    }
    for name in ["output", "exit", "start", "alive"] {
        let mode = fs::metadata(folder.join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o600, "{name}");
    }
}

#[tokio::test]
async fn sv_01_the_supervisor_keeps_nothing_of_its_launcher() {
    let stage = Stage::new();
    let leaked = stage.path().join("leaked");
    let request = stage.request("until [ -e gate ]; do sleep 0.02; done");
    let folder = stage.prepare(&request);
    let prelude = format!("exec 7> '{}'", leaked.display());
    let mut child = stage.launch_by_shell(&prelude, &folder);
    let supervisor = stage.supervisor_of(&request);
    let process = format!("/proc/{supervisor}");
    assert_eq!(
        fs::read_link(format!("{process}/cwd")).unwrap().as_os_str(),
        "/"
    );
    let mut open = Vec::new();
    for entry in fs::read_dir(format!("{process}/fd")).unwrap() {
        let path = entry.unwrap().path();
        if let Ok(target) = fs::read_link(&path) {
            let number: u32 = path.file_name().unwrap().to_str().unwrap().parse().unwrap();
            open.push((number, target));
        }
    }
    assert!(open.iter().all(|(_, target)| *target != leaked), "{open:?}");
    let streams: Vec<_> = open.iter().filter(|(number, _)| *number < 3).collect();
    assert_eq!(streams.len(), 3);
    assert!(
        streams
            .iter()
            .all(|(_, target)| target.as_os_str() == "/dev/null")
    );
    let pid = Pid::from_raw(supervisor as i32).unwrap();
    assert_eq!(rustix::process::getsid(Some(pid)).unwrap(), pid);
    fs::write(stage.work("gate"), "").unwrap();
    assert!(child.wait().unwrap().success());
}

#[tokio::test]
async fn sv_01_a_launched_supervisor_has_no_environment() {
    let stage = Stage::new();
    let request = stage.request("until [ -e gate ]; do sleep 0.02; done");
    let mut attachment = stage.start(&request);
    let supervisor = stage.supervisor_of(&request);
    let environment = fs::read(format!("/proc/{supervisor}/environ")).unwrap();
    assert!(
        environment.is_empty(),
        "{}",
        String::from_utf8_lossy(&environment)
    );
    fs::write(stage.work("gate"), "").unwrap();
    ended(&mut attachment).await;
}

#[tokio::test]
async fn sv_05_the_command_dies_of_memory_before_its_supervisor() {
    let stage = Stage::new();
    let own: i32 = fs::read_to_string("/proc/self/oom_score_adj")
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    let request = stage
        .request("cat /proc/self/oom_score_adj > score; until [ -e gate ]; do sleep 0.02; done");
    let mut attachment = stage.start(&request);
    let command: i32 = lines(&stage.work("score"), 1)[0].parse().unwrap();
    let supervisor = stage.supervisor_of(&request);
    let kept = fs::read_to_string(format!("/proc/{supervisor}/oom_score_adj")).unwrap();
    assert_eq!(kept.trim(), own.to_string());
    assert_eq!(command, (own + 500).min(1000));
    fs::write(stage.work("gate"), "").unwrap();
    ended(&mut attachment).await;
}

#[tokio::test]
async fn a_command_that_cannot_be_executed_says_why() {
    let stage = Stage::new();
    let mut request = stage.request("");
    request.program = "/no/such/program".into();
    let (output, receipt) = stage.run(&request).await;
    let reason = receipt.spawn_error.unwrap();
    assert!(
        reason.contains("/no/such/program") && reason.contains("No such file"),
        "{reason}"
    );
    assert_eq!(
        (output.as_str(), receipt.code, receipt.tree_proof),
        ("", None, TreeProof::Full)
    );
    let mut request = stage.request("true");
    request.cwd = stage.path().join("missing");
    let (_, receipt) = stage.run(&request).await;
    assert!(receipt.spawn_error.unwrap().contains("working folder"));
}

#[tokio::test]
async fn output_past_the_cap_is_discarded_and_the_command_goes_on() {
    let stage = Stage::new();
    let mut request = stage.request("yes abc | head -c 500000; echo end > finished; exit 5");
    request.output_cap = 1001;
    let (output, receipt) = stage.run(&request).await;
    assert_eq!(output, "abc\n".repeat(251)[..1001]);
    assert!(receipt.output_truncated);
    assert_eq!((receipt.output_length, receipt.code), (1001, Some(5)));
    assert!(verify_output(&stage.folder(&request), &receipt).unwrap());
    assert_eq!(lines(&stage.work("finished"), 1), ["end"]);
}

#[tokio::test]
async fn c32_a_write_that_fails_marks_the_output_truncated_and_loses_nothing_else() {
    let stage = Stage::new();
    // The shell's own limit on file sizes, in blocks of 512 bytes.
    let request = stage.request("yes abc | head -c 500000; exit 6");
    let folder = stage.prepare(&request);
    let mut child = stage.launch_by_shell("ulimit -f 100", &folder);
    assert!(child.wait().unwrap().success());
    let receipt = match stage.look(&request) {
        holdfast_domain::recovery::process::ProcessEvidence::Exited {
            receipt,
            output_incomplete: false,
            alive: false,
        } => receipt,
        other => panic!("{other:?}"),
    };
    assert!(receipt.output_truncated);
    assert_eq!((receipt.output_length, receipt.code), (51_200, Some(6)));
}

#[tokio::test]
async fn c32_a_full_disk_marks_the_output_truncated_and_the_exit_is_known() {
    let stage = Stage::new();
    let disk = stage.effects();
    fs::create_dir(&disk).unwrap();
    let mounted = root()
        && std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs"])
            .arg(&disk)
            .status()
            .is_ok_and(|status| status.success());
    if !mounted {
        eprintln!(
            "not run: a small file system can't be mounted here; the size limit's test stands in for it"
        );
        return;
    }
    let request = stage.request("yes abc | head -c 4000000; echo end > finished; exit 4");
    let (output, receipt) = stage.run(&request).await;
    let verified = verify_output(&stage.folder(&request), &receipt);
    until("the disk is free again", || {
        std::process::Command::new("umount")
            .arg(&disk)
            .output()
            .ok()?
            .status
            .success()
            .then_some(())
    });
    assert!(receipt.output_truncated && verified.unwrap());
    assert_eq!(receipt.code, Some(4));
    assert!(
        output.len() > 500_000 && output.len() < 1 << 20,
        "{}",
        output.len()
    );
    assert_eq!(lines(&stage.work("finished"), 1), ["end"]);
}

#[tokio::test]
async fn a_stray_signal_does_not_kill_the_supervisor() {
    let stage = Stage::new();
    let request = stage.request("until [ -e gate ]; do sleep 0.02; done; echo done");
    let mut attachment = stage.start(&request);
    let supervisor = stage.supervisor_of(&request);
    for stray in [Signal::USR1, Signal::USR2, Signal::ALARM, Signal::PIPE] {
        signal(supervisor, stray);
    }
    fs::write(stage.work("gate"), "").unwrap();
    let (output, receipt) = ended(&mut attachment).await;
    assert_eq!((output.as_str(), receipt.code), ("done\n", Some(0)));
}
