//! The child host, played by a shell script that keeps the host's side of the bargain.

#![cfg(unix)]

use std::path::Path;

use holdfast_testkit::wait::{SOON, wait_until};
use holdfast_testkit::{Host, HostOptions};

/// A stand-in for `holdfast serve`: a ready line, a stop point, and an end on SIGTERM.
const STAND_IN: &str = r#"
trap 'exit 0' TERM
printf 'secret\n' > "$DATA/token"
echo "starting" >&2
printf '{"url":"http://127.0.0.1:9","tokenFile":"%s/token","pid":%s}\n' "$DATA" "$$"
[ -n "$HOLDFAST_STOP_AT" ] && printf '%s' "$HOLDFAST_STOP_AT" > "$HOLDFAST_STOP_FILE"
while :; do sleep 0.05; done
"#;

fn stand_in(folder: &Path, script: &str) -> HostOptions {
    let mut options = HostOptions::serve(folder, folder).env("DATA", &folder.to_string_lossy());
    options.binary = "sh".into();
    options.arguments = vec!["-c".to_owned(), script.to_owned()];
    options
}

#[test]
fn a_host_is_ready_parks_is_killed_and_starts_again() {
    let folder = tempfile::tempdir().unwrap();
    let parked = folder.path().join("parked");
    let options = stand_in(folder.path(), STAND_IN).stop_at("after_receipt", 2, &parked);
    let mut host = Host::start(options).unwrap();
    assert_eq!(host.url(), "http://127.0.0.1:9");
    assert_eq!(host.token(), "secret");
    host.wait_parked();
    assert_eq!(std::fs::read_to_string(&parked).unwrap(), "after_receipt:2");
    wait_until("standard error", SOON, || {
        host.stderr().contains("starting").then_some(())
    });

    let first = host.pid();
    let options = host.options().clone().without_stop();
    std::fs::remove_file(&parked).unwrap();
    host.restart_with(options).unwrap();
    assert_ne!(host.pid(), first);
    assert_eq!(host.term().unwrap().code(), Some(0));
    assert!(!parked.exists());
}

#[test]
fn a_host_that_fails_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let options = stand_in(folder.path(), "echo 'no such folder' >&2; exit 3");
    let error = Host::start(options).unwrap_err().to_string();
    assert!(error.contains("ended before it was ready"), "{error}");
}

#[test]
fn a_dropped_host_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let host = Host::start(stand_in(folder.path(), STAND_IN)).unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(host.pid()).unwrap()).unwrap();
    assert!(rustix::process::test_kill_process(pid).is_ok());
    drop(host);
    assert!(rustix::process::test_kill_process(pid).is_err());
}
