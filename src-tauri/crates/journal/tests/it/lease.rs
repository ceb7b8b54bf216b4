//! One writer per session, over real processes; what a killed one leaves blocks nobody.
//!
//! A test that needs a second process starts this test program again, with that one test and a role
//! in the environment.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;

use holdfast_files::Disk;
use holdfast_journal::{Holder, Lease, Log, copy_session, holder, read_only};

use crate::session::{ID, Session, lines, me, note, notes, record, scaled, seen};

const ROLE: &str = "HOLDFAST_JOURNAL_TEST_FOLDER";

/// The folder to work on, when this process is the second one of a test.
fn second_process() -> Option<PathBuf> {
    std::env::var_os(ROLE).map(PathBuf::from)
}

/// Says something to the first process.
fn say(text: &str) {
    let mut out = std::io::stdout();
    writeln!(out, "\nsaid:{text}").unwrap();
    out.flush().unwrap();
}

/// Waits until the first process closes this one's standard input.
fn wait_for_the_end() {
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).unwrap();
}

struct Second {
    child: Child,
    input: Option<ChildStdin>,
    said: Box<dyn Iterator<Item = String>>,
}

impl Second {
    fn start(test: &str, session: &Session) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--nocapture", "--test-threads=1"])
            .env(ROLE, &session.folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let said = BufReader::new(child.stdout.take().unwrap())
            .lines()
            .map_while(Result::ok)
            .filter_map(|line| {
                line.strip_prefix("said:")
                    .map(|text| text.trim().to_owned())
            });
        Self {
            child,
            input,
            said: Box::new(said),
        }
    }

    fn hear(&mut self) -> String {
        self.said.next().expect("the second process speaks")
    }

    /// SIGKILL on Unix, TerminateProcess on Windows.
    fn kill(mut self) -> Vec<String> {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.said.by_ref().collect()
    }

    fn end(mut self) {
        drop(self.input.take());
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Second {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn c26_a_second_process_is_told_the_holder_and_may_read_or_copy() {
    if let Some(folder) = second_process() {
        let refused = Lease::acquire(&folder, &me()).unwrap_err();
        say(refused.code());
        say(&refused.to_string());
        let read = read_only(&folder, ID).unwrap();
        say(&read.entries.len().to_string());
        let copy = folder.with_file_name("copy");
        let lease = Lease::create(&copy, &me()).unwrap();
        let storage: Arc<dyn holdfast_files::Storage> = Arc::new(Disk);
        let copied = copy_session(&storage, &folder, ID, &lease, "copy").unwrap();
        say(&copied.records.to_string());
        let mut opened = Log::open(storage, lease, "copy").unwrap();
        let entries = opened.log.append(9, &[note(3)]).unwrap();
        say(&entries[0].seq.to_string());
        return;
    }
    let session = Session::new();
    let mut log = session.create();
    log.append(1, &[note(1), note(2)]).unwrap();
    let before = session.bytes();
    let named = std::fs::read(session.folder.join("holder.json")).unwrap();
    let mut second = Second::start(
        "lease::c26_a_second_process_is_told_the_holder_and_may_read_or_copy",
        &session,
    );
    assert_eq!(second.hear(), "session_held");
    let message = second.hear();
    let pid = std::process::id().to_string();
    assert!(
        message.contains(&format!("process {pid} on here")),
        "{message}"
    );
    assert_eq!(second.hear(), "3");
    assert_eq!(second.hear(), "3");
    assert_eq!(second.hear(), "4");
    second.end();
    assert_eq!(session.bytes(), before, "nothing is overwritten");
    assert_eq!(
        std::fs::read(session.folder.join("holder.json")).unwrap(),
        named
    );
    log.append(2, &[note(3)]).unwrap();
    drop(log);
    assert_eq!(seen(&session.open().entries), notes(3));
}

#[test]
fn c25_what_a_killed_process_left_behind_does_not_block() {
    if let Some(folder) = second_process() {
        let lease = Lease::create(&folder, &me()).unwrap();
        let mut log = Log::create(Arc::new(Disk), lease, ID, 1, record("header", 0)).unwrap();
        log.append(2, &[note(1)]).unwrap();
        say("ready");
        wait_for_the_end();
        return;
    }
    let session = Session::new();
    let mut second = Second::start(
        "lease::c25_what_a_killed_process_left_behind_does_not_block",
        &session,
    );
    assert_eq!(second.hear(), "ready");
    let refused = Lease::acquire(&session.folder, &me()).unwrap_err();
    assert_eq!(refused.code(), "session_held");
    let killed = holder(&session.folder).unwrap();
    assert_eq!(killed.pid, second.child.id());
    second.kill();
    assert!(session.folder.join("lock").exists());
    assert_eq!(holder(&session.folder), Some(killed));
    let opened = session.open();
    assert_eq!(seen(&opened.entries), notes(1));
    assert_eq!(holder(&session.folder), Some(me()));
}

#[test]
fn c25_a_process_killed_while_it_appends_loses_nothing_acknowledged() {
    if let Some(folder) = second_process() {
        let lease = Lease::acquire(&folder, &me()).unwrap();
        let opened = Log::open(Arc::new(Disk), lease, ID).unwrap();
        let mut log = opened.log;
        loop {
            let next = log.position().seq;
            log.append(next, &[note(next)]).unwrap();
            say(&next.to_string());
        }
    }
    let session = Session::with_notes(0);
    let mut acknowledged = 0;
    for round in 0..scaled(5) {
        let mut second = Second::start(
            "lease::c25_a_process_killed_while_it_appends_loses_nothing_acknowledged",
            &session,
        );
        for _ in 0..=round % 7 {
            acknowledged = second.hear().parse().unwrap();
        }
        if let Some(last) = second.kill().last() {
            acknowledged = last.parse().unwrap_or(acknowledged);
        }
        let opened = session.open();
        let count = opened.entries.len() as u64 - 1;
        assert!(count >= acknowledged, "{count} of {acknowledged}");
        assert_eq!(seen(&opened.entries), notes(count));
        assert!(opened.damage.is_empty());
    }
}

#[test]
fn a_lease_is_given_back_when_it_is_dropped() {
    let session = Session::with_notes(1);
    let lease = Lease::acquire(&session.folder, &me()).unwrap();
    let refused = Lease::acquire(&session.folder, &me()).unwrap_err();
    assert_eq!(refused.code(), "session_held");
    drop(lease);
    assert_eq!(holder(&session.folder), None);
    assert!(session.folder.join("lock").exists());
    Lease::acquire(&session.folder, &me()).unwrap();
}

#[test]
fn a_holder_that_can_not_be_read_is_not_guessed() {
    let session = Session::with_notes(1);
    let _lease = Lease::acquire(&session.folder, &me()).unwrap();
    for text in ["", "{\"pid\":1", "[]"] {
        std::fs::write(session.folder.join("holder.json"), text).unwrap();
        let refused = Lease::acquire(&session.folder, &me()).unwrap_err();
        assert_eq!(refused.code(), "session_held");
        assert!(refused.to_string().contains("left no name"), "{refused}");
    }
}

#[test]
fn the_name_of_an_earlier_holder_is_replaced() {
    let session = Session::with_notes(1);
    let earlier = Holder {
        pid: 1,
        host: "elsewhere".to_owned(),
        since: 1,
        socket: None,
    };
    let text = serde_json::to_vec(&earlier).unwrap();
    std::fs::write(session.folder.join("holder.json"), text).unwrap();
    let _lease = Lease::acquire(&session.folder, &me()).unwrap();
    assert_eq!(holder(&session.folder), Some(me()));
}

#[test]
fn an_open_that_fails_gives_the_lease_back() {
    let session = Session::with_notes(1);
    let lease = Lease::acquire(&session.folder, &me()).unwrap();
    Log::open(Arc::new(Disk), lease, "other").unwrap_err();
    let opened = session.open();
    assert_eq!(lines(&session.bytes()).len(), opened.entries.len());
}
