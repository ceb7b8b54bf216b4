//! The inner stage of the effect-free sandbox (TR-21): what the mounts and namespaces around it let
//! through. It runs inside of them, takes more away from itself, and becomes the command.
//!
//! Guarantees: the command can make no socket that leads out of its network namespace, open no named
//! pipe or device for writing, and reach no key ring; when any of that can't be taken away, or the
//! folder that must not change is mounted writable, nothing runs.

#[cfg(target_os = "linux")]
mod sockets;
#[cfg(target_os = "linux")]
mod writes;

use std::ffi::OsString;
use std::path::PathBuf;

use crate::error::SupervisorError;

/// The first argument that makes this executable the inner stage.
pub const CONFINE: &str = "confine";

/// What to run, and within what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confinement {
    /// The one folder, besides `/dev`, in which files may be opened for writing: private to the
    /// sandbox.
    pub scratch: PathBuf,
    /// A folder that must be mounted read-only; `None` asks for nothing.
    pub read_only: Option<PathBuf>,
    /// Program and arguments.
    pub command: Vec<OsString>,
}

impl Confinement {
    /// The arguments by which [`Confinement::parse`] finds it again, the first word included.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments = vec![CONFINE.into(), self.scratch.clone().into()];
        arguments.push(self.read_only.clone().unwrap_or_default().into());
        arguments.push("--".into());
        arguments.extend(self.command.iter().cloned());
        arguments
    }

    /// Reads what follows the first word: scratch, read-only folder or nothing, `--`, command.
    pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Option<Self> {
        let mut arguments = arguments.into_iter();
        let scratch = arguments.next().filter(|scratch| !scratch.is_empty())?;
        let read_only = arguments.next()?;
        if arguments.next()? != "--" {
            return None;
        }
        let command: Vec<OsString> = arguments.collect();
        if command.is_empty() {
            return None;
        }
        Some(Self {
            scratch: scratch.into(),
            read_only: (!read_only.is_empty()).then(|| read_only.into()),
            command,
        })
    }

    /// Takes everything away and becomes the command. Returns only when it can't.
    #[cfg(target_os = "linux")]
    pub fn enter(&self) -> SupervisorError {
        use std::os::unix::process::CommandExt;

        let refused = |reason: String| SupervisorError::Unconfined { reason };
        if let Some(folder) = &self.read_only {
            match rustix::fs::statvfs(folder) {
                Ok(found) if found.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY) => {}
                Ok(_) => {
                    let reason = format!("{} is not mounted read-only", folder.display());
                    return refused(reason);
                }
                Err(error) => return refused(format!("{}: {error}", folder.display())),
            }
        }
        // The filter last: it may refuse what the other one needs.
        if let Err(reason) = writes::forbid(&self.scratch).and_then(|()| sockets::forbid()) {
            return refused(reason);
        }
        let [program, arguments @ ..] = self.command.as_slice() else {
            return refused("no command was named".to_owned());
        };
        let error = std::process::Command::new(program).args(arguments).exec();
        refused(format!("{} can't be executed: {error}", program.display()))
    }

    /// Runs nothing.
    #[cfg(not(target_os = "linux"))]
    pub fn enter(&self) -> SupervisorError {
        SupervisorError::UnsupportedPlatform
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_back() {
        for read_only in [None, Some(PathBuf::from("/work"))] {
            let confinement = Confinement {
                scratch: "/tmp".into(),
                read_only,
                command: vec!["/bin/sh".into(), "-c".into(), "--".into()],
            };
            let arguments = confinement.arguments();
            assert_eq!(arguments[0], CONFINE);
            let read = Confinement::parse(arguments.into_iter().skip(1));
            assert_eq!(read, Some(confinement));
        }
        for short in [&["/tmp"][..], &["/tmp", "", "--"], &["", "", "--", "ls"]] {
            let read = Confinement::parse(short.iter().map(OsString::from));
            assert_eq!(read, None);
        }
    }
}
