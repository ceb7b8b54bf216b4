//! No opening for writing outside the scratch folder (Landlock).
//!
//! A read-only mount keeps regular files and folders as they are. A named pipe or a device on it can
//! be opened for writing all the same, and what is written there arrives outside.

use std::path::Path;

use landlock::{
    ABI, AccessFs, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus, path_beneath_rules,
};

/// The oldest version that knows truncation; on a system with an older one the part that it knows
/// is in force, which covers opening.
const VERSION: ABI = ABI::V3;

/// Forbids it for this thread and all that it becomes or starts.
pub(super) fn forbid(scratch: &Path) -> Result<(), String> {
    let failed = |error: landlock::RulesetError| format!("Landlock: {error}");
    let writing = AccessFs::from_write(VERSION);
    let allowed = path_beneath_rules([scratch, Path::new("/dev")], writing);
    let status = Ruleset::default()
        .handle_access(writing)
        .and_then(Ruleset::create)
        .and_then(|ruleset| ruleset.add_rules(allowed))
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(failed)?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err(
            "this system can't keep a command from writing into named pipes (that needs Landlock, \
             Linux 5.13 or later)"
                .to_owned(),
        ),
    }
}
