//! The registry of commands and events, from which the invoke handler and the TypeScript bindings
//! are made.

use tauri_specta::{Builder, ErrorHandlingMode};

/// The registry for one runtime: the system's web view, or the one of tests. A macro, since a
/// generic function can't collect commands.
#[macro_export]
macro_rules! registry {
    ($runtime:ty) => {
        $crate::bindings::with_types(tauri_specta::Builder::<$runtime>::new().commands(
            tauri_specta::collect_commands![
                $crate::commands::runtime::get_runtime_state_snapshot,
                $crate::commands::runtime::sync_runtime_state,
                $crate::commands::recovery::get_tool_recovery_for_tab,
                $crate::commands::recovery::resolve_tool_recovery_for_tab,
                $crate::commands::runtime::get_layout,
                $crate::commands::runtime::new_session,
                $crate::commands::runtime::open_session,
                $crate::commands::runtime::close_tab,
                $crate::commands::runtime::select_tab,
                $crate::commands::runtime::save_draft,
                $crate::commands::runtime::list_projects,
                $crate::commands::runtime::open_project,
                $crate::commands::runtime::remove_project,
                $crate::commands::runtime::start_demo,
                $crate::commands::sessions::list_sessions,
                $crate::commands::sessions::change_session,
                $crate::commands::sessions::delete_session,
                $crate::commands::sessions::submit,
                $crate::commands::sessions::inbox,
                $crate::commands::sessions::inbox_receipt,
                $crate::commands::sessions::enqueue,
                $crate::commands::sessions::edit_item,
                $crate::commands::sessions::delete_item,
                $crate::commands::sessions::move_item,
                $crate::commands::sessions::pause_inbox,
                $crate::commands::sessions::resume_inbox,
                $crate::commands::sessions::cancel,
                $crate::commands::sessions::compact,
                $crate::commands::sessions::rewind,
                $crate::commands::sessions::fork_session,
                $crate::commands::sessions::pending_prompts,
                $crate::commands::sessions::approve,
                $crate::commands::sessions::transcript_snapshot,
                $crate::commands::sessions::transcript_page,
                $crate::commands::sessions::diff,
                $crate::commands::sessions::output,
                $crate::commands::sessions::jobs,
                $crate::commands::sessions::cancel_job,
                $crate::commands::sessions::background_job,
                $crate::commands::settings::list_models,
                $crate::commands::settings::get_settings,
                $crate::commands::settings::save_settings,
                $crate::commands::settings::list_providers,
                $crate::commands::settings::save_provider,
                $crate::commands::settings::test_provider,
                $crate::commands::settings::list_hosts,
                $crate::commands::settings::save_host,
                $crate::commands::settings::remove_host,
                $crate::commands::settings::test_host,
                $crate::commands::settings::retry_host,
                $crate::commands::settings::pick_folder::<$runtime>,
                $crate::commands::settings::quit::<$runtime>,
            ],
        ))
    };
}

/// Adds the events, and the types that only the browser's port needs.
pub fn with_types<R: tauri::Runtime>(builder: Builder<R>) -> Builder<R> {
    use crate::events::{
        DesktopResync, RemoteTabUpdated, RuntimeStateChanged, SessionFramesArrived,
    };
    builder
        .events(tauri_specta::collect_events![
            RuntimeStateChanged,
            DesktopResync,
            RemoteTabUpdated,
            SessionFramesArrived,
            crate::quitting::QuitAsked,
        ])
        .typ::<holdfast_api::desktop::AppEvent>()
        .typ::<holdfast_api::error::ErrorBody>()
        .error_handling(ErrorHandlingMode::Throw)
        .disable_serde_phases()
}
