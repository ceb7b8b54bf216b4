//! Commands that outlive the host: a small process starts one command, keeps its output and leaves
//! a truthful receipt in the attempt's effect folder; this library is the host's side of it, and
//! the body of that process.
//!
//! Guarantees: a command runs only if its supervisor won the claim for `start`, and a host that won
//! it as `void` knows that the command never ran and never will (TR-18); an attempt's end comes
//! from its exit receipt and from nothing else (SV-02); a receipt of another attempt, digest, owner
//! or mode is refused; what can't be known is answered as lost, with the processes that still carry
//! the attempt's id.
//!
//! Linux, macOS and Windows are implemented; docs/PLATFORMS.md says what each of them can prove, and
//! what was run where. Elsewhere every call compiles, and what would run or look at a command answers
//! `unsupported_platform`.

pub mod attachment;
pub mod claim;
#[cfg(any(windows, test))]
mod command_line;
pub mod confinement;
#[cfg(target_os = "macos")]
mod darwin;
pub mod effects;
pub mod error;
pub mod folder;
pub mod identity;
#[cfg(any(target_os = "linux", target_os = "macos", windows))]
pub mod keeper;
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
#[path = "keeper_unsupported.rs"]
pub mod keeper;
pub mod launch;
pub mod look;
pub mod orphans;
#[cfg(target_os = "linux")]
mod process_table;
#[cfg(target_os = "macos")]
#[path = "process_table/macos.rs"]
mod process_table;
#[cfg(windows)]
#[path = "process_table/windows.rs"]
mod process_table;
#[cfg(not(any(target_os = "linux", target_os = "macos", windows)))]
#[path = "process_table/unsupported.rs"]
mod process_table;
pub mod receipt;
pub mod request;
pub mod runtime_folder;
#[cfg(windows)]
mod win32;

pub use attachment::{Attachment, Progress, Target};
pub use claim::{Claim, claim_void, started_by};
pub use confinement::Confinement;
pub use effects::{Effect, Targets};
pub use error::SupervisorError;
pub use folder::{list, remove, request_keep, request_stop};
pub use identity::{boot_id, process_start_time, stragglers};
pub use launch::{Launched, find_binary, install_binary, launch, survives_host};
pub use look::{Presence, look, presence};
pub use orphans::end_stragglers;
pub use receipt::{JobEnd, read_end, read_receipt, verify_output};
pub use request::{HostIdentity, OnHostLoss, Request, prepare};
pub use runtime_folder::private_runtime_folder;

/// Whether this system has supervised commands.
pub const SUPPORTED: bool = cfg!(any(target_os = "linux", target_os = "macos", windows));

/// The protocol of requests and receipts that this version writes (SV-08).
pub const PROTOCOL: u32 = 1;

/// Whether what speaks this protocol is understood: the own one, and the one before, so that a
/// command which was started before an update is read after it (SV-08). With any other only the
/// lock and the file `stop` are used: it is shown as running, and can be stopped.
pub(crate) fn is_understood(protocol: u32) -> bool {
    protocol == PROTOCOL || protocol.checked_add(1) == Some(PROTOCOL)
}

/// The variable by which a process of an attempt's tree is found when its supervisor is gone
/// (SV-04). The supervisor adds it to the command's environment.
pub const ATTEMPT_VARIABLE: &str = "HOLDFAST_ATTEMPT_ID";
