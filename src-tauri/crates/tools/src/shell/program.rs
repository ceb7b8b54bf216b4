//! The shell that runs commands: `/bin/sh`; on Windows PowerShell, or `cmd` where that does not work.
//!
//! Guarantee: which shell it is is found out once for the whole process, by trying it on Windows, and
//! is what the model is told; a command that the shell would silently cut is refused.

use std::ffi::OsString;
use std::sync::OnceLock;

/// What differs between shells.
#[cfg_attr(
    not(windows),
    allow(dead_code, reason = "all but `Sh` are found on Windows")
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A POSIX shell.
    Sh,
    /// PowerShell 7 or later.
    PowerShell,
    /// The PowerShell that comes with Windows.
    WindowsPowerShell,
    /// The command prompt.
    Cmd,
}

/// A shell of this system.
#[derive(Debug)]
pub(crate) struct Shell {
    program: OsString,
    kind: Kind,
}

impl Shell {
    /// The one that runs commands here. On Windows the first call takes as long as a shell takes to
    /// start.
    pub(crate) fn of_this_system() -> &'static Self {
        static SHELL: OnceLock<Shell> = OnceLock::new();
        SHELL.get_or_init(find)
    }

    /// Its program.
    pub(crate) fn program(&self) -> OsString {
        self.program.clone()
    }

    /// The arguments that make it run a command.
    pub(crate) fn arguments(&self, command: &str) -> Vec<OsString> {
        let fixed: &[&str] = match self.kind {
            Kind::Sh => &["-c"],
            Kind::PowerShell | Kind::WindowsPowerShell => {
                &["-NoLogo", "-NoProfile", "-NonInteractive", "-Command"]
            }
            Kind::Cmd => &["/D", "/S", "/C"],
        };
        let command = match self.kind {
            Kind::Sh | Kind::Cmd => command.to_owned(),
            Kind::PowerShell | Kind::WindowsPowerShell => in_power_shell(command),
        };
        fixed
            .iter()
            .map(OsString::from)
            .chain([OsString::from(command)])
            .collect()
    }

    /// Why it can't run a command as it is written, if it can't.
    pub(crate) fn refuses(&self, command: &str) -> Option<&'static str> {
        match self.kind {
            // It would run the first line and say nothing of the others.
            Kind::Cmd if command.trim().contains(['\n', '\r']) => {
                Some("it has more than one line, of which cmd runs only the first; join them by &")
            }
            Kind::Cmd | Kind::Sh | Kind::PowerShell | Kind::WindowsPowerShell => None,
        }
    }

    /// Its name and its peculiarities, for the model: what follows "Runs a command by".
    pub(crate) fn description(&self) -> &'static str {
        match self.kind {
            Kind::Sh => "/bin/sh",
            Kind::PowerShell => "PowerShell (pwsh -NoProfile)",
            Kind::WindowsPowerShell => {
                "Windows PowerShell 5.1 (powershell -NoProfile; it has no &&, use ; or if ($?))"
            }
            Kind::Cmd => "cmd (one line; join commands by & or &&)",
        }
    }
}

/// Output as UTF-8, and the exit status of the last command as that of the shell, which by itself
/// says 1 for every failed program.
fn in_power_shell(command: &str) -> String {
    format!(
        "try {{ [Console]::OutputEncoding = New-Object Text.UTF8Encoding $false }} catch {{ }}\n\
         $global:LASTEXITCODE = 0\n\
         {command}\n\
         if (-not $?) {{ if ($LASTEXITCODE) {{ exit $LASTEXITCODE }}; exit 1 }}; exit 0"
    )
}

#[cfg(not(windows))]
fn find() -> Shell {
    Shell {
        program: "/bin/sh".into(),
        kind: Kind::Sh,
    }
}

#[cfg(windows)]
fn find() -> Shell {
    let system = std::env::var_os("SystemRoot")
        .map_or_else(|| r"C:\Windows".into(), std::path::PathBuf::from)
        .join("System32");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let seven = std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join("pwsh.exe"))
        .find(|program| program.is_file())
        .map(|program| (program, Kind::PowerShell));
    let five = system.join(r"WindowsPowerShell\v1.0\powershell.exe");
    seven
        .into_iter()
        .chain([(five, Kind::WindowsPowerShell)])
        .map(|(program, kind)| Shell {
            program: program.into(),
            kind,
        })
        .find(runs)
        .unwrap_or(Shell {
            program: system.join("cmd.exe").into(),
            kind: Kind::Cmd,
        })
}

/// Whether a shell can be used: it may be forbidden by a policy, or only pretend to be there.
#[cfg(windows)]
fn runs(shell: &Shell) -> bool {
    use std::os::windows::process::CommandExt;
    use std::process::{Command, Stdio};
    use std::time::{Duration, Instant};

    const CREATE_NO_WINDOW: u32 = 0x0800_0000;
    const PATIENCE: Duration = Duration::from_secs(20);
    let tried = Command::new(&shell.program)
        .args([
            "-NoLogo",
            "-NoProfile",
            "-NonInteractive",
            "-Command",
            "exit 7",
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .creation_flags(CREATE_NO_WINDOW)
        .spawn();
    let Ok(mut tried) = tried else { return false };
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        match tried.try_wait() {
            Ok(Some(status)) => return status.code() == Some(7),
            Ok(None) => std::thread::sleep(Duration::from_millis(5)),
            Err(_) => break,
        }
    }
    let _ = tried.kill();
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(kind: Kind) -> Shell {
        Shell {
            program: "shell".into(),
            kind,
        }
    }

    #[test]
    fn only_cmd_refuses_a_command_of_several_lines() {
        assert_eq!(shell(Kind::Cmd).refuses("dir\n"), None);
        assert!(shell(Kind::Cmd).refuses("dir\ndel x").is_some());
        assert_eq!(shell(Kind::WindowsPowerShell).refuses("dir\ndel x"), None);
        assert_eq!(shell(Kind::Sh).refuses("ls\nls"), None);
    }

    #[test]
    fn a_command_stays_one_argument() {
        for kind in [
            Kind::Sh,
            Kind::PowerShell,
            Kind::WindowsPowerShell,
            Kind::Cmd,
        ] {
            let arguments = shell(kind).arguments("echo \"a b\" 'c'");
            let last = arguments.last().unwrap().to_string_lossy().into_owned();
            assert!(last.contains("echo \"a b\" 'c'"), "{last}");
        }
        assert_eq!(shell(Kind::Sh).arguments("ls"), ["-c", "ls"]);
        assert_eq!(shell(Kind::Cmd).arguments("dir"), ["/D", "/S", "/C", "dir"]);
    }
}
