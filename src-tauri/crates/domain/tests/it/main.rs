//! Tests of the rules as a caller sees them: records or values in, whole values out.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod admission;
mod arguments;
mod barrier;
mod display;
mod fold;
mod history;
mod identity;
mod inbox;
mod jobs;
mod log;
mod model;
mod next;
mod notes;
mod observed;
mod outbound;
mod outcomes;
mod prefix;
mod publication;
mod records;
mod reduce;
mod remote;
mod repeat;
mod restart;
mod retry;
mod runtime;
mod vectors;
