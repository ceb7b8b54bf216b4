//! What the demo model knows, read from the messages alone.

use holdfast_domain::transcript::outbound::{OutboundCall, OutboundMessage};
use serde_json::Value;

use super::sample::{CHECK, CHECK_COMMAND, PROGRAM};

/// What a tool's answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It worked, or a command ended with status 0.
    Done,
    /// A command ended with another status.
    Failed,
    /// The tool says that it could not do it.
    Error,
    /// Blocked by an earlier effect that is not resolved (TR-19).
    Blocked,
    /// A person said no, or the mode forbids it.
    Denied,
    /// It was never started.
    NotStarted,
    /// It was stopped or ran out of time; a part of it may have happened.
    Stopped,
    /// Nobody knows whether it happened (TR-15).
    Unknown,
}

impl Answer {
    fn read(tool: &str, text: &str) -> Self {
        let first = text.trim_start().lines().next().unwrap_or_default();
        let first = first.trim_start_matches("error: ").to_ascii_lowercase();
        let last = text.trim_end().lines().last().unwrap_or_default();
        if first.contains("recovery_required") {
            Self::Blocked
        } else if first.contains("outcome") && first.contains("unknown") {
            Self::Unknown
        } else if first.starts_with("not started") || first.starts_with("not_started") {
            Self::NotStarted
        } else if [
            "denied",
            "not allowed",
            "refused",
            "declined",
            "permission_",
        ]
        .iter()
        .any(|word| first.starts_with(word))
            || first.contains("denied by")
            || first.contains("the person denied")
        {
            Self::Denied
        } else if tool == "shell" {
            Self::read_status(text, last)
        } else if text.trim_start().starts_with("error") {
            Self::Error
        } else {
            Self::Done
        }
    }

    fn read_status(text: &str, last: &str) -> Self {
        if last.contains("outcome") && last.contains("unknown") {
            return Self::Unknown;
        }
        // Only the last line is the host's word; the same words above it may be the command's own.
        let number = last.strip_prefix("[exit status ").and_then(|rest| {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse::<i32>().ok()
        });
        match number {
            Some(0) => Self::Done,
            Some(_) => Self::Failed,
            None if last.contains("could not be started") => Self::Error,
            None if last.starts_with('[') => Self::Stopped,
            None if text.trim_start().starts_with("error") => Self::Error,
            // An end without a status proves nothing.
            None => Self::Unknown,
        }
    }
}

/// A call of unknown outcome.
#[derive(Debug)]
pub(crate) struct Unknown {
    /// The call in words.
    pub(crate) what: String,
    /// It was an edit: reading the file shows what is there now.
    pub(crate) is_edit: bool,
}

/// The state of the task. An edit makes what was read and checked before it out of date.
#[derive(Debug, Default)]
pub(crate) struct Facts {
    /// The folder's listing.
    pub(crate) listing: Option<String>,
    /// The program as last read.
    pub(crate) program: Option<String>,
    /// The check was read.
    pub(crate) check_read: bool,
    /// The last run of the check since the last edit.
    pub(crate) checked: Option<Answer>,
    /// Edits that worked.
    pub(crate) edited: usize,
    /// Edits that the tool could not make.
    pub(crate) edits_failed: usize,
    /// The call that did not go through, and why, since a person last spoke.
    pub(crate) obstacle: Option<(String, Answer)>,
    /// The text of that answer.
    pub(crate) obstacle_text: String,
    /// The call whose outcome is unknown, while no host note came since.
    pub(crate) unknown: Option<Unknown>,
    /// An edit's outcome was unknown at some time: what is in the file may be its work.
    pub(crate) edit_uncertain: bool,
}

impl Facts {
    /// Reads the messages from the task on.
    pub(crate) fn read(messages: &[OutboundMessage]) -> Self {
        let mut facts = Self::default();
        let mut open: Vec<&OutboundCall> = Vec::new();
        for message in messages {
            match message {
                OutboundMessage::System { .. } => {}
                OutboundMessage::User { text } => {
                    if is_host_note(text) {
                        facts.unknown = None;
                    }
                    facts.obstacle = None;
                }
                OutboundMessage::Assistant { calls, .. } => open = calls.iter().collect(),
                OutboundMessage::Tool { call_id, text, .. } => {
                    if let Some(call) = open.iter().find(|call| call.id == *call_id) {
                        facts.learn(call, text);
                    }
                }
            }
        }
        facts
    }

    fn learn(&mut self, call: &OutboundCall, text: &str) {
        let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or(Value::Null);
        let path = arguments["path"].as_str().unwrap_or_default();
        let answer = Answer::read(&call.name, text);
        match (call.name.as_str(), answer) {
            ("list_dir", Answer::Done) => self.listing = Some(text.to_owned()),
            ("read_file", Answer::Done) if path == PROGRAM => {
                self.program = Some(text.to_owned());
            }
            ("read_file", Answer::Done) => self.check_read |= path == CHECK,
            ("edit_file", Answer::Done) => {
                self.edited += 1;
                self.checked = None;
            }
            ("edit_file", Answer::Error) => {
                self.edits_failed += 1;
                self.program = None;
                self.checked = None;
            }
            ("shell", Answer::Done | Answer::Failed) => self.checked = Some(answer),
            (tool, _) => {
                if answer == Answer::Unknown {
                    let is_edit = tool == "edit_file";
                    if is_edit {
                        self.edit_uncertain = true;
                        self.program = None;
                        self.checked = None;
                    }
                    self.unknown = Some(Unknown {
                        what: described(tool, path),
                        is_edit,
                    });
                    return;
                }
                // The first one explains the others of its batch.
                if self.obstacle.is_none() {
                    self.obstacle = Some((described(tool, path), answer));
                    self.obstacle_text = text.lines().next().unwrap_or_default().to_owned();
                }
            }
        }
    }
}

pub(crate) fn is_host_note(text: &str) -> bool {
    text.trim_start().starts_with("[host")
}

fn described(tool: &str, path: &str) -> String {
    match tool {
        "shell" => format!("`{CHECK_COMMAND}`"),
        "edit_file" => format!("the edit of {path}"),
        "read_file" => format!("reading {path}"),
        _ => "listing the folder".to_owned(),
    }
}
