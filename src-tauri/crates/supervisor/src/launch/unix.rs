//! Launching by the runtime's own means; the supervisor makes itself a session of its own.

use std::io;
use std::path::Path;
use std::process::Stdio;

use tokio::process::{Child, Command};

#[derive(Debug)]
pub(super) struct Launched(Child);

impl Launched {
    pub(super) async fn wait(&mut self) {
        // An error means that there is nothing to wait for.
        let _ = self.0.wait().await;
    }

    pub(super) fn id(&self) -> Option<u32> {
        self.0.id()
    }
}

pub(super) fn launch(binary: &Path, folder: &Path) -> io::Result<Launched> {
    Command::new(binary)
        .arg(folder)
        // The host's environment holds keys, and no process should keep them for hours.
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(false)
        .spawn()
        .map(Launched)
}

pub(super) fn survives_host() -> bool {
    true
}
