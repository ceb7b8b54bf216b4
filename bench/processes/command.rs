//! A command that does nothing, from its launch to its receipt. Floor: the same shell spawned bare,
//! and one sync of a small file.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow, bail, ensure};
use holdfast_bench::place::{self, Programs};
use holdfast_bench::samples::Samples;
use holdfast_bench::table::{Table, both};
use holdfast_domain::recovery::lifecycle::AttemptState;
use holdfast_files::sync_file;
use holdfast_supervisor::{
    Attachment, HostIdentity, OnHostLoss, PROTOCOL, Progress, Request, Target, boot_id, launch,
    prepare, private_runtime_folder, remove,
};
use holdfast_tools::{Checkpoint, Context, Registry, RegistryConfig, Workspace};

const ROUNDS: u64 = 150;
const AIM: Duration = Duration::from_millis(10);
const COMMAND: &str = "true";

pub(crate) fn measure(programs: &Programs, table: &mut Table) -> anyhow::Result<()> {
    let scratch = place::scratch()?;
    let stage = Stage::new(programs, scratch.path())?;
    // As in the host.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let mut bare = File::create_new(scratch.path().join("bare"))?;
    let (mut floor, mut supervised, mut tool) =
        (Samples::default(), Samples::default(), Samples::default());
    for round in 0..ROUNDS {
        floor.push(stage.bare(&mut bare)?);
        supervised.push(runtime.block_on(stage.supervised(round))?);
        tool.push(runtime.block_on(stage.tool(ROUNDS + round))?);
    }
    for (what, figure) in [
        ("command under a supervisor, launch to receipt", supervised),
        ("the same through the tool `shell`, to its result", tool),
    ] {
        let kept = figure.median() < floor.median() + AIM;
        table.aimed(
            what,
            both(&figure),
            both(&floor),
            "median under 10 ms over the floor",
            kept,
        );
    }
    Ok(())
}

struct Stage {
    supervisor: PathBuf,
    effects: PathBuf,
    workspace: PathBuf,
    boot_id: String,
    registry: Registry,
}

impl Stage {
    fn new(programs: &Programs, folder: &Path) -> anyhow::Result<Self> {
        let workspace = folder.join("workspace");
        std::fs::create_dir(&workspace)?;
        Ok(Self {
            supervisor: programs.supervisor.clone(),
            effects: folder.join("effects"),
            workspace,
            boot_id: boot_id()?,
            registry: Registry::new(RegistryConfig::default())?,
        })
    }

    fn bare(&self, file: &mut File) -> anyhow::Result<Duration> {
        let since = Instant::now();
        let status = Command::new("/bin/sh")
            .args(["-c", COMMAND])
            .current_dir(&self.workspace)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()?;
        file.write_all(&[b'x'; 512])?;
        sync_file(file)?;
        ensure!(status.success(), "the shell ended with {status}");
        Ok(since.elapsed())
    }

    async fn supervised(&self, round: u64) -> anyhow::Result<Duration> {
        let request = Request {
            protocol: PROTOCOL,
            attempt_id: attempt_id(round),
            argument_digest: format!("{round:064x}"),
            program: "/bin/sh".into(),
            args: vec!["-c".into(), COMMAND.into()],
            cwd: self.workspace.clone(),
            env: vec![("PATH".into(), "/usr/bin:/bin".into())],
            timeout_ms: Some(60_000),
            grace_ms: 2000,
            output_cap: 1 << 20,
            on_host_loss: OnHostLoss::Finish,
            host: HostIdentity::current()?,
            boot_id: self.boot_id.clone(),
            runtime_folder: Some(private_runtime_folder()?),
        };
        let target = Target {
            folder: self.effects.join(&request.attempt_id),
            attempt_id: request.attempt_id.clone(),
            argument_digest: request.argument_digest.clone(),
            boot_id: request.boot_id.clone(),
            runtime_folder: request.runtime_folder.clone(),
        };
        let since = Instant::now();
        let folder = prepare(&self.effects, &request)?;
        let child = launch(&self.supervisor, &folder)?;
        let mut attachment = Attachment::attach(target, Some(child), 0);
        let took = loop {
            match attachment.next().await? {
                Progress::Output(_) => {}
                Progress::Exited(receipt) => {
                    let took = since.elapsed();
                    ensure!(receipt.code == Some(0), "the command ended as {receipt:?}");
                    break took;
                }
                other => bail!("instead of a receipt came {other:?}"),
            }
        };
        self.clear(&mut attachment, &folder).await?;
        Ok(took)
    }

    /// Waits for the supervisor's end, so that the next measurement does not share its last sync.
    async fn clear(&self, attachment: &mut Attachment, folder: &Path) -> anyhow::Result<()> {
        while !matches!(attachment.next().await?, Progress::Gone) {}
        self.unlocked(folder).await?;
        Ok(remove(folder)?)
    }

    /// The lock on `alive` is the supervisor's until its process has ended.
    async fn unlocked(&self, folder: &Path) -> anyhow::Result<()> {
        let alive = OpenOptions::new()
            .write(true)
            .open(folder.join("alive"))
            .context("the supervisor's lock")?;
        tokio::task::spawn_blocking(move || alive.lock()).await??;
        Ok(())
    }

    async fn tool(&self, round: u64) -> anyhow::Result<Duration> {
        let workspace = Workspace::open(&self.workspace, Vec::new())?;
        let arguments = serde_json::json!({ "command": COMMAND }).to_string();
        let prepared = self
            .registry
            .prepare("shell", &arguments, &workspace)
            .map_err(|refusal| anyhow!("{}", refusal.message))?;
        let context = Context {
            attempt_id: attempt_id(round),
            argument_digest: prepared.argument_digest.clone(),
            idempotency_key: format!("{round:064x}"),
            boot_id: self.boot_id.clone(),
            cancel: tokio_util::sync::CancellationToken::new(),
            detach: tokio_util::sync::CancellationToken::new(),
            jobs: std::sync::Arc::new(holdfast_tools::NoJobs),
            progress: holdfast_tools::Progress::default(),
            checkpoint: Checkpoint::default(),
            effects_root: self.effects.clone(),
            runtime_folder: Some(private_runtime_folder()?),
            supervisor_binary: self.supervisor.clone(),
            environment: vec![("PATH".into(), "/usr/bin:/bin".into())],
            shell_timeout: Duration::from_secs(60),
            shell_grace: Duration::from_secs(2),
            output_cap: 1 << 20,
            on_host_loss: OnHostLoss::Finish,
        };
        let since = Instant::now();
        let outcome = self.registry.execute(&prepared, &workspace, &context).await;
        let took = since.elapsed();
        ensure!(
            outcome.state == AttemptState::Completed,
            "the tool ended as {:?}: {}",
            outcome.state,
            outcome.text
        );
        let folder = self.effects.join(&context.attempt_id);
        self.unlocked(&folder).await?;
        remove(&folder)?;
        Ok(took)
    }
}

/// The socket is named by the first half, so that is what differs.
fn attempt_id(round: u64) -> String {
    let own = u64::from(std::process::id()) << 32 | round;
    format!("{own:016x}{round:016x}")
}
