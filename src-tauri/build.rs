//! Names every command of the window, so that each needs a grant in a capability; without the list
//! Tauri would allow all of them to every window.

/// Commands, in the order of the table of app operations; `pick_folder` and `quit` are the window's own.
const COMMANDS: &[&str] = &[
    "get_runtime_state_snapshot",
    "sync_runtime_state",
    "get_tool_recovery_for_tab",
    "resolve_tool_recovery_for_tab",
    "get_layout",
    "new_session",
    "open_session",
    "close_tab",
    "select_tab",
    "save_draft",
    "list_projects",
    "open_project",
    "remove_project",
    "start_demo",
    "list_sessions",
    "change_session",
    "delete_session",
    "submit",
    "inbox",
    "inbox_receipt",
    "enqueue",
    "edit_item",
    "delete_item",
    "move_item",
    "pause_inbox",
    "resume_inbox",
    "cancel",
    "compact",
    "rewind",
    "fork_session",
    "pending_prompts",
    "approve",
    "transcript_snapshot",
    "transcript_page",
    "diff",
    "output",
    "jobs",
    "cancel_job",
    "background_job",
    "list_models",
    "get_settings",
    "save_settings",
    "list_providers",
    "save_provider",
    "test_provider",
    "list_hosts",
    "save_host",
    "remove_host",
    "test_host",
    "retry_host",
    "pick_folder",
    "quit",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let commands = tauri_build::AppManifest::new().commands(COMMANDS);
    tauri_build::try_build(tauri_build::Attributes::new().app_manifest(commands))?;
    Ok(())
}
