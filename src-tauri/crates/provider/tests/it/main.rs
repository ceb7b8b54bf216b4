//! Model clients against a real server on loopback, and the demo model with real files.

mod demo;
mod faults;
mod replies;
mod requests;
mod setup;
