//! HTTP and server-sent events of a host.
//!
//! Guarantees: every route comes from the table of operations; a request is looked at in this
//! order: Host, Origin, token, body limit, content type, JSON, fields; errors are
//! `{"code","message"}`; a reader of the event stream that does not read delays nobody.

mod app;
mod error;
mod events;
mod guard;
mod handlers;
mod local;
mod login;
mod server;
mod token;
mod ui;
mod unread;

pub use app::{EventSource, app_routes, path_of};
pub use handlers::registry;
pub use local::LocalSocket;
pub use login::Logins;
pub use server::{ServeError, ServeOptions, Server, Web};
pub use token::Token;
pub use ui::{CSP, UiFolder};
