//! What a command could change, tried for real: the probe of the effect-free sandbox (TR-21).
//!
//! Guarantees: it touches nothing but the targets that were made for it, and its own process; an
//! effect counts as prevented only when the system refused it.

use std::path::PathBuf;

/// The first argument that makes this executable try the effects.
pub const TRY_EFFECTS: &str = "try-effects";

/// The effects that are tried: the seven of TR-21, and three more that its recipe lets through or
/// that a namespace alone must prevent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// A new file.
    Write,
    /// A file's mode.
    Chmod,
    /// A file's owner.
    Chown,
    /// A file's times.
    Utime,
    /// A file's extended attribute.
    Xattr,
    /// A connection to a Unix socket of outside.
    Socket,
    /// A connection over TCP.
    Network,
    /// Opening a named pipe for writing.
    Pipe,
    /// A signal to a process of outside.
    Signal,
    /// Opening a kernel setting for writing.
    Setting,
}

impl Effect {
    /// All of them, in the order in which they are tried.
    pub const ALL: [Self; 10] = [
        Self::Write,
        Self::Chmod,
        Self::Chown,
        Self::Utime,
        Self::Xattr,
        Self::Socket,
        Self::Network,
        Self::Pipe,
        Self::Signal,
        Self::Setting,
    ];

    /// Its name: in reports, and of its target in the folder of targets.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Chmod => "chmod",
            Self::Chown => "chown",
            Self::Utime => "utime",
            Self::Xattr => "xattr",
            Self::Socket => "socket",
            Self::Network => "network",
            Self::Pipe => "pipe",
            Self::Signal => "signal",
            Self::Setting => "setting",
        }
    }

    /// What it is, for a person.
    pub fn words(self) -> &'static str {
        match self {
            Self::Write => "writing a file in the workspace",
            Self::Chmod => "changing a file's mode",
            Self::Chown => "changing a file's owner",
            Self::Utime => "changing a file's times",
            Self::Xattr => "changing a file's extended attributes",
            Self::Socket => "connecting to a Unix socket of outside",
            Self::Network => "connecting over TCP",
            Self::Pipe => "writing into a named pipe",
            Self::Signal => "signalling a process of outside",
            Self::Setting => "changing a kernel setting",
        }
    }

    /// The effect of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|effect| effect.name() == name)
    }
}

/// What the effects are tried on. Made by the host, outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Targets {
    /// An absolute folder with a target for each effect on files, under the effect's name: a
    /// folder `write`, files, a listening socket, a named pipe that is open for reading.
    pub folder: PathBuf,
    /// A listening TCP port of 127.0.0.1.
    pub port: u16,
    /// A process of outside that this user may signal. Nothing but signal 0 is sent.
    pub pid: u32,
    /// Its start time, so that a process of inside is not taken for it.
    pub start_time: u64,
}

impl Targets {
    fn of(&self, effect: Effect) -> PathBuf {
        self.folder.join(effect.name())
    }

    /// The arguments by which [`Targets::parse`] finds them again, the first word included.
    pub fn arguments(&self) -> Vec<std::ffi::OsString> {
        vec![
            TRY_EFFECTS.into(),
            self.folder.clone().into(),
            self.port.to_string().into(),
            self.pid.to_string().into(),
            self.start_time.to_string().into(),
        ]
    }

    /// Reads what follows the first word.
    pub fn parse(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        let folder = PathBuf::from(arguments.next()?);
        let mut number = || arguments.next()?.to_str()?.parse::<u64>().ok();
        let (port, pid, start_time) = (number()?, number()?, number()?);
        let targets = Self {
            folder,
            port: port.try_into().ok()?,
            pid: pid.try_into().ok()?,
            start_time,
        };
        (arguments.next().is_none() && targets.folder.is_absolute()).then_some(targets)
    }
}

/// Tries all of them and says of each in one line how it went: `<name> happened`, or
/// `<name> prevented: <reason>`.
pub fn try_all(targets: &Targets) -> String {
    Effect::ALL
        .into_iter()
        .map(|effect| match attempt(effect, targets) {
            Ok(()) => format!("{} happened\n", effect.name()),
            Err(reason) => format!("{} prevented: {reason}\n", effect.name()),
        })
        .collect()
}

/// The effects that happened, read off a report.
///
/// # Errors
/// What is wrong with the report: then nothing is proven.
pub fn happened(report: &str) -> Result<Vec<Effect>, String> {
    let mut happened = Vec::new();
    for effect in Effect::ALL {
        let mut lines = report.lines().filter_map(|line| {
            line.strip_prefix(effect.name())
                .and_then(|rest| rest.strip_prefix(' '))
        });
        match (lines.next(), lines.next()) {
            (Some("happened"), None) => happened.push(effect),
            (Some(line), None) if line.starts_with("prevented: ") => {}
            (None | Some(_), _) => {
                return Err(format!("nothing clear is said of {}", effect.words()));
            }
        }
    }
    Ok(happened)
}

#[cfg(unix)]
fn attempt(effect: Effect, targets: &Targets) -> std::io::Result<()> {
    use std::fs::{self, File, FileTimes, OpenOptions, Permissions};
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
    use std::time::SystemTime;

    let target = targets.of(effect);
    match effect {
        Effect::Write => File::create_new(target.join("written")).map(drop),
        Effect::Chmod => fs::set_permissions(&target, Permissions::from_mode(0o640)),
        Effect::Chown => {
            // To the same owner: allowed to every owner, and an effect all the same (ctime).
            let meta = fs::metadata(&target)?;
            std::os::unix::fs::chown(&target, Some(meta.uid()), Some(meta.gid()))
        }
        Effect::Utime => {
            File::open(&target)?.set_times(FileTimes::new().set_modified(SystemTime::UNIX_EPOCH))
        }
        Effect::Xattr => rustix::fs::setxattr(
            &target,
            "user.holdfast",
            b"1",
            rustix::fs::XattrFlags::empty(),
        )
        .map_err(Into::into),
        Effect::Socket => connect(&target),
        Effect::Network => {
            std::net::TcpStream::connect((std::net::Ipv4Addr::LOCALHOST, targets.port)).map(drop)
        }
        // Not waiting: without a reader that is an error, and there is one.
        Effect::Pipe => OpenOptions::new()
            .write(true)
            .custom_flags(libc::O_NONBLOCK)
            .open(&target)
            .map(drop),
        Effect::Signal => signal(targets),
        Effect::Setting => setting(),
    }
}

#[cfg(not(unix))]
fn attempt(effect: Effect, targets: &Targets) -> std::io::Result<()> {
    let _ = targets.of(effect);
    Err(std::io::ErrorKind::Unsupported.into())
}

/// By a short name: a socket's path has some hundred bytes only. This process does nothing else, so
/// its working folder may change.
#[cfg(unix)]
fn connect(socket: &std::path::Path) -> std::io::Result<()> {
    if let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) {
        std::env::set_current_dir(folder)?;
        std::os::unix::net::UnixStream::connect(name)?;
    }
    Ok(())
}

#[cfg(unix)]
fn signal(targets: &Targets) -> std::io::Result<()> {
    let nobody = || std::io::Error::from(std::io::ErrorKind::NotFound);
    let pid = i32::try_from(targets.pid)
        .ok()
        .and_then(rustix::process::Pid::from_raw)
        .ok_or_else(nobody)?;
    rustix::process::test_kill_process(pid)?;
    // The number may be another process's inside.
    match crate::identity::process_start_time(targets.pid) {
        Ok(Some(start_time)) if start_time == targets.start_time => Ok(()),
        // Nobody of that number can be told from the one of outside: the safe side.
        Err(_) => Ok(()),
        Ok(_) => Err(nobody()),
    }
}

/// Opened and not written. Where there is no such file there is nothing to change by it.
#[cfg(unix)]
fn setting() -> std::io::Result<()> {
    std::fs::OpenOptions::new()
        .write(true)
        .open("/proc/sys/vm/drop_caches")
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_counts_only_when_it_is_whole() {
        let whole: String = Effect::ALL
            .iter()
            .map(|effect| format!("{} prevented: why\n", effect.name()))
            .collect();
        assert_eq!(happened(&whole), Ok(Vec::new()));
        let leaky = whole.replace("pipe prevented: why", "pipe happened");
        assert_eq!(happened(&leaky), Ok(vec![Effect::Pipe]));
        for wrong in [
            String::new(),
            whole.replace("chown prevented: why\n", ""),
            whole.replace("chown prevented: why", "chown"),
            whole.clone() + "chown happened\n",
        ] {
            assert!(happened(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn targets_are_read_back() {
        let targets = Targets {
            folder: if cfg!(windows) { "C:\\x" } else { "/x" }.into(),
            port: 80,
            pid: 7,
            start_time: 1 << 40,
        };
        let read = Targets::parse(targets.arguments().into_iter().skip(1));
        assert_eq!(read, Some(targets));
    }
}
