//! Routes of the app as a client meets them, over real HTTP; who may call them is tested with the
//! program itself.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod app;
