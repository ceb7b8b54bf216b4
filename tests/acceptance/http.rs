//! A host's outside over real HTTP: every way to ask wrongly, the event stream, the states, and
//! what never leaves it.

mod approvals;
mod configuration;
mod deltas;
mod lists;
mod recovery;
mod refusals;
mod routes;
mod secrets;
mod states;
mod stream;
