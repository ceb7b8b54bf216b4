//! Tunnels through the system's ssh, to a real sshd on loopback.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use holdfast_api::session::{CreateSession, Submit};
use holdfast_api::{Selector, SessionHost};
use holdfast_remote::{
    Condition, Connection, ConnectionOptions, Destination, FrameSink, RemoteHost, Tunnel,
};
use holdfast_testkit::Step;
use holdfast_testkit::wait::{SOON, until, wait_until};
use serde_json::Value;

use super::stage::Kept;
use crate::agent::scene::{Ground, Plan, binary, eventually};

/// A machine that is reached by ssh: this one.
struct Machine {
    ground: Ground,
    sshd: Child,
    port: u16,
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(
        output.status.success(),
        "{program}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// An sshd that answers on its port; `None` when somebody else was faster at that port.
fn listening(at: &impl Fn(&str) -> String) -> Option<(Child, u16)> {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nAuthorizedKeysFile {}\n\
         PidFile none\nUsePAM no\nStrictModes no\nPasswordAuthentication no\n\
         KbdInteractiveAuthentication no\nPermitRootLogin yes\nMaxStartups 100\n",
        at("host"),
        at("authorized")
    );
    std::fs::write(at("sshd_config"), config).unwrap();
    let mut sshd = Command::new("/usr/sbin/sshd")
        .args(["-D", "-e", "-f", &at("sshd_config")])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(at("sshd.log")).unwrap())
        .spawn()
        .unwrap();
    wait_until("sshd, or its end", SOON, || {
        if sshd.try_wait().unwrap().is_some() {
            return Some(false);
        }
        let log = std::fs::read_to_string(at("sshd.log")).unwrap_or_default();
        log.contains("Server listening on 127.0.0.1")
            .then_some(true)
    })
    .then_some((sshd, port))
}

impl Machine {
    fn start() -> Self {
        let ground = Ground::new(&Plan::default());
        let folder = ground.folder.path().to_owned();
        let at = |name: &str| folder.join(name).to_string_lossy().into_owned();
        for key in ["host", "person", "stranger"] {
            run(
                "ssh-keygen",
                &["-q", "-t", "ed25519", "-N", "", "-f", &at(key)],
            );
        }
        std::fs::copy(at("person.pub"), at("authorized")).unwrap();
        // Where sshd separates its privileges when root starts it.
        let _ = std::fs::create_dir_all("/run/sshd");
        let (sshd, port) = (0..8).find_map(|_| listening(&at)).unwrap_or_else(|| {
            panic!("sshd does not listen: {}", text(Path::new(&at("sshd.log"))))
        });
        let host_key = text(Path::new(&at("host.pub")));
        std::fs::write(at("known"), format!("[127.0.0.1]:{port} {host_key}")).unwrap();
        let script = format!(
            "#!/bin/sh\nHOLDFAST_HOME='{}' exec '{}' \"$@\"\n",
            ground.data.display(),
            binary().display()
        );
        std::fs::write(at("far-holdfast"), script).unwrap();
        run("chmod", &["755", &at("far-holdfast")]);
        Self { ground, sshd, port }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.ground.folder.path().join(name)
    }

    /// Reached with this key, this list of known machines and this program.
    fn destination(&self, key: &str, known: &str, program: &str) -> Destination {
        let config = self.at(&format!("ssh-{key}-{known}"));
        let written = format!(
            "Host box\nHostName 127.0.0.1\nPort {}\nIdentityFile {}\nIdentitiesOnly yes\n\
             IdentityAgent none\nUserKnownHostsFile {}\nGlobalKnownHostsFile /dev/null\n\
             StrictHostKeyChecking yes\n",
            self.port,
            self.at(key).display(),
            self.at(known).display()
        );
        std::fs::write(&config, written).unwrap();
        Destination {
            destination: "box".to_owned(),
            program: self.at(program).to_string_lossy().into_owned(),
            ssh_arguments: vec!["-F".to_owned(), config.to_string_lossy().into_owned()],
        }
    }

    fn connect(&self, destination: Destination) -> RemoteHost {
        let kept: Arc<dyn FrameSink> = Arc::<Kept>::default();
        let link = Tunnel::new(destination, Duration::from_secs(45)).unwrap();
        RemoteHost::new(Connection::start(ConnectionOptions {
            link: Arc::new(link),
            sink: kept,
        }))
    }

    /// What the host in the background says of itself.
    fn line(&self) -> Option<Value> {
        let text = std::fs::read_to_string(self.ground.data.join("serve.json")).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Ends what serves logins: the connections that stand.
    fn drop_connections(&self) {
        let own = i64::from(self.sshd.id());
        for pid in children_of(own) {
            kill(pid);
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.drop_connections();
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
        if let Some(pid) = self.line().and_then(|line| line["pid"].as_i64()) {
            kill(pid);
        }
    }
}

fn kill(pid: i64) {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
    }
}

fn children_of(pid: i64) -> Vec<i64> {
    let file = format!("/proc/{pid}/task/{pid}/children");
    let children = std::fs::read_to_string(file).unwrap_or_default();
    children
        .split_whitespace()
        .filter_map(|word| word.parse().ok())
        .collect()
}

async fn stands(host: &RemoteHost, what: &str, wanted: impl Fn(&Condition) -> bool) -> Condition {
    until(what, SOON, || {
        let condition = host.connection().view().condition;
        wanted(&condition).then_some(condition)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_36_a_tunnel_finds_or_starts_a_host_and_comes_back_to_the_same_one() {
    let machine = Machine::start();
    let host = machine.connect(machine.destination("person", "known", "far-holdfast"));
    stands(&host, "the connection", |condition| {
        *condition == Condition::Connected
    })
    .await;
    let line = machine.line().unwrap();
    let created = host
        .create_session(CreateSession {
            workspace: Some(machine.ground.workspace.to_string_lossy().into_owned()),
            ..CreateSession::default()
        })
        .await
        .unwrap();
    host.connection().bind(&created.session_path);
    let selector = Selector::of(&created.session_id);
    machine.ground.model.push(Step::text("done").held("end"));
    let submit = Submit {
        input: "go".to_owned(),
        submission_id: None,
    };
    let turn = host.submit(&selector, submit).await.unwrap();
    machine.drop_connections();
    stands(&host, "the drop", |condition| {
        *condition != Condition::Connected
    })
    .await;
    host.connection().retry_now();
    stands(&host, "the way back", |condition| {
        *condition == Condition::Connected
    })
    .await;
    assert_eq!(machine.line(), Some(line), "the host went on");
    machine.ground.model.release("end");
    eventually("the turn's end", SOON, async || {
        let status = host.status(&selector).await.ok()?;
        let state = status.runtime_state?;
        (!state.running && state.turn_id == turn.turn_id).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rs_36_what_a_person_has_to_mend_is_told_apart_from_a_drop_and_not_tried_again() {
    let machine = Machine::start();
    std::fs::write(machine.at("nobody-known"), "").unwrap();
    let other = text(&machine.at("person.pub"));
    let changed = format!("[127.0.0.1]:{} {other}", machine.port);
    std::fs::write(machine.at("changed"), changed).unwrap();
    for (key, known, program, code) in [
        ("stranger", "known", "far-holdfast", "ssh_auth"),
        ("person", "nobody-known", "far-holdfast", "ssh_host_key"),
        ("person", "changed", "far-holdfast", "ssh_host_key"),
        ("person", "known", "no-such-program", "ssh_program_missing"),
    ] {
        let host = machine.connect(machine.destination(key, known, program));
        let condition = stands(&host, code, |condition| *condition != Condition::Connecting).await;
        let Condition::Refused { code: found, .. } = condition else {
            panic!("{code}: {condition:?}");
        };
        assert_eq!(found, code);
    }
    // Nobody listens: that is a drop.
    let mut destination = machine.destination("person", "known", "far-holdfast");
    destination
        .ssh_arguments
        .extend(["-p".to_owned(), "1".to_owned()]);
    let host = machine.connect(destination);
    let condition = stands(&host, "the drop", |condition| {
        *condition != Condition::Connecting
    })
    .await;
    assert!(
        matches!(&condition, Condition::Waiting { code, .. } if code == "ssh_dropped"),
        "{condition:?}"
    );
}

#[tokio::test]
async fn a_host_in_the_background_is_one_for_its_folder() {
    let ground = Ground::new(&Plan::default());
    let start = || {
        let mut command = Command::new(binary());
        command
            .args([
                "--data",
                &ground.data.to_string_lossy(),
                "serve",
                "--detach",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command.spawn().unwrap()
    };
    let started: Vec<Child> = (0..4).map(|_| start()).collect();
    let lines: Vec<Value> = started
        .into_iter()
        .map(|child| {
            let output = child.wait_with_output().unwrap();
            assert!(
                output.status.success(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            serde_json::from_slice(&output.stdout).unwrap()
        })
        .collect();
    assert!(lines.iter().all(|line| *line == lines[0]), "{lines:?}");
    let pid = lines[0]["pid"].as_i64().unwrap();
    kill(pid);
    let process = PathBuf::from(format!("/proc/{pid}"));
    wait_until("its end", SOON, || (!process.exists()).then_some(()));
    // The next one is another, although the earlier one's line is still there.
    let output = start().wait_with_output().unwrap();
    let line: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_ne!(line["pid"], lines[0]["pid"]);
    kill(line["pid"].as_i64().unwrap());
}
