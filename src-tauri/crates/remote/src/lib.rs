//! Sessions of another host, over HTTP and an event stream, behind the same trait as local ones.
//!
//! Guarantees: a command is sent once; when its answer is lost, what became of it is looked up and
//! never tried again (TR-42, RS-16); facts about sessions are told with whether they are confirmed
//! (RS-30…36); the token goes to its own origin and nowhere else.

mod address;
mod client;
mod commands;
mod connection;
mod dialect;
mod error;
mod follow;
mod foreign;
mod host;
mod link;
mod own;
mod places;
mod probe;
mod tunnel;
mod verify;

pub use address::Address;
pub use client::{Client, Limits};
pub use connection::{Condition, Connection, ConnectionOptions, ConnectionView, FrameSink};
pub use dialect::Dialect;
pub use error::RemoteError;
pub use host::RemoteHost;
pub use link::{Direct, Link, LinkError};
pub use probe::probe;
pub use tunnel::{Destination, Tunnel};
