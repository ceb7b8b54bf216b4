//! HTTP and server-sent events of a host.
//!
//! Guarantees: every route comes from the table of operations; a request is looked at in this
//! order: Host, Origin, token, body limit, content type, JSON, fields; errors are
//! `{"code","message"}`; a reader of the event stream that does not read delays nobody.

mod error;
mod events;
mod guard;
mod handlers;
mod server;
mod token;
mod unread;

pub use handlers::registry;
pub use server::{ServeError, ServeOptions, Server};
pub use token::Token;
