//! What `doctor` looks at: whether this machine and this data folder can keep the promises.

use holdfast_journal::{Holder, JournalError, Lease};
use serde::Serialize;

use super::Host;

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// As it should be.
    Ok,
    /// It works, with less.
    Warning,
    /// Something that users rely on does not work.
    Failed,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What was looked at.
    pub name: &'static str,
    /// How it went.
    pub check: Check,
    /// For a person: what was found, and what to do.
    pub message: String,
}

impl Host {
    /// Looks at everything; changes nothing but a probe folder that it removes.
    pub fn diagnose(&self) -> Vec<Finding> {
        vec![
            self.check_storage(),
            self.check_supervisor(),
            self.check_sandbox(),
            self.check_runtime_folder(),
            self.check_model(),
            self.check_sessions(),
        ]
    }

    /// A file that is written, synced and locked, as session logs are.
    fn check_storage(&self) -> Finding {
        let folder = self
            .shared
            .data
            .join(format!("probe-{}", self.shared.source.id()));
        let holder = Holder {
            pid: std::process::id(),
            host: String::new(),
            since: 0,
            socket: None,
        };
        let probed: Result<(), JournalError> = Lease::create(&folder, &holder).map(drop);
        let removed = std::fs::remove_dir_all(&folder);
        match (probed, removed) {
            (Ok(()), Ok(())) => finding(
                "storage",
                Check::Ok,
                format!(
                    "{} can be written, synced and locked",
                    self.shared.data.display()
                ),
            ),
            (Ok(()), Err(error)) => finding(
                "storage",
                Check::Warning,
                format!("the probe folder {} was left ({error})", folder.display()),
            ),
            (Err(error), _) => finding("storage", Check::Failed, error.to_string()),
        }
    }

    fn check_supervisor(&self) -> Finding {
        if !holdfast_supervisor::SUPPORTED {
            return finding(
                "supervisor",
                Check::Warning,
                "commands can't be run on this system yet; file tools work".to_owned(),
            );
        }
        match holdfast_supervisor::find_binary() {
            // SV-03: said before a command is started, not after it was lost.
            Ok(binary) if !holdfast_supervisor::survives_host() => finding(
                "supervisor",
                Check::Warning,
                format!(
                    "{} runs commands, but they end with the program: it was started in a job \
                     object that denies breaking away",
                    binary.display()
                ),
            ),
            Ok(binary) => finding(
                "supervisor",
                Check::Ok,
                format!(
                    "{} runs commands that outlive the program",
                    binary.display()
                ),
            ),
            Err(error) => finding("supervisor", Check::Failed, error.to_string()),
        }
    }

    /// TR-21: read-only commands, by the probe that decides on them.
    fn check_sandbox(&self) -> Finding {
        match self.shared.registry.check_sandbox() {
            Ok(()) => finding(
                "sandbox",
                Check::Ok,
                "read-only commands run where nothing can be changed: each effect was tried and \
                 prevented"
                    .to_owned(),
            ),
            Err(refusal) => finding("sandbox", Check::Warning, refusal.message),
        }
    }

    fn check_runtime_folder(&self) -> Finding {
        match &self.shared.runtime_folder {
            Some(folder) => finding(
                "sockets",
                Check::Ok,
                format!("{} is private", folder.display()),
            ),
            None => finding(
                "sockets",
                Check::Warning,
                "there is no private folder for sockets; commands are watched by their files, a \
                 little slower"
                    .to_owned(),
            ),
        }
    }

    fn check_model(&self) -> Finding {
        let model = self.shared.config.default_model();
        match self.shared.models.client(model) {
            Ok(_) if model == "demo/demo" => finding(
                "model",
                Check::Warning,
                "no provider is configured: the scripted demo model answers; add a provider to \
                 config.toml"
                    .to_owned(),
            ),
            Ok(_) => finding("model", Check::Ok, format!("{model} is configured")),
            Err(error) => finding("model", Check::Failed, error.message),
        }
    }

    fn check_sessions(&self) -> Finding {
        let folder = self.shared.sessions_folder();
        let ids = super::list::session_ids(&folder);
        let broken: Vec<String> = ids
            .iter()
            .filter_map(|id| {
                let problem = super::list::summary(&folder.join(id), id).err()?;
                Some(format!("{id}: {problem}"))
            })
            .collect();
        if broken.is_empty() {
            finding(
                "sessions",
                Check::Ok,
                format!("{} sessions can be read", ids.len()),
            )
        } else {
            finding("sessions", Check::Failed, broken.join("; "))
        }
    }
}

fn finding(name: &'static str, check: Check, message: String) -> Finding {
    Finding {
        name,
        check,
        message,
    }
}
