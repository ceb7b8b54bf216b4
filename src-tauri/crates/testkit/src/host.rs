//! A host as a child process: started, asked, killed at a chosen point, started again.
//!
//! Guarantees: `start` returns when the host is ready or says why not, with what it wrote to
//! standard error; the child is killed when its value is dropped.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;

use crate::http::TestClient;
use crate::wait::{SOON, wait_until};

/// How a host is started.
#[derive(Debug, Clone)]
pub struct HostOptions {
    /// The program.
    pub binary: PathBuf,
    /// Its arguments, `serve` and the folders included.
    pub arguments: Vec<String>,
    /// Environment on top of the test's own.
    pub env: BTreeMap<String, String>,
    /// How long it may take to be ready.
    pub ready_within: Duration,
}

impl HostOptions {
    /// `holdfast serve` with these folders, as [`holdfast_binary`] finds it.
    #[must_use]
    pub fn serve(data: &Path, workspace: &Path) -> Self {
        Self {
            binary: holdfast_binary(),
            arguments: vec![
                "serve".to_owned(),
                "--data".to_owned(),
                data.to_string_lossy().into_owned(),
                "--workspace".to_owned(),
                workspace.to_string_lossy().into_owned(),
            ],
            env: BTreeMap::from([(
                SUPERVISOR.to_owned(),
                supervisor_binary().to_string_lossy().into_owned(),
            )]),
            ready_within: SOON,
        }
    }

    /// Sets one variable of the host's environment.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Makes the host park at the `pass`-th pass of a named stop point (1 is the first), and say so
    /// by writing `file`.
    #[must_use]
    pub fn stop_at(self, name: &str, pass: u32, file: &Path) -> Self {
        self.env(STOP_AT, &format!("{name}:{pass}"))
            .env(STOP_FILE, &file.to_string_lossy())
    }

    /// Removes the stop point, for the start after the kill.
    #[must_use]
    pub fn without_stop(mut self) -> Self {
        self.env.remove(STOP_AT);
        self.env.remove(STOP_FILE);
        self
    }
}

const STOP_AT: &str = "HOLDFAST_STOP_AT";
const STOP_FILE: &str = "HOLDFAST_STOP_FILE";

const BINARY: &str = "HOLDFAST_BIN";
const SUPERVISOR: &str = "HOLDFAST_SUPERVISOR";

/// `HOLDFAST_BIN`; else the newer of two: the `holdfast` with stop points, when it has been built
/// (`npm run stop-points`), and the one of the test's own build.
#[must_use]
pub fn holdfast_binary() -> PathBuf {
    std::env::var_os(BINARY).map_or_else(|| built("holdfast"), PathBuf::from)
}

/// `HOLDFAST_SUPERVISOR`; else the one beside `HOLDFAST_BIN`, when that is set and there is one;
/// else as [`holdfast_binary`].
#[must_use]
pub fn supervisor_binary() -> PathBuf {
    if let Some(path) = std::env::var_os(SUPERVISOR) {
        return path.into();
    }
    let name = format!("holdfast-supervisor{}", std::env::consts::EXE_SUFFIX);
    std::env::var_os(BINARY)
        .map(|host| Path::new(&host).with_file_name(&name))
        .filter(|path| path.is_file())
        .unwrap_or_else(|| built("holdfast-supervisor"))
}

/// A program in `target/stop-points` or in the folder of the test's own build, whichever was built
/// last: one left over from earlier code would be tested in place of the code at hand.
fn built(name: &str) -> PathBuf {
    let name = format!("{name}{}", std::env::consts::EXE_SUFFIX);
    let own = std::env::current_exe().unwrap_or_default();
    // A test executable lies in target/debug/deps, the program in target/debug.
    let folders: Vec<&Path> = own.ancestors().skip(1).take(3).collect();
    folders
        .last()
        .map(|target| target.join("stop-points").join(&name))
        .into_iter()
        .chain(folders.iter().map(|folder| folder.join(&name)))
        .filter_map(|path| Some((std::fs::metadata(&path).ok()?.modified().ok()?, path)))
        .max()
        .map_or_else(|| name.into(), |(_, path)| path)
}

/// A running host.
#[derive(Debug)]
pub struct Host {
    options: HostOptions,
    child: Child,
    errors: Arc<Mutex<String>>,
    url: String,
    token: String,
}

impl Host {
    /// Starts a host and waits for its ready line.
    ///
    /// # Errors
    /// When it can't be started, ends, is not ready in time, or its token can't be read; with its
    /// standard error.
    pub fn start(options: HostOptions) -> anyhow::Result<Self> {
        let mut child = Command::new(&options.binary)
            .args(&options.arguments)
            .envs(&options.env)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("{} can't be started", options.binary.display()))?;
        let errors = collect(child.stderr.take());
        let lines = first_line(child.stdout.take());
        let mut host = Self {
            options,
            child,
            errors,
            url: String::new(),
            token: String::new(),
        };
        let line = match lines.recv_timeout(host.options.ready_within) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                let limit = host.options.ready_within;
                bail!("the host was not ready after {limit:?}: {}", host.stderr());
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = host.wait_exit();
                bail!(
                    "the host ended before it was ready ({status}): {}",
                    host.stderr()
                );
            }
        };
        let ready: Value = serde_json::from_str(&line)
            .with_context(|| format!("the host's first line is no JSON: {line}"))?;
        host.url = ready["url"]
            .as_str()
            .with_context(|| format!("no url in the ready line {line}"))?
            .to_owned();
        if let Some(path) = ready["tokenFile"].as_str() {
            host.token = std::fs::read_to_string(path)
                .with_context(|| format!("the token file {path} can't be read"))?
                .trim()
                .to_owned();
        }
        Ok(host)
    }

    /// The base URL.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The bearer token.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// A client with the token.
    #[must_use]
    pub fn client(&self) -> TestClient {
        TestClient::new(&self.url, Some(&self.token))
    }

    /// What it wrote to standard error so far.
    #[must_use]
    pub fn stderr(&self) -> String {
        self.errors
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Kills the process at once, as a power cut would, and waits for its end. Its children live on.
    pub fn kill9(&mut self) {
        let _ = self.child.kill();
        self.wait_exit();
    }

    /// Asks the process to end and waits until it has.
    ///
    /// # Errors
    /// Where a process can't be asked (there is no SIGTERM outside Unix).
    ///
    /// # Panics
    /// When it has not ended after 20 s.
    pub fn term(&mut self) -> anyhow::Result<ExitStatus> {
        #[cfg(unix)]
        {
            let pid = i32::try_from(self.child.id())
                .ok()
                .and_then(rustix::process::Pid::from_raw)
                .context("a process id")?;
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
            Ok(self.wait_exit())
        }
        #[cfg(not(unix))]
        bail!("stop_unsupported: a host can't be asked to end on this system; use kill9")
    }

    /// Waits for the end of the process.
    ///
    /// # Panics
    /// When it has not ended after 20 s.
    pub fn wait_exit(&mut self) -> ExitStatus {
        wait_until("the host to end", SOON, || {
            self.child.try_wait().ok().flatten()
        })
    }

    /// Kills the process and starts it again with the same options.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn restart(&mut self) -> anyhow::Result<()> {
        let options = self.options.clone();
        self.restart_with(options)
    }

    /// Kills the process and starts it again with other options.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn restart_with(&mut self, options: HostOptions) -> anyhow::Result<()> {
        self.kill9();
        *self = Self::start(options)?;
        Ok(())
    }

    /// The options it was started with.
    #[must_use]
    pub fn options(&self) -> &HostOptions {
        &self.options
    }

    /// Waits until the host has parked at its stop point.
    ///
    /// # Panics
    /// After 20 s, when it ended instead, or when it was started without a stop point.
    pub fn wait_parked(&mut self) {
        let file = PathBuf::from(
            self.options
                .env
                .get(STOP_FILE)
                .expect("a host that was started with a stop point"),
        );
        wait_until("the host to park at its stop point", SOON, || {
            if file.exists() {
                return Some(());
            }
            if let Ok(Some(status)) = self.child.try_wait() {
                panic!(
                    "the host ended ({status}) before its stop point: {}",
                    self.stderr()
                );
            }
            None
        });
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends the first line; the rest is read and dropped, so that the child never blocks on it.
fn first_line(stdout: Option<impl Read + Send + 'static>) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let Some(stdout) = stdout else { return };
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        if let Some(line) = lines.next() {
            let _ = sender.send(line);
        }
        drop(sender);
        lines.for_each(drop);
    });
    receiver
}

fn collect(stream: Option<impl Read + Send + 'static>) -> Arc<Mutex<String>> {
    let text = Arc::new(Mutex::new(String::new()));
    std::thread::spawn({
        let text = Arc::clone(&text);
        move || {
            let Some(mut stream) = stream else { return };
            let mut bytes = [0; 4096];
            while let Ok(count) = stream.read(&mut bytes) {
                if count == 0 {
                    return;
                }
                text.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push_str(&String::from_utf8_lossy(&bytes[..count]));
            }
        }
    });
    text
}
