//! The session log: append-only JSON lines, one file per session, each line sealed by a checksum.
//!
//! Guarantees:
//! - What [`Log::append`] or [`Writer::append`] acknowledged is durable, in the order of `seq`; what
//!   failed is not in the log, and a `write_reset` record says which attempts never started (TR-48).
//! - One process at a time writes ([`Lease`]); others read ([`read_only`]) or take a copy
//!   ([`copy_session`]).
//! - A line counts only when its checksum is right. An unverified tail is kept aside before it is
//!   cut; damage in the middle is reported with its place, and what comes after it is kept.
//!
//! It knows nothing of what records mean: a kind and a JSON text.

mod check;
mod copy;
mod error;
mod index;
mod lease;
mod line;
mod log;
mod read;
mod scan;
mod spill;
mod writer;

pub use copy::{Copied, copy_session};
pub use error::JournalError;
pub use index::{Index, read_index};
pub use lease::{Holder, Lease, holder};
pub use line::{Entry, MAX_PAYLOAD_BYTES};
pub use log::{
    Batch, LOG_FILE, LOG_SHA256, Log, NewRecord, Opened, Position, Reopened, TailRepair,
    WRITE_RESET,
};
pub use read::{Peek, ReadOnly, peek, read_only};
pub use scan::Damage;
pub use spill::Spill;
pub use writer::Writer;
