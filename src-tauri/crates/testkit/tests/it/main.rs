//! Tests of what other tests stand on.

mod child_host;
mod effects;
mod scripts;
