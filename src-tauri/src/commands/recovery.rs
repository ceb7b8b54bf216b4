//! Commands about calls whose outcome is unknown (TR-40).

use holdfast_api::app::{Tab, TabRecovery};
use holdfast_api::recovery::ToolRecoverySnapshot;

use crate::commands::commands;

commands! {
    /// TR-40: what is unresolved in a tab's session.
    get_tool_recovery_for_tab(Tab) -> ToolRecoverySnapshot;
    /// TR-40: inspects or resolves an attempt. A refusal carries the present snapshot (TR-41).
    resolve_tool_recovery_for_tab(TabRecovery) -> ToolRecoverySnapshot;
}
