//! A tunnel through the system's `ssh`: it finds or starts a host on the other machine, and brings
//! its port to this one's loopback.
//!
//! Guarantees: nothing is ever asked on a terminal (`BatchMode`), and host keys are judged by the
//! person's own ssh configuration; a refused login and an unknown or changed host key are told apart
//! from a drop and never tried again by themselves; the ssh process ends with the tunnel. The host
//! over there goes on: it belongs to the machine and not to the connection.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Output, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use secrecy::SecretString;
use serde::Deserialize;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

use crate::address::Address;
use crate::client::Client;
use crate::link::{Link, LinkError};

/// Longest time for a login, and for the start of the host over there.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between looks at a port that is not there yet.
const PAUSE: Duration = Duration::from_millis(50);

/// Where a tunnel leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// As `ssh` takes it: `user@host`, or a name of the person's ssh configuration.
    pub destination: String,
    /// The `holdfast` over there; found by its PATH when empty.
    pub program: String,
    /// Further arguments of `ssh`, such as `-F FILE`.
    pub ssh_arguments: Vec<String>,
}

impl Destination {
    /// Refuses what `ssh` or the shell over there would take for something else.
    ///
    /// # Errors
    /// `ssh_destination_invalid`.
    pub fn check(&self) -> Result<(), LinkError> {
        let plain = |text: &str, more: &str| {
            !text.starts_with('-')
                && text
                    .chars()
                    .all(|char| char.is_ascii_alphanumeric() || more.contains(char))
        };
        let named = !self.destination.is_empty() && plain(&self.destination, "@.-_:%[]");
        if named && plain(&self.program, "/._-~+") {
            return Ok(());
        }
        Err(lasting(
            "ssh_destination_invalid",
            "this is no name of a machine, or no path of a program, that can be given to ssh; \
             nothing was tried; write user@host"
                .to_owned(),
        ))
    }

    fn ssh(&self) -> Command {
        let mut ssh = Command::new("ssh");
        for option in [
            "BatchMode=yes",
            "ExitOnForwardFailure=yes",
            "ConnectTimeout=10",
            "ServerAliveInterval=15",
            "ServerAliveCountMax=2",
            "ClearAllForwardings=no",
        ] {
            ssh.args(["-o", option]);
        }
        ssh.args(&self.ssh_arguments)
            .stdin(Stdio::null())
            .kill_on_drop(true);
        ssh
    }

    fn command(&self) -> String {
        let program = if self.program.is_empty() {
            "holdfast"
        } else {
            &self.program
        };
        format!("{program} serve --detach")
    }
}

/// What `holdfast serve --detach` prints.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Ready {
    url: String,
    token_file: PathBuf,
}

/// A link through a tunnel.
pub struct Tunnel {
    destination: Destination,
    silence: Duration,
    /// The `ssh` that forwards.
    child: Mutex<Option<Child>>,
}

impl Tunnel {
    /// A tunnel that is opened with each connection; `silence` as in [`Client::new`].
    ///
    /// # Errors
    /// `ssh_destination_invalid`.
    pub fn new(destination: Destination, silence: Duration) -> Result<Self, LinkError> {
        destination.check()?;
        Ok(Self {
            destination,
            silence,
            child: Mutex::default(),
        })
    }

    /// Runs a command over there and answers what it prints.
    async fn said(&self, command: &str) -> Result<String, LinkError> {
        let mut ssh = self.destination.ssh();
        ssh.arg("--")
            .arg(&self.destination.destination)
            .arg(command);
        let output = tokio::time::timeout(PATIENCE, ssh.output())
            .await
            .map_err(|_| dropped("the machine did not answer in time"))?
            .map_err(|error| unusable(&error))?;
        if output.status.success() {
            return String::from_utf8(output.stdout).map_err(|_| dropped("its answer is no text"));
        }
        Err(explained(&output))
    }

    /// Forwards a port of this machine's loopback to that one.
    async fn forward(&self, port: u16) -> Result<SocketAddr, LinkError> {
        let here = free_port().map_err(|error| unusable(&error))?;
        let mut ssh = self.destination.ssh();
        ssh.args(["-N", "-L", &format!("{here}:127.0.0.1:{port}"), "--"])
            .arg(&self.destination.destination)
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = ssh.spawn().map_err(|error| unusable(&error))?;
        let listens = async {
            while tokio::net::TcpStream::connect(here).await.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
        };
        tokio::select! {
            status = child.wait() => {
                let mut stderr = Vec::new();
                if let Some(mut pipe) = child.stderr.take() {
                    // Its words explain the end; without them the end is a drop.
                    let _ = pipe.read_to_end(&mut stderr).await;
                }
                let status = status.map_err(|error| unusable(&error))?;
                return Err(explained(&Output { status, stdout: Vec::new(), stderr }));
            }
            waited = tokio::time::timeout(PATIENCE, listens) => {
                waited.map_err(|_| dropped("the forwarded port did not open in time"))?;
            }
        }
        // Whatever it says from now on is read and dropped, so that it can't block.
        if let Some(mut pipe) = child.stderr.take() {
            tokio::spawn(async move { tokio::io::copy(&mut pipe, &mut tokio::io::sink()).await });
        }
        *self.child.lock().unwrap_or_else(PoisonError::into_inner) = Some(child);
        Ok(here)
    }
}

#[async_trait]
impl Link for Tunnel {
    async fn open(&self) -> Result<Client, LinkError> {
        drop(
            self.child
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take(),
        );
        let line = self.said(&self.destination.command()).await?;
        let ready: Ready = serde_json::from_str(line.trim())
            .map_err(|_| dropped("the program over there did not say where it listens"))?;
        let port = reqwest::Url::parse(&ready.url)
            .ok()
            .and_then(|url| url.port())
            .ok_or_else(|| dropped("the program over there did not say where it listens"))?;
        let file = ready.token_file.to_string_lossy();
        let token = self.said(&format!("cat {}", quoted(&file))).await?;
        let here = self.forward(port).await?;
        let address = Address::parse(&format!("http://{here}"))
            .map_err(|error| dropped(&error.to_string()))?;
        Client::new(address, SecretString::from(token.trim()), self.silence)
            .map(|client| client.under_name(format!("127.0.0.1:{port}")))
            .map_err(|error| dropped(&error.to_string()))
    }
}

fn free_port() -> std::io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

/// One word for the shell over there.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn lasting(code: &'static str, message: String) -> LinkError {
    LinkError {
        code,
        message,
        lasting: true,
    }
}

fn dropped(why: &str) -> LinkError {
    LinkError {
        code: "ssh_dropped",
        message: format!("the SSH tunnel could not be opened: {why}; it is tried again"),
        lasting: false,
    }
}

fn unusable(error: &std::io::Error) -> LinkError {
    lasting(
        "ssh_missing",
        format!(
            "the system's ssh can't be used ({error}); nothing was sent; install an OpenSSH client"
        ),
    )
}

/// What `ssh` says of its end. It speaks English always; its own failures end with 255.
fn explained(output: &Output) -> LinkError {
    let words = String::from_utf8_lossy(&output.stderr);
    let last = words.lines().last().unwrap_or_default().trim();
    let says = |parts: &[&str]| parts.iter().any(|part| words.contains(part));
    if says(&[
        "Host key verification failed",
        "REMOTE HOST IDENTIFICATION HAS CHANGED",
    ]) {
        return lasting(
            "ssh_host_key",
            "the machine's host key is unknown or is another one than before; nothing was sent; \
             connect once with ssh in a terminal and compare the key, then try again"
                .to_owned(),
        );
    }
    if says(&["Permission denied", "Too many authentication failures"]) {
        return lasting(
            "ssh_auth",
            "the machine refused the login; nothing was sent; make ssh log in without asking (a \
             key in the agent), then try again"
                .to_owned(),
        );
    }
    if output.status.code() == Some(127) || says(&["command not found"]) {
        return lasting(
            "ssh_program_missing",
            "there is no holdfast on that machine, or not where it was looked for; install it \
             there, or give its path"
                .to_owned(),
        );
    }
    if output.status.code() == Some(255) {
        return dropped(last);
    }
    lasting(
        "ssh_host_failed",
        format!("holdfast could not be started on that machine: {last}"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn destination(text: &str, program: &str) -> Destination {
        Destination {
            destination: text.to_owned(),
            program: program.to_owned(),
            ssh_arguments: Vec::new(),
        }
    }

    #[test]
    fn what_ssh_would_take_for_an_option_or_a_command_is_refused() {
        for good in ["box", "me@box.example", "me@[::1]"] {
            assert_eq!(destination(good, "").check(), Ok(()), "{good}");
        }
        assert_eq!(
            destination("box", "/opt/hold-fast/holdfast").check(),
            Ok(())
        );
        for bad in ["", "-oProxyCommand=x", "a b", "a;b", "a\nb", "$(x)"] {
            assert!(destination(bad, "").check().is_err(), "{bad}");
        }
        for bad in ["-x", "a b", "a;b", "$(x)", "`x`"] {
            assert!(destination("box", bad).check().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_word_for_the_shell_stays_one() {
        assert_eq!(quoted("/a b/it's"), r"'/a b/it'\''s'");
    }
}
