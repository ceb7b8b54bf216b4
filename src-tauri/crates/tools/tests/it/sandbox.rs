//! The effect-free sandbox (TR-21): real commands in it, and the probe against sandboxes that leak.
//!
//! Where bubblewrap can't be used the tests prove the refusal instead, and say so.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_domain::recovery::process::EndedBy;
use holdfast_tools::{
    Progress, Registry, RegistryConfig, SandboxConfig, ToolKind, ToolOutcome, may_have_effects,
};
use serde_json::{Value, json};

use crate::place::supervisor;
use crate::place::{Place, wait_for};

/// Whether the system lets bubblewrap make namespaces here, asked of it directly.
fn can_be_made() -> bool {
    Command::new("bwrap")
        .args([
            "--ro-bind",
            "/",
            "/",
            "--unshare-all",
            "--proc",
            "/proc",
            "/bin/true",
        ])
        .output()
        .is_ok_and(|output| output.status.success())
        && has_landlock()
}

/// Linux 5.13 or later, which is what the inner stage needs.
fn has_landlock() -> bool {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(5), Some(13))
}

fn registry(place: &Place, program: Option<PathBuf>) -> Registry {
    Registry::new(RegistryConfig {
        sandbox: Some(SandboxConfig {
            supervisor: supervisor(),
            probe_folder: place.folder.path().to_path_buf(),
            program,
        }),
        ..RegistryConfig::default()
    })
    .unwrap()
}

/// A place with a sandbox; `None`, and the refusal proven, where there can be none.
fn with_sandbox() -> Option<Place> {
    let mut place = Place::new();
    place.registry = registry(&place, None);
    let refusal = place.registry.check_sandbox().err();
    assert_eq!(refusal.is_none(), can_be_made(), "{refusal:?}");
    let Some(refusal) = refusal else {
        return Some(place);
    };
    eprintln!("no sandbox here: {}", refusal.message);
    assert_eq!(refusal.code, "sandbox_unavailable");
    let call = json!({"command": "ls", "read_only": true});
    assert_eq!(place.refusal("shell", &call), "sandbox_unavailable");
    None
}

async fn look(place: &Place, command: &str) -> ToolOutcome {
    look_with(place, json!({"command": command, "read_only": true})).await
}

async fn look_with(place: &Place, arguments: Value) -> ToolOutcome {
    let prepared = place.prepare("shell", &arguments).unwrap();
    assert!(prepared.read_only && prepared.kind == ToolKind::Shell);
    let mut context = place.context(&prepared);
    context.supervisor_binary = supervisor();
    place.execute(&prepared, &context).await
}

fn git(folder: &Path, arguments: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=n", "-c", "user.email=e@x", "-C"])
        .arg(folder)
        .args(arguments)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[tokio::test]
async fn tr_21_diagnosis_works_in_the_sandbox() {
    let Some(place) = with_sandbox() else { return };
    place.put("kept.txt", "kept\n");
    git(&place.path(""), &["init", "-q"]);
    git(&place.path(""), &["add", "kept.txt"]);
    git(&place.path(""), &["commit", "-qm", "the first"]);
    // Git would like to write the index anew.
    place.put("kept.txt", "kept\n");
    place.put("new.txt", "new\n");
    let index = || fs::metadata(place.path(".git/index")).unwrap();
    let before = (index().ino(), index().mtime_nsec());
    let outcome = look(
        &place,
        "pwd; git log --format=%s; git status --short; ls; cat kept.txt; grep -c . /proc/self/status \
         >/dev/null && echo proc; ps -e -o comm= | sort -u | tr '\\n' ' '",
    )
    .await;
    assert_eq!(outcome.state, AttemptState::Completed, "{}", outcome.text);
    let root = place.workspace.root().display().to_string();
    for expected in [
        root.as_str(),
        "the first\n",
        "?? new.txt",
        "kept\n",
        "proc\n",
    ] {
        assert!(outcome.text.contains(expected), "{}", outcome.text);
    }
    assert!(
        !outcome.text.contains("cargo"),
        "processes of outside: {}",
        outcome.text
    );
    assert_eq!((index().ino(), index().mtime_nsec()), before);
    let receipt = outcome.exit.unwrap();
    assert_eq!((receipt.code, receipt.ended_by), (Some(0), EndedBy::Itself));
    assert!(outcome.survivors.is_empty(), "{:?}", outcome.survivors);
}

#[tokio::test]
async fn tr_21_a_command_that_writes_fails_like_any_other() {
    let Some(place) = with_sandbox() else { return };
    place.put("kept.txt", "kept\n");
    let meta = || {
        let meta = fs::metadata(place.path("kept.txt")).unwrap();
        (meta.mode(), meta.mtime_nsec(), meta.ctime_nsec())
    };
    let before = meta();
    for command in [
        "echo x > kept.txt",
        "echo x > new.txt",
        "rm kept.txt",
        "mkdir folder",
        "chmod 777 kept.txt",
        "touch kept.txt",
        "mv kept.txt other.txt",
        "echo 0 > /proc/sys/vm/drop_caches",
    ] {
        let outcome = look(&place, command).await;
        assert_eq!(
            (outcome.state, outcome.code),
            (AttemptState::Failed, Some("exit_status")),
            "{command}: {}",
            outcome.text
        );
        assert!(
            outcome.text.contains("Read-only file system")
                || outcome.text.contains("Permission denied"),
            "{command}: {}",
            outcome.text
        );
        assert_eq!(outcome.effect_summary, "");
    }
    assert_eq!((place.get("kept.txt").as_str(), meta()), ("kept\n", before));
    assert!(!place.path("new.txt").exists() && !place.path("folder").exists());
}

#[tokio::test]
async fn tr_21_outside_is_out_of_reach_and_keys_are_hidden() {
    let Some(place) = with_sandbox() else { return };
    // Beside the workspace, which lies in a temporary folder: not seen at all.
    let outside = place.outside("secret");
    let outcome = look(&place, &format!("cat {}", outside.display())).await;
    assert!(outcome.text.contains("No such file"), "{}", outcome.text);
    // The program's own data, within the workspace.
    let outcome = look(&place, "ls -A .data; cat .data/token").await;
    assert!(!outcome.text.contains("data secret"), "{}", outcome.text);
    assert_eq!(outcome.state, AttemptState::Failed);
    let outcome = look(&place, "cat \"$HOME\"/.ssh/* /etc/shadow; ls -A /run /tmp").await;
    assert!(!outcome.text.contains("PRIVATE") && !outcome.text.contains("root:"));
    // Temporary files are its own, and gone after it.
    let outcome = look(&place, "f=$(mktemp) && echo text > $f && cat $f && echo $f").await;
    assert_eq!(outcome.state, AttemptState::Completed, "{}", outcome.text);
    let scratch = outcome.text.lines().nth(1).unwrap();
    assert!(!Path::new(scratch).exists(), "{scratch}");
}

#[tokio::test]
async fn tr_21_a_named_pipe_and_a_socket_in_the_workspace_lead_nowhere() {
    let Some(place) = with_sandbox() else { return };
    let pipe = place.path("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let reading = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&pipe)
        .unwrap();
    let outcome = look(&place, "echo out > pipe").await;
    assert_eq!(outcome.state, AttemptState::Failed, "{}", outcome.text);
    rustix::io::ioctl_fionbio(&reading, true).unwrap();
    let got = std::io::Read::read(&mut &reading, &mut [0; 8]);
    assert!(got.is_err(), "nothing arrived");

    let _listener = std::os::unix::net::UnixListener::bind(place.path("socket")).unwrap();
    let connect = "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"socket\")'";
    let outcome = look(&place, &format!("command -v python3 || exit 9; {connect}")).await;
    assert_eq!(outcome.state, AttemptState::Failed, "{}", outcome.text);
    assert!(
        outcome.text.contains("not permitted") || outcome.text.contains("exit status 9"),
        "{}",
        outcome.text
    );
}

#[tokio::test]
async fn tr_21_the_environment_leads_nowhere() {
    let Some(place) = with_sandbox() else { return };
    let arguments = json!({"command": "env", "read_only": true});
    let prepared = place.prepare("shell", &arguments).unwrap();
    let mut context = place.context(&prepared);
    context.supervisor_binary = supervisor();
    let leading =
        ["SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS"].map(|name| (name.into(), "x".into()));
    context.environment.extend(leading);
    let outcome = place.execute(&prepared, &context).await;
    let lines: Vec<&str> = outcome.text.lines().collect();
    assert!(lines.contains(&"GIT_OPTIONAL_LOCKS=0"), "{}", outcome.text);
    assert!(lines.iter().any(|line| line.starts_with("TMPDIR=")));
    for name in ["SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS"] {
        assert!(!outcome.text.contains(name), "{}", outcome.text);
    }
}

#[tokio::test]
async fn tr_09_a_stopped_look_is_cancelled_and_a_look_out_of_time_failed() {
    let Some(place) = with_sandbox() else { return };
    let arguments = json!({"command": "echo begun; sleep 600", "read_only": true});
    let prepared = place.prepare("shell", &arguments).unwrap();
    let mut context = place.context(&prepared);
    context.supervisor_binary = supervisor();
    let printed = Arc::new(Mutex::new(String::new()));
    context.progress = Progress::to({
        let printed = Arc::clone(&printed);
        move |text| printed.lock().unwrap().push_str(text)
    });
    let cancel = context.cancel.clone();
    let watch = tokio::task::spawn_blocking(move || {
        wait_for("output", || printed.lock().unwrap().contains("begun"));
        cancel.cancel();
    });
    let (outcome, watched) = tokio::join!(place.execute(&prepared, &context), watch);
    watched.unwrap();
    assert_eq!(
        (outcome.state, outcome.code),
        (AttemptState::Cancelled, Some("cancelled"))
    );
    assert!(
        outcome.text.contains("nothing was changed"),
        "{}",
        outcome.text
    );
    assert!(!outcome.text.contains("effects may be partial"));

    let outcome = look_with(
        &place,
        json!({"command": "echo begun; sleep 600", "read_only": true, "timeout_s": 1}),
    )
    .await;
    assert_eq!(
        (outcome.state, outcome.code),
        (AttemptState::Failed, Some("timeout"))
    );
    assert_eq!(
        outcome.text,
        "begun\n[stopped at its time limit; it ran in the sandbox and changed nothing]\n"
    );
    assert_eq!(outcome.effect_summary, "");
}

#[tokio::test]
async fn tr_21_what_it_leaves_behind_ends_with_it() {
    let Some(place) = with_sandbox() else { return };
    let outcome = look(&place, "sleep 600 & setsid sleep 600 & echo done").await;
    assert_eq!(outcome.state, AttemptState::Completed, "{}", outcome.text);
    let carrying =
        || holdfast_supervisor::stragglers(&outcome.exit.as_ref().unwrap().attempt_id).unwrap();
    wait_for("the end of all of it", || carrying().is_empty());
}

/// A `bwrap` that changes what it is told: a shell script. `$folder` is where the targets are,
/// `options` and `command` what is said before and behind `--`.
fn altered(place: &Place, changes: &str) -> PathBuf {
    let script = place.folder.path().join("bwrap");
    let text = format!(
        "#!/bin/bash\nPATH=/usr/local/bin:/usr/bin:/bin\noptions=()\n\
         while [ \"$1\" != -- ]; do\n\
         \x20 [ \"$1\" = --chdir ] && folder=$2\n  options+=(\"$1\"); shift\ndone\nshift\n\
         command=(\"$@\")\n{changes}\nexec bwrap \"${{options[@]}}\" -- \"${{command[@]}}\"\n"
    );
    fs::write(&script, text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    script
}

/// Why the probe refuses a sandbox.
fn reason(place: &Place, program: PathBuf) -> String {
    let registry = registry(place, Some(program));
    let Err(refusal) = registry.check_sandbox() else {
        let script = place.folder.path().join("bwrap");
        panic!("it passed: {}", fs::read_to_string(script).unwrap());
    };
    assert_eq!(refusal.code, "sandbox_unavailable");
    // The verdict is kept.
    assert_eq!(registry.check_sandbox().unwrap_err(), refusal);
    let call = r#"{"command":"ls","read_only":true}"#;
    let refused = registry
        .prepare("shell", call, &place.workspace)
        .unwrap_err();
    assert_eq!(refused, refusal);
    let left: Vec<_> = fs::read_dir(place.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("sandbox-probe"))
        .collect();
    assert_eq!(left, Vec::<String>::new());
    refusal.message
}

const FOUND: &str = "its probe found effects that get through: ";

/// The effects that a refusal names.
fn leaks(message: &str) -> Vec<&str> {
    let (_, rest) = message
        .split_once(FOUND)
        .unwrap_or_else(|| panic!("{message}"));
    rest.split("; nothing was run")
        .next()
        .unwrap()
        .split(", ")
        .collect()
}

/// Without the inner stage: what bubblewrap runs is the command itself.
const BARE: &str = "command=(\"${command[@]:5}\")";

#[test]
fn tr_21_the_probe_finds_every_leak_and_names_it() {
    if with_sandbox().is_none() {
        return;
    }
    let place = Place::new();
    // A changed script that changes nothing passes: so it is the change that is found.
    let program = altered(&place, "");
    assert_eq!(registry(&place, Some(program)).check_sandbox(), Ok(()));

    let bind = |name: &str| format!("options+=(--bind \"$folder/{name}\" \"$folder/{name}\")");
    let cover = |name: &str| format!("options+=(--ro-bind /dev/null \"$folder/{name}\")");
    let shared = "for i in \"${!options[@]}\"; do case ${options[i]} in \
                  --unshare-all) options[i]=--unshare-net;; --proc) options[i]=--tmpfs;; esac; done\n\
                  options+=(--unshare-ipc --unshare-user-try --ro-bind /proc /proc)";
    let mut cases = vec![
        // What Landlock would prevent leaks only without the inner stage too.
        (
            format!(
                "{BARE}\n{}\n{}\n{}",
                cover("socket"),
                cover("pipe"),
                bind("write")
            ),
            "writing a file in the workspace",
        ),
        (bind("chmod"), "changing a file's mode"),
        (bind("chown"), "changing a file's owner"),
        (bind("utime"), "changing a file's times"),
        (
            format!("{BARE}\n{}", cover("pipe")),
            "connecting to a Unix socket of outside",
        ),
        ("options+=(--share-net)".to_owned(), "connecting over TCP"),
        (
            format!("{BARE}\n{}", cover("socket")),
            "writing into a named pipe",
        ),
        (shared.to_owned(), "signalling a process of outside"),
    ];
    let probe = place.path("probe");
    fs::write(&probe, "").unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    match rustix::fs::setxattr(&probe, "user.holdfast", b"1", flags) {
        Ok(()) => cases.push((bind("xattr"), "changing a file's extended attributes")),
        Err(error) => eprintln!("no extended attributes here to leak: {error}"),
    }
    if rustix::process::geteuid().is_root() {
        let changes = format!(
            "{BARE}\n{}\n{}\nfor i in \"${{!options[@]}}\"; do\n  \
             [ \"${{options[i]}} ${{options[i+1]}}\" = '--remount-ro /proc' ] && unset \
             'options[i]' 'options[i+1]'\ndone",
            cover("socket"),
            cover("pipe")
        );
        cases.push((changes, "changing a kernel setting"));
    }
    for (changes, leak) in cases {
        let message = reason(&place, altered(&place, &changes));
        assert_eq!(leaks(&message), [leak], "{message}");
    }
}

#[test]
fn tr_21_neither_half_is_enough() {
    if with_sandbox().is_none() {
        return;
    }
    let place = Place::new();
    // Mounts and namespaces alone.
    let message = reason(&place, altered(&place, BARE));
    let found = leaks(&message);
    for leak in [
        "connecting to a Unix socket of outside",
        "writing into a named pipe",
    ] {
        assert!(found.contains(&leak), "{message}");
    }
    // Landlock and the filter of sockets alone.
    let inner = supervisor();
    let alone = format!(
        "exec '{0}' confine /dev/shm '' -- '{0}' \"${{command[@]:6}}\"",
        inner.display()
    );
    let message = reason(&place, altered(&place, &alone));
    let found = leaks(&message);
    for leak in [
        "changing a file's mode",
        "changing a file's owner",
        "changing a file's times",
        "connecting over TCP",
        "signalling a process of outside",
    ] {
        assert!(found.contains(&leak), "{message}");
    }
}

#[test]
fn tr_21_a_sandbox_that_is_missing_or_fails_is_refused_with_its_reason() {
    let place = Place::new();
    let missing = reason(&place, place.path("not-there"));
    assert!(missing.contains("is not installed"), "{missing}");
    assert!(
        missing.contains("the package is called bubblewrap"),
        "{missing}"
    );
    assert!(missing.contains("nothing was run"), "{missing}");

    let failing = altered(
        &place,
        "echo 'bwrap: No permissions to create a namespace' >&2; exit 1",
    );
    let message = reason(&place, failing);
    assert!(
        message.contains("No permissions to create a namespace"),
        "{message}"
    );

    for silent in ["exit 0", "echo chmod prevented: yes; exit 0"] {
        let message = reason(&place, altered(&place, silent));
        assert!(message.contains("told nothing reliable"), "{message}");
    }
    // Without any at all.
    let none = Place::new();
    let call = json!({"command": "ls", "read_only": true});
    assert_eq!(none.refusal("shell", &call), "sandbox_unavailable");
}

#[test]
fn tr_21_which_calls_have_no_effect_is_told_by_their_arguments() {
    let place = Place::new();
    let both = json!({"command": "ls", "read_only": true, "background": true});
    assert_eq!(place.refusal("shell", &both), "arguments_wrong");
    for (name, arguments, expected) in [
        ("shell", r#"{"command":"ls","read_only":true}"#, false),
        ("shell", r#"{"command":"ls","read_only":false}"#, true),
        ("shell", r#"{"command":"ls"}"#, true),
        ("shell", r#"{"command":"ls","read_only":"true"}"#, true),
        (
            "shell",
            r#"{"command":"ls","read_only":true,"read_only":false}"#,
            true,
        ),
        ("shell", "", true),
        ("write_file", r#"{"read_only":true}"#, true),
        ("read_file", "{}", false),
    ] {
        assert_eq!(
            may_have_effects(name, arguments),
            expected,
            "{name} {arguments}"
        );
    }
}

#[tokio::test]
async fn tr_21_the_inner_stage_runs_nothing_in_a_folder_that_can_be_written() {
    let place = Place::new();
    let marker = place.path("ran");
    let output = Command::new(supervisor())
        .args(["confine", "/dev/shm"])
        .arg(place.path(""))
        .args(["--", "/bin/touch"])
        .arg(&marker)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(126));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(
        text.contains("not mounted read-only") && text.contains("nothing was run"),
        "{text}"
    );
    assert!(!marker.exists());
}
