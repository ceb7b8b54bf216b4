//! All that the window shows, without the window: tabs, projects, the one projection, settings.
//!
//! Guarantees: every indicator comes from one projection of committed states, and no state is
//! published under an old binding (RS-18, RS-19, RS-21); what a person left (tabs, order, drafts)
//! is on disk before the operation is answered; a file that can't be read is kept aside and never
//! overwritten; the window and the browser get the same operations and the same events.

mod catalogue;
mod config_file;
mod demo;
mod desktop;
mod error;
mod events;
mod hosts;
mod keys;
mod operations;
pub mod projection;
mod providers;
pub mod quitting;
mod remembered;
mod restore;
mod settings;
mod shelf;
mod watcher;

pub use demo::default_folder as default_demo_folder;
pub use desktop::{Desktop, DesktopOptions, HOST_SILENCE, retry_enabled};
pub use error::DesktopError;
pub use events::Events;
pub use keys::{Kept, KeyStore, StoredKeys, keychain_service};
