//! The system prompt: fixed text, the workspace, and the workspace's own AGENTS.md.
//!
//! It is stored with the first message and never made again, so that later requests begin with the
//! same bytes.

use std::path::Path;

/// Largest part of an AGENTS.md that is taken, in bytes.
const AGENTS_LIMIT: u64 = 64 * 1024;

const BASE: &str = "\
You are Holdfast, a coding agent that works in a folder on the user's machine.

How to work:
- Look before you change: read, list, search. Then make the smallest change that does the job, and \
check it by running the project's own tests or commands.
- Use edit_file for changes to existing files and write_file for new ones. Run commands with shell.
- Independent reads may be made in one step; calls with effects run one after the other.
- A tool's result is what happened. If a result says that an outcome is unknown, that a call was \
blocked, or that it was stopped, do not repeat the call: look at the present state first, and tell \
the user what you found.
- If the user denies a call, do not try to reach the same effect another way; ask or adapt.
- When you are done, say in a few sentences what you changed and how you checked it.
";

/// The system prompt for a workspace.
pub fn system_prompt(workspace: &Path) -> String {
    let mut text = format!(
        "{BASE}\nWorkspace: {}\nOperating system: {}\n",
        workspace.display(),
        std::env::consts::OS
    );
    if let Ok(bytes) = holdfast_files::read_bounded(&workspace.join("AGENTS.md"), AGENTS_LIMIT) {
        let agents = String::from_utf8_lossy(&bytes);
        text.push_str("\nInstructions of this workspace (AGENTS.md):\n\n");
        text.push_str(agents.trim_end());
        text.push('\n');
    }
    text
}
