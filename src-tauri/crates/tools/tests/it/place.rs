//! A workspace in a temporary folder, and one way to call a tool in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use holdfast_supervisor::{OnHostLoss, find_binary};
use holdfast_tools::{
    Checkpoint, Context, Prepared, Progress, Refusal, Registry, RegistryConfig, ToolOutcome,
    Workspace, command_environment,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// How long a condition may take to come true on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
    pub(crate) workspace: Workspace,
    pub(crate) registry: Registry,
}

impl Place {
    /// `<temporary>/work` is the workspace, `<temporary>/outside` is not, `work/.data` is the
    /// program's own.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work/.data", "outside"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("outside/secret"), "outside secret").unwrap();
        fs::write(folder.path().join("work/.data/token"), "data secret").unwrap();
        let root = folder.path().join("work");
        let workspace = Workspace::open(&root, vec![root.join(".data")]).unwrap();
        let registry = Registry::new(RegistryConfig::default()).unwrap();
        Self {
            folder,
            workspace,
            registry,
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("work").join(name)
    }

    #[cfg(unix)]
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.folder.path().join("outside").join(name)
    }

    /// Writes a file of the workspace directly.
    pub(crate) fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub(crate) fn get(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    /// Temporary files of writes, anywhere in the workspace.
    pub(crate) fn leftovers(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        collect(&self.path(""), &mut found);
        found
    }

    pub(crate) fn prepare(&self, tool: &str, arguments: &Value) -> Result<Prepared, Refusal> {
        self.registry
            .prepare(tool, &arguments.to_string(), &self.workspace)
    }

    /// The code of a refusal.
    pub(crate) fn refusal(&self, tool: &str, arguments: &Value) -> &'static str {
        match self.prepare(tool, arguments) {
            Ok(prepared) => panic!("{tool} {arguments} was prepared: {prepared:?}"),
            Err(refusal) => refusal.code,
        }
    }

    pub(crate) async fn execute(&self, prepared: &Prepared, context: &Context) -> ToolOutcome {
        self.registry
            .execute(prepared, &self.workspace, context)
            .await
    }

    /// Prepares and runs with a context of its own.
    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> ToolOutcome {
        let prepared = self.prepare(tool, &arguments).unwrap();
        self.execute(&prepared, &self.context(&prepared)).await
    }

    pub(crate) fn context(&self, prepared: &Prepared) -> Context {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // Its first half names the socket: it must differ from test to test.
        let attempt_id = format!("{:08x}{number:08x}{:016x}", std::process::id(), 0);
        Context {
            attempt_id,
            argument_digest: prepared.argument_digest.clone(),
            idempotency_key: "the-key".to_owned(),
            boot_id: holdfast_supervisor::boot_id().unwrap_or_default(),
            cancel: CancellationToken::new(),
            detach: CancellationToken::new(),
            jobs: std::sync::Arc::new(holdfast_tools::NoJobs),
            progress: Progress::default(),
            checkpoint: Checkpoint::default(),
            effects_root: self.folder.path().join("effects"),
            runtime_folder: holdfast_supervisor::private_runtime_folder().ok(),
            supervisor_binary: PathBuf::from("no supervisor was looked for"),
            environment: command_environment(std::env::vars_os(), &[], &[]),
            shell_timeout: Duration::from_secs(120),
            shell_grace: Duration::from_millis(300),
            output_cap: 16 * 1024 * 1024,
            on_host_loss: OnHostLoss::Finish,
        }
    }
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with(".holdfast-") {
            found.push(path);
        } else if fs::symlink_metadata(&path).unwrap().is_dir() {
            collect(&path, found);
        }
    }
}

/// The supervisor beside the test executables; built when it is not there.
pub(crate) fn supervisor() -> PathBuf {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY
        .get_or_init(|| {
            if let Ok(found) = find_binary() {
                return found;
            }
            let built = Command::new(env!("CARGO"))
                .args(["build", "-p", "holdfast-supervisor"])
                .status()
                .unwrap();
            assert!(built.success());
            find_binary().unwrap()
        })
        .clone()
}

/// Waits for a condition, and fails with its name when it does not come true.
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = std::time::Instant::now() + PATIENCE;
    while !is_so() {
        assert!(
            std::time::Instant::now() < deadline,
            "not within {PATIENCE:?}: {what}"
        );
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// A loop count under `HOLDFAST_TEST_SCALE`.
pub(crate) fn scaled(count: u32) -> u32 {
    let scale = std::env::var("HOLDFAST_TEST_SCALE")
        .ok()
        .and_then(|text| text.parse::<f64>().ok())
        .unwrap_or(1.0);
    ((f64::from(count) * scale) as u32).max(1)
}
