//! The wire types from the outside: JSON in, JSON out.

mod frames;
mod requests;
mod snapshot;
mod table;
