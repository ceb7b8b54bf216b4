//! Commands about what is shown as true now: the projection, the layout of tabs, and projects.

use holdfast_api::app::{Nothing, Tab};
use holdfast_api::desktop::{
    ActiveTab, Draft, Layout, NewSession, OpenSession, ProjectFolder, ProjectList,
    RuntimeStateProjection, TabView,
};

use crate::commands::commands;

commands! {
    /// RS-18: the projection as it is.
    get_runtime_state_snapshot(Nothing) -> RuntimeStateProjection;
    /// RS-20: verifies every remote connection first.
    sync_runtime_state(Nothing) -> RuntimeStateProjection;
    /// Tabs, drafts and the active tab, as they were left.
    get_layout(Nothing) -> Layout;
    /// A new session in a project, in a new tab.
    new_session(NewSession) -> TabView;
    /// An existing session in a tab; its tab when it has one.
    open_session(OpenSession) -> TabView;
    /// Closes a tab; the session goes on.
    close_tab(Tab) -> Layout;
    /// Remembers the active tab.
    select_tab(ActiveTab) -> Nothing;
    /// Keeps a draft over restarts.
    save_draft(Draft) -> Nothing;
    /// Projects with their sessions.
    list_projects(Nothing) -> ProjectList;
    /// Adds a folder as a project.
    open_project(ProjectFolder) -> ProjectList;
    /// Takes a project off the list; nothing of it is touched.
    remove_project(ProjectFolder) -> ProjectList;
    /// Makes the demo's sample project and opens a session in it.
    start_demo(Nothing) -> TabView;
}
