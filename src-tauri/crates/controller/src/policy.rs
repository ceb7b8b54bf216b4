//! Which calls run, which are asked, which are refused: modes and grants (TR-04).

use holdfast_domain::transcript::session::{Grant, Session};
use holdfast_tools::{Prepared, ToolKind};

use crate::config::Mode;

/// What happens with a checked call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// It runs.
    Allow,
    /// A person is asked; why.
    Ask(&'static str),
    /// It is refused: code and text for the model.
    Refuse(&'static str, &'static str),
}

/// Decides by mode, grants, and whether the turn goes on after a restart, where every call with an
/// effect is asked (TR-51).
pub fn decide(session: &Session, call: &Prepared, continuation: bool) -> Decision {
    if call.read_only {
        return Decision::Allow;
    }
    let mode = Mode::parse(&session.mode).unwrap_or(Mode::Ask);
    if mode == Mode::ReadOnly {
        return Decision::Refuse(
            "mode_read_only",
            "refused: the session is in read-only mode, and this call may change something. \
             Nothing was run. Say what you would change instead.",
        );
    }
    if continuation {
        return Decision::Ask("the program was restarted during this turn");
    }
    match (mode, call.kind) {
        (Mode::Full, _) => return Decision::Allow,
        (Mode::Edits, ToolKind::Edit) => return Decision::Allow,
        (Mode::Ask | Mode::Edits | Mode::ReadOnly, _) => {}
    }
    if session.grants.contains(&grant_for(call)) {
        return Decision::Allow;
    }
    Decision::Ask(match call.kind {
        ToolKind::Edit => "it changes a file",
        ToolKind::Shell => "it runs a command",
        ToolKind::Network => "it uses the network",
        ToolKind::Job => "it stops a job",
        ToolKind::Read | ToolKind::Brought => "it may have an effect",
    })
}

/// TR-36: whether the session's mode lets a retry run. Nobody is asked: the person who asks for it
/// has looked at this very attempt, and that is the approval of this one call.
pub fn allows_retry(session: &Session, read_only: bool) -> bool {
    read_only || Mode::parse(&session.mode).unwrap_or(Mode::Ask) != Mode::ReadOnly
}

/// What "for this session" allows: file changes by that tool, or this exact command.
pub fn grant_for(call: &Prepared) -> Grant {
    Grant {
        tool: call.canonical_tool.clone(),
        key: if call.file.is_some() {
            Grant::WHOLE_TOOL.to_owned()
        } else {
            call.argument_digest.clone()
        },
    }
}
