//! `holdfast serve --detach`: the one host of a data folder that belongs to no terminal and no
//! connection. Whoever asks finds the one that runs, or starts it.
//!
//! Guarantees: one of them runs on a data folder at most, by a lock that the system frees when it
//! ends; what is printed was written by the one that holds the lock.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use holdfast_files::{FileLock, LockError};
use serde_json::Value;

use crate::arguments::Serve;
use crate::data;

const LOCK: &str = "serve.lock";
const LINE: &str = "serve.json";
const MAX_BYTES: u64 = 64 * 1024;
/// Tries until the one that holds the lock has written its line.
const TRIES: u32 = 600;
const PAUSE: std::time::Duration = std::time::Duration::from_millis(50);

/// The place of a detached host on its data folder, for as long as it lives.
pub(crate) struct Post {
    line: PathBuf,
    _lock: FileLock,
}

impl Post {
    /// Takes the place when this process was started for it; `None` for every other host.
    pub(crate) fn take(folder: &Path, options: &Serve) -> anyhow::Result<Option<Self>> {
        if !options.detached {
            return Ok(None);
        }
        holdfast_files::create_private_folder(folder)?;
        let lock = FileLock::acquire(&folder.join(LOCK))
            .context("another host of this data folder runs in the background already")?;
        let line = folder.join(LINE);
        // What an earlier one said is not true any more.
        match std::fs::remove_file(&line) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            Ok(()) | Err(_) => {}
        }
        #[cfg(unix)]
        rustix::process::setsid().context("it could not leave its terminal")?;
        Ok(Some(Self { line, _lock: lock }))
    }

    /// Tells others where this host listens.
    pub(crate) fn tell(&self, line: &Value) -> anyhow::Result<()> {
        holdfast_files::write_private(&self.line, line.to_string().as_bytes())?;
        Ok(())
    }
}

/// Prints the line of the host that runs in the background on this data folder.
pub(crate) fn find_or_start(folder: Option<PathBuf>, options: &Serve) -> anyhow::Result<u8> {
    if cfg!(not(unix)) {
        bail!(
            "--detach is not there on this system; nothing was started; start `holdfast serve` as \
             a task of the system instead"
        );
    }
    let folder = data::folder(folder)?;
    holdfast_files::create_private_folder(&folder)?;
    let line = match running(&folder)? {
        Some(line) => line,
        None => start(&folder, options)?,
    };
    writeln!(std::io::stdout(), "{line}")?;
    Ok(0)
}

/// What the one that holds the lock has written; `None` when nobody holds it.
fn running(folder: &Path) -> anyhow::Result<Option<String>> {
    for _ in 0..TRIES {
        match FileLock::acquire(&folder.join(LOCK)) {
            Ok(_) => return Ok(None),
            Err(LockError::Held) => {}
            Err(error) => return Err(error.into()),
        }
        if let Ok(bytes) = holdfast_files::read_bounded(&folder.join(LINE), MAX_BYTES)
            && let Ok(line) = serde_json::from_slice::<Value>(&bytes)
        {
            return Ok(Some(line.to_string()));
        }
        std::thread::sleep(PAUSE);
    }
    bail!(
        "a host of this data folder runs in the background and does not say where it listens; \
         look at its logs"
    )
}

fn start(folder: &Path, options: &Serve) -> anyhow::Result<String> {
    let mut command = Command::new(std::env::current_exe()?);
    command
        .arg("--data")
        .arg(folder)
        .args(["serve", "--detached", "--addr", &options.addr.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    if let Some(workspace) = &options.workspace {
        command.arg("--workspace").arg(workspace);
    }
    if let Some(file) = &options.token_file {
        command.arg("--token-file").arg(file);
    }
    for name in &options.host_names {
        command.args(["--host-name", name]);
    }
    if options.behind_tunnel {
        command.arg("--behind-tunnel");
    }
    let mut child = command
        .spawn()
        .context("the host could not be started; nothing was changed")?;
    let mut line = String::new();
    if let Some(out) = child.stdout.take() {
        BufReader::new(out).read_line(&mut line)?;
    }
    if !line.trim().is_empty() {
        return Ok(line.trim().to_owned());
    }
    // Another one was faster, or it could not start.
    let status = child.wait()?;
    running(folder)?.with_context(|| {
        format!("the host ended at once ({status}); its logs are in the data folder")
    })
}
