//! The probe: every effect is tried in the sandbox, on targets made for it (TR-21).
//!
//! Guarantees: the sandbox passes only when each effect was tried and prevented; the targets are
//! gone afterwards; it ends in bounded time.

use std::fs;
use std::io::{self, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use holdfast_supervisor::{Effect, HostIdentity, Targets, effects};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};

use super::hidden::Hidden;
use super::{Place, SandboxConfig, Task, launch};
use crate::text::visible;

/// A sandbox that is not up by then is none.
const PATIENCE: Duration = Duration::from_secs(30);

/// Tries everything. The error is the reason why there is no sandbox.
pub(super) fn run(program: &Path, config: &SandboxConfig) -> Result<(), String> {
    let stage = Stage::set(&config.probe_folder)
        .map_err(|error| format!("its probe could not be prepared: {error}"))?;
    let report = try_in_sandbox(program, config, &stage.targets)?;
    let leaks = effects::happened(&report)
        .map_err(|reason| format!("its probe told nothing reliable: {reason}"))?;
    if leaks.is_empty() {
        return Ok(());
    }
    let words: Vec<&str> = leaks.into_iter().map(Effect::words).collect();
    Err(format!(
        "its probe found effects that get through: {}",
        words.join(", ")
    ))
}

fn try_in_sandbox(
    program: &Path,
    config: &SandboxConfig,
    targets: &Targets,
) -> Result<String, String> {
    // As for a workspace that lies in something hidden: the more difficult case.
    let hidden = Hidden::here(&targets.folder, std::slice::from_ref(&config.probe_folder));
    let place = Place {
        folder: &targets.folder,
        hidden: &hidden,
        supervisor: &config.supervisor,
    };
    let started = launch(program.to_path_buf(), &place, Task::Probe(targets));
    let mut child = Command::new(&started.program)
        .args(&started.arguments)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| format!("{} can't be executed: {error}", program.display()))?;
    let ended = wait(&mut child);
    let (output, complaint) = (read(child.stdout.take()), read(child.stderr.take()));
    match ended {
        Ok(true) => Ok(output),
        Ok(false) => {
            let line = complaint.lines().next().unwrap_or("it says nothing");
            Err(format!(
                "{} can't make it here: {}; in a container, or where user namespaces are \
                 forbidden, that is to be expected",
                program.display(),
                visible(line.as_bytes())
            ))
        }
        Err(reason) => Err(reason),
    }
}

/// True when it ended well.
fn wait(child: &mut Child) -> Result<bool, String> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if Instant::now() < deadline => {
                std::thread::park_timeout(Duration::from_millis(2));
            }
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(format!("its probe did not end within {PATIENCE:?}"));
            }
            Err(error) => return Err(format!("its probe can't be waited for: {error}")),
        }
    }
}

/// What it printed, bounded. It has ended, and so has all that it started.
fn read(stream: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(stream) = stream {
        // A part is as good as none: the report is checked for being whole.
        let _ = stream.take(64 * 1024).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The targets, and what has to be held for them to work.
struct Stage {
    targets: Targets,
    _socket: UnixListener,
    _port: TcpListener,
    _pipe: OwnedFd,
}

impl Stage {
    fn set(parent: &Path) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("sandbox-probe-{}-{number}", std::process::id());
        let folder = fs::canonicalize(parent)?.join(name);
        if folder.exists() {
            // Of a process with this number that was killed.
            fs::remove_dir_all(&folder)?;
        }
        holdfast_files::create_private_folder(&folder)?;
        Self::fill(&folder).inspect_err(|_| {
            let _ = fs::remove_dir_all(&folder);
        })
    }

    fn fill(folder: &Path) -> io::Result<Self> {
        let of = |effect: Effect| folder.join(effect.name());
        fs::create_dir(of(Effect::Write))?;
        for effect in [Effect::Chmod, Effect::Chown, Effect::Utime, Effect::Xattr] {
            fs::write(of(effect), effect.name())?;
        }
        make_pipe(&of(Effect::Pipe))?;
        // Open for reading, so that opening it for writing works outside.
        let reading = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let pipe = rustix::fs::open(of(Effect::Pipe), reading, Mode::empty())?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let host = HostIdentity::current().map_err(io::Error::other)?;
        Ok(Self {
            targets: Targets {
                folder: folder.to_path_buf(),
                port: port.local_addr()?.port(),
                pid: host.pid,
                start_time: host.start_time,
            },
            _socket: listen(folder, Effect::Socket.name())?,
            _port: port,
            _pipe: pipe,
        })
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        // What stays is removed by the next probe of this number, and is private.
        let _ = fs::remove_dir_all(&self.targets.folder);
    }
}

#[cfg(target_os = "linux")]
fn make_pipe(path: &Path) -> io::Result<()> {
    let mode = Mode::RUSR | Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0)?;
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn make_pipe(path: &Path) -> io::Result<()> {
    let made = Command::new("mkfifo").arg(path).status()?;
    if made.success() {
        Ok(())
    } else {
        Err(io::Error::other("mkfifo failed"))
    }
}

/// A socket's path has some hundred bytes only: on Linux the folder is named by its descriptor.
fn listen(folder: &Path, name: &str) -> io::Result<UnixListener> {
    if cfg!(target_os = "linux") {
        use std::os::fd::AsRawFd;

        let folder = fs::File::open(folder)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
        return UnixListener::bind(path.join(name));
    }
    UnixListener::bind(folder.join(name))
}
