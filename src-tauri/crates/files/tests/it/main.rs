//! The file layer from outside: real files, real locks, and the faults on top of them.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod fault;
mod lock;
mod private;
mod storage;
