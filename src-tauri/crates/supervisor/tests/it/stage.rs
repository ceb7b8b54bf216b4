//! A place for one test: effects, sockets, a workspace; and the ways to run a command there.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use holdfast_domain::recovery::process::{ExitReceipt, ProcessEvidence};
use holdfast_supervisor::{
    Attachment, HostIdentity, OnHostLoss, PROTOCOL, Progress, Request, SupervisorError, Target,
    boot_id, launch, look, prepare,
};

/// No test waits longer for anything.
pub(crate) const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) struct Stage {
    root: tempfile::TempDir,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for name in ["run", "work"] {
            fs::create_dir(root.path().join(name)).unwrap();
            fs::set_permissions(root.path().join(name), fs::Permissions::from_mode(0o700)).unwrap();
        }
        Self { root }
    }

    pub(crate) fn path(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn effects(&self) -> PathBuf {
        self.root.path().join("effects")
    }

    pub(crate) fn work(&self, name: &str) -> PathBuf {
        self.root.path().join("work").join(name)
    }

    /// A shell command with a fresh attempt id.
    pub(crate) fn request(&self, command: &str) -> Request {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Request {
            protocol: PROTOCOL,
            attempt_id: format!("{count:016x}{:016x}", std::process::id()),
            argument_digest: format!("{count:064x}"),
            program: "/bin/sh".into(),
            args: vec!["-c".into(), command.into()],
            cwd: self.root.path().join("work"),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            timeout_ms: None,
            grace_ms: 2000,
            output_cap: 16 << 20,
            on_host_loss: OnHostLoss::Finish,
            host: HostIdentity::current().unwrap(),
            boot_id: boot_id().unwrap(),
            runtime_folder: Some(self.root.path().join("run")),
        }
    }

    pub(crate) fn prepare(&self, request: &Request) -> PathBuf {
        prepare(&self.effects(), request).unwrap()
    }

    pub(crate) fn folder(&self, request: &Request) -> PathBuf {
        self.effects().join(&request.attempt_id)
    }

    /// Prepares, launches and attaches.
    pub(crate) fn start(&self, request: &Request) -> Attachment {
        let folder = self.prepare(request);
        let child = launch(binary(), &folder).unwrap();
        Attachment::attach(self.target(request), Some(child), 0)
    }

    pub(crate) fn target(&self, request: &Request) -> Target {
        Target {
            folder: self.folder(request),
            attempt_id: request.attempt_id.clone(),
            argument_digest: request.argument_digest.clone(),
            boot_id: request.boot_id.clone(),
            runtime_folder: request.runtime_folder.clone(),
        }
    }

    /// Runs a command to the end of its call.
    pub(crate) async fn run(&self, request: &Request) -> (String, ExitReceipt) {
        ended(&mut self.start(request)).await
    }

    pub(crate) fn look(&self, request: &Request) -> ProcessEvidence {
        self.look_fencing(request, true)
    }

    pub(crate) fn look_fencing(&self, request: &Request, fence: bool) -> ProcessEvidence {
        look(
            &self.folder(request),
            &request.attempt_id,
            &request.argument_digest,
            &request.boot_id,
            fence,
        )
        .unwrap()
    }

    /// Launches the supervisor from a shell after a prelude, as its own process.
    pub(crate) fn launch_by_shell(&self, prelude: &str, folder: &Path) -> Child {
        Command::new("/bin/sh")
            .arg("-c")
            .arg(format!("{prelude}\nexec \"$0\" \"$1\""))
            .arg(binary())
            .arg(folder)
            .spawn()
            .unwrap()
    }

    /// Waits until the supervisor has claimed the start and runs; its pid.
    pub(crate) fn supervisor_of(&self, request: &Request) -> u32 {
        until("the supervisor runs", || {
            match self.look_fencing(request, false) {
                ProcessEvidence::Running { pid } if pid != 0 => Some(pid),
                _ => None,
            }
        })
    }
}

/// A process that is somebody else's host: a shell that launches the supervisor and waits.
pub(crate) struct ShellHost {
    pub(crate) process: Child,
}

impl ShellHost {
    pub(crate) fn new() -> Self {
        let process = Command::new("/bin/sh")
            .arg("-c")
            .arg("read folder; \"$0\" \"$folder\" & wait")
            .arg(binary())
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        Self { process }
    }

    pub(crate) fn identity(&self) -> HostIdentity {
        let pid = self.process.id();
        HostIdentity {
            pid,
            start_time: holdfast_supervisor::process_start_time(pid)
                .unwrap()
                .unwrap(),
        }
    }

    pub(crate) fn launch(&mut self, folder: &Path) {
        let mut stdin = self.process.stdin.take().unwrap();
        writeln!(stdin, "{}", folder.display()).unwrap();
    }

    pub(crate) fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

pub(crate) fn binary() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_holdfast-supervisor"))
}

/// How often a loop runs: `count` times `HOLDFAST_TEST_SCALE`.
pub(crate) fn scaled(count: usize) -> usize {
    let scale: f64 = std::env::var("HOLDFAST_TEST_SCALE")
        .ok()
        .and_then(|scale| scale.parse().ok())
        .unwrap_or(1.0);
    ((count as f64 * scale) as usize).max(2)
}

/// The next thing, within the deadline.
pub(crate) async fn next(attachment: &mut Attachment) -> Progress {
    try_next(attachment).await.unwrap()
}

pub(crate) async fn try_next(attachment: &mut Attachment) -> Result<Progress, SupervisorError> {
    tokio::time::timeout(DEADLINE, attachment.next())
        .await
        .expect("something should have happened")
}

/// Reads to the end of the call.
pub(crate) async fn ended(attachment: &mut Attachment) -> (String, ExitReceipt) {
    let mut output = Vec::new();
    loop {
        match next(attachment).await {
            Progress::Output(more) => output.extend(more),
            Progress::Exited(receipt) => {
                return (String::from_utf8_lossy(&output).into_owned(), receipt);
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
        std::thread::yield_now();
        std::thread::park_timeout(Duration::from_millis(2));
    }
}

/// Waits until a file holds this many complete lines, and gives them.
pub(crate) fn lines(path: &Path, count: usize) -> Vec<String> {
    until(&format!("{} has {count} lines", path.display()), || {
        let text = fs::read_to_string(path).ok()?;
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        (text.ends_with('\n') && lines.len() >= count).then_some(lines)
    })
}

pub(crate) fn pids(path: &Path, count: usize) -> Vec<u32> {
    lines(path, count)
        .iter()
        .map(|line| line.trim().parse().unwrap())
        .collect()
}

/// Whether a process exists and has not ended.
pub(crate) fn lives(pid: u32) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| {
        let state = stat.rsplit_once(") ").map(|(_, rest)| rest.as_bytes()[0]);
        !matches!(state, Some(b'Z' | b'X'))
    })
}

pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_raw(pid as i32).unwrap();
    rustix::process::kill_process(pid, signal).unwrap();
}

pub(crate) fn root() -> bool {
    rustix::process::geteuid().is_root()
}
