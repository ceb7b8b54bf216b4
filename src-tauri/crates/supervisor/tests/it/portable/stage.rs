//! A place for one test, and the ways to run a command there, on any system.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use holdfast_domain::recovery::process::{ExitReceipt, ProcessEvidence};
use holdfast_supervisor::{
    Attachment, HostIdentity, OnHostLoss, PROTOCOL, Progress, Request, Target, boot_id, launch,
    look, prepare, process_start_time,
};

use super::actor::{ARGUMENTS, FOLDER, ROLE};

/// No test waits longer for anything.
const DEADLINE: Duration = Duration::from_secs(240);

pub(crate) struct Stage {
    root: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("work")).unwrap();
        Self { root }
    }

    pub(crate) fn effects(&self) -> PathBuf {
        self.root.path().join("effects")
    }

    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.root.path().join("work").join(name)
    }

    fn request(&self, program: OsString, args: Vec<OsString>) -> Request {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Request {
            protocol: PROTOCOL,
            attempt_id: format!("p{count:015x}{:016x}", std::process::id()),
            argument_digest: format!("{count:064x}"),
            program,
            args,
            cwd: self.root.path().join("work"),
            env: ["PATH", "SystemRoot", "SystemDrive", "TEMP", "TMP"]
                .iter()
                .filter_map(|name| Some(((*name).into(), std::env::var_os(name)?)))
                .collect(),
            timeout_ms: None,
            grace_ms: 2000,
            output_cap: 16 << 20,
            on_host_loss: OnHostLoss::Finish,
            host: HostIdentity::current().unwrap(),
            boot_id: boot_id().unwrap(),
            runtime_folder: None,
        }
    }

    /// A command of the system's shell: its text for `sh`, and for `cmd`.
    pub(crate) fn shell(&self, sh: &str, cmd: &str) -> Request {
        if cfg!(windows) {
            let args = ["/D", "/S", "/C", cmd].map(OsString::from);
            self.request("cmd".into(), args.to_vec())
        } else {
            let args = ["-c", sh].map(OsString::from);
            self.request("/bin/sh".into(), args.to_vec())
        }
    }

    /// This program in a role.
    pub(crate) fn actor(&self, role: &str) -> Request {
        let program = std::env::current_exe().unwrap().into_os_string();
        let mut request = self.request(program, ARGUMENTS.map(OsString::from).to_vec());
        request.env.push((ROLE.into(), role.into()));
        request
            .env
            .push((FOLDER.into(), self.root.path().join("work").into()));
        request
    }

    pub(crate) fn prepare(&self, request: &Request) -> PathBuf {
        prepare(&self.effects(), request).unwrap()
    }

    pub(crate) fn folder(&self, request: &Request) -> PathBuf {
        self.effects().join(&request.attempt_id)
    }

    pub(crate) fn start(&self, request: &Request) -> Attachment {
        let folder = self.prepare(request);
        let launched = launch(binary(), &folder).unwrap();
        Attachment::attach(self.target(request), Some(launched), 0)
    }

    pub(crate) fn target(&self, request: &Request) -> Target {
        Target {
            folder: self.folder(request),
            attempt_id: request.attempt_id.clone(),
            argument_digest: request.argument_digest.clone(),
            boot_id: request.boot_id.clone(),
            runtime_folder: None,
        }
    }

    pub(crate) async fn run(&self, request: &Request) -> (String, ExitReceipt) {
        ended(&mut self.start(request)).await
    }

    pub(crate) fn look(&self, request: &Request, fence: bool) -> ProcessEvidence {
        look(
            &self.folder(request),
            &request.attempt_id,
            &request.argument_digest,
            &request.boot_id,
            fence,
        )
        .unwrap()
    }

    /// The pids that actors noted, once there are this many.
    pub(crate) fn pids(&self, count: usize) -> Vec<u32> {
        self.lines("pids", count)
            .iter()
            .map(|line| line.parse().unwrap())
            .collect()
    }

    /// Waits until a file holds this many complete lines.
    pub(crate) fn lines(&self, name: &str, count: usize) -> Vec<String> {
        let path = self.work(name);
        until(&format!("{name} has {count} lines"), || {
            let text = fs::read_to_string(&path).ok()?;
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            (text.ends_with('\n') && lines.len() >= count).then_some(lines)
        })
    }
}

pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_holdfast-supervisor"))
}

/// Whether a process lives.
pub(crate) fn lives(pid: u32) -> bool {
    process_start_time(pid).unwrap().is_some()
}

pub(crate) async fn next(attachment: &mut Attachment) -> Progress {
    tokio::time::timeout(DEADLINE, attachment.next())
        .await
        .expect("something should have happened")
        .unwrap()
}

/// Reads to the end of the call; line ends as on Unix.
pub(crate) async fn ended(attachment: &mut Attachment) -> (String, ExitReceipt) {
    let mut output = Vec::new();
    loop {
        match next(attachment).await {
            Progress::Output(more) => output.extend(more),
            Progress::Exited(receipt) => {
                let text = String::from_utf8_lossy(&output).replace("\r\n", "\n");
                return (text, receipt);
            }
            other => panic!("unexpected: {other:?}"),
        }
    }
}

/// Waits for a condition, and fails at the deadline.
pub(crate) fn until<T>(what: &str, mut condition: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(value) = condition() {
            return value;
        }
        assert!(since.elapsed() < DEADLINE, "waited in vain until {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}
