//! `list_dir`.

use crate::error::ToolError;
use crate::workspace::{Resolved, Workspace};

/// Names that are listed; a folder with more says so.
const LIMIT: usize = 2000;

/// One folder as text, sorted by name.
pub(crate) fn list(workspace: &Workspace, place: &Resolved) -> Result<String, ToolError> {
    let folder = workspace
        .folder()
        .folder(&place.relative)
        .map_err(|error| workspace.explain(error, place))?;
    // One more than is shown, to know that there are more; sorting wants all that are there, so a
    // huge folder shows the first that the system gives.
    let mut entries = folder
        .entries(LIMIT + 1)
        .map_err(|error| ToolError::reading("listing the folder", &place.given, error))?;
    let more = entries.len() > LIMIT;
    entries.truncate(LIMIT);
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let mut text = String::new();
    for entry in &entries {
        // A name may hold a line end; one line is one entry.
        text.push_str(
            &entry
                .name
                .escape_debug()
                .to_string()
                .replace("\\\"", "\"")
                .replace("\\'", "'"),
        );
        text.push_str(entry.mark);
        if let Some(size) = entry.size {
            text.push_str(&format!("  {size}"));
        }
        text.push('\n');
    }
    if entries.is_empty() {
        text.push_str("[the folder is empty]\n");
    }
    if more {
        text.push_str(&format!(
            "[more than {LIMIT} entries; only some are listed: use glob with a pattern]\n"
        ));
    }
    Ok(text)
}
