//! The small file layer: the one place of the project that syncs, and the layer that fails on
//! purpose in tests.
//!
//! Guarantees: what these functions say is durable has reached the device as far as the system
//! lets a program know; what is private is 0600 (files) or 0700 (folders) from its first moment.

pub mod fault;
pub mod lock;
pub mod private;
pub mod storage;
pub mod sync;

pub use fault::Faulty;
pub use lock::{FileLock, LockError};
pub use private::{create_private_folder, read_bounded, write_private};
pub use storage::{Disk, Storage, StoredFile};
#[cfg(unix)]
pub use sync::sync_open_folder;
pub use sync::{sync_file, sync_folder};
