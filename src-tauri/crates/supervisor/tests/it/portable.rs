//! What holds on every system: claims, receipts, ends. The processes are this test program itself,
//! in the roles of `actor`, so that no shell is needed; only what is about a shell uses the system's.

mod actor;
mod ends;
mod host;
mod receipts;
mod stage;
