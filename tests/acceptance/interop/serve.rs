//! A Reasonix serve as a child process with everything of its own: home, folder, token, model.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use holdfast_api::session::PendingPrompt;
use holdfast_api::{Selector, SessionHost};
use holdfast_domain::runtime::observed::Observed;
use holdfast_domain::runtime::snapshot::RuntimeState;
use holdfast_remote::{Condition, RemoteHost};
use holdfast_testkit::wait::{until, until_asked, wait_until};
use holdfast_testkit::{LyingHost, ModelServer, Script};

use crate::remote::stage::{Kept, connect};

/// Names the program; `npm run test:interop` sets it.
const PROGRAM: &str = "HOLDFAST_REASONIX";
const TOKEN: &str = "a-token-of-this-test";
/// It starts in about a second here, and a turn of it takes a tenth of one.
const LONG: Duration = Duration::from_secs(40);

/// Says what was just proven, for the log.
pub(super) fn proven(what: &str) {
    println!("proven: {what}");
}

/// The serve, its model, a network before it, and our client behind that.
pub(super) struct Serve {
    folder: tempfile::TempDir,
    child: Child,
    pub(super) model: ModelServer,
    pub(super) network: LyingHost,
    pub(super) kept: Arc<Kept>,
    pub(super) host: RemoteHost,
}

impl Serve {
    /// Connected, and its current session shown by a tab and confirmed.
    pub(super) async fn new() -> (Self, Selector) {
        let serve = Self::with_token(TOKEN);
        until("the connection", LONG, || {
            let condition = serve.host.connection().view().condition;
            (condition == Condition::Connected).then_some(())
        })
        .await;
        let states = serve.host.runtime_states().await.unwrap();
        let current = states.sessions.iter().find(|row| row.current).unwrap();
        let selector = Selector::of(current.session_path.strip_prefix("session-id:").unwrap());
        serve.show(&selector);
        serve
            .until(&selector, "it to be confirmed", |_, synced| synced)
            .await;
        (serve, selector)
    }

    /// The same with a client that has this token.
    pub(super) fn with_token(token: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let model = ModelServer::start(Script::default());
        std::fs::create_dir(folder.path().join("home")).unwrap();
        std::fs::create_dir(folder.path().join("tmp")).unwrap();
        std::fs::create_dir(folder.path().join("work")).unwrap();
        let config = format!(
            "default_model = \"scripted\"\n\
             [desktop]\ntelemetry = false\nmetrics = false\ncheck_updates = false\n\
             [[providers]]\nname = \"scripted\"\nkind = \"openai\"\nbase_url = \"{}\"\n\
             model = \"scripted-model\"\napi_key_env = \"SCRIPTED_KEY\"\n",
            model.url()
        );
        std::fs::write(folder.path().join("home/config.toml"), config).unwrap();
        let (child, url) = start(folder.path());
        let network = LyingHost::start(Some(&url));
        let kept = Arc::<Kept>::default();
        let host = connect(&network, token, Duration::from_secs(45), &kept);
        Self {
            folder,
            child,
            model,
            network,
            kept,
            host,
        }
    }

    /// The folder in which it works.
    pub(super) fn work(&self) -> PathBuf {
        self.folder.path().join("work")
    }

    pub(super) fn show(&self, selector: &Selector) {
        self.host.connection().bind(&path(selector));
    }

    /// What is known of that session, and whether it is confirmed.
    pub(super) fn facts(&self, selector: &Selector) -> (Option<RuntimeState>, bool) {
        let sessions = self.host.connection().sessions();
        let found = sessions
            .into_iter()
            .find(|(known, _)| *known == path(selector));
        match found {
            Some((_, known)) => match known.state {
                Some(Observed::Snapshot(state)) => (Some(state), known.synced),
                _ => (None, known.synced),
            },
            None => (None, false),
        }
    }

    pub(super) async fn until(
        &self,
        selector: &Selector,
        what: &str,
        wanted: impl Fn(&RuntimeState, bool) -> bool,
    ) -> RuntimeState {
        until(what, LONG, || {
            let (state, synced) = self.facts(selector);
            state.filter(|state| wanted(state, synced))
        })
        .await
    }

    pub(super) async fn idle(&self, selector: &Selector) -> RuntimeState {
        let idle =
            |state: &RuntimeState, synced| synced && !state.running && !state.turn_id.is_empty();
        self.until(selector, "the end of the turn", idle).await
    }

    /// The question that waits.
    pub(super) async fn question(&self, selector: &Selector) -> PendingPrompt {
        until_asked("a question", LONG, async || {
            self.host.pending_prompts(selector).await.unwrap().pop()
        })
        .await
    }

    /// SIGKILL, and the connection is gone.
    pub(super) async fn kill9(&mut self) {
        self.network.lead_to(None);
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        self.network.cut();
        until("the pause", LONG, || {
            let condition = self.host.connection().view().condition;
            matches!(condition, Condition::Waiting { .. }).then_some(())
        })
        .await;
    }

    /// Another process in the same folders.
    pub(super) fn restart(&mut self) {
        let (child, url) = start(self.folder.path());
        self.child = child;
        self.network.lead_to(Some(&url));
        self.host.connection().retry_now();
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn path(selector: &Selector) -> String {
    format!("session-id:{}", selector.session.as_deref().unwrap())
}

fn start(folder: &Path) -> (Child, String) {
    let program = std::env::var_os(PROGRAM)
        .expect("HOLDFAST_REASONIX names no program; run these tests with `npm run test:interop`");
    let port = folder.join("port");
    let _ = std::fs::remove_file(&port);
    let token = folder.join("token");
    std::fs::write(&token, TOKEN).unwrap();
    // It refuses one that others could read.
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let said = std::fs::File::create(folder.join("said")).unwrap();
    let mut child = Command::new(program)
        .args([
            "serve",
            "--addr",
            "127.0.0.1:0",
            "--auth",
            "token",
            "--no-open",
        ])
        .arg("--token-file")
        .arg(&token)
        .arg("--port-file")
        .arg(&port)
        .current_dir(folder.join("work"))
        .env("HOME", folder)
        .env("REASONIX_HOME", folder.join("home"))
        .env("REASONIX_TELEMETRY", "off")
        .env("TMPDIR", folder.join("tmp"))
        .env("SCRIPTED_KEY", "none")
        .stdin(Stdio::null())
        .stdout(said.try_clone().unwrap())
        .stderr(said)
        .spawn()
        .unwrap();
    let url = wait_until("the serve to be ready", LONG, || {
        if let Some(status) = child.try_wait().unwrap() {
            let said = std::fs::read_to_string(folder.join("said")).unwrap_or_default();
            panic!("it ended with {status}: {said}");
        }
        let told = std::fs::read_to_string(&port).ok()?;
        let address = told.trim();
        std::net::TcpStream::connect(address).ok()?;
        Some(format!("http://{address}"))
    });
    (child, url)
}
