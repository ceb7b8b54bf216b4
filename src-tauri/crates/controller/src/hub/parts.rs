//! What the stream's threads meet at: a lock around its content, and a bell that wakes readers.
//!
//! Guarantee: the stream uses these and nothing else to share, so that a model checker's own parts
//! see every step of it.

use std::fmt::Debug;
use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use super::ring::Inner;

/// A lock and a bell that belong together.
pub trait Parts: Debug + 'static {
    /// Around the content.
    type Lock: Lock;
    /// Wakes readers.
    type Bell: Bell;
}

/// A lock around the content.
pub trait Lock: Debug + Send + Sync {
    /// Around this.
    fn new(inner: Inner) -> Self;
    /// Works on the content, alone.
    fn with<R>(&self, work: impl FnOnce(&mut Inner) -> R) -> R;
}

/// A bell; a ring that nobody waits for is remembered by each ear.
pub trait Bell: Debug + Send + Sync {
    /// Who listens.
    type Ear: Ear;
    /// A silent bell.
    fn new() -> Self;
    /// Rings; never waits.
    fn ring(&self);
    /// Somebody more who listens.
    fn ear(&self) -> Self::Ear;
}

/// Somebody who listens.
pub trait Ear: Debug + Send {
    /// Forgets the rings so far: what they told of is looked at next.
    fn forget(&mut self);
    /// Waits for a ring since then; false when the bell is gone.
    fn rung(&mut self) -> impl Future<Output = bool> + Send;
}

/// What a program runs on.
#[derive(Debug)]
pub struct System;

impl Parts for System {
    type Lock = Mutex<Inner>;
    type Bell = watch::Sender<u64>;
}

impl Lock for Mutex<Inner> {
    fn new(inner: Inner) -> Self {
        Self::new(inner)
    }

    fn with<R>(&self, work: impl FnOnce(&mut Inner) -> R) -> R {
        work(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Bell for watch::Sender<u64> {
    type Ear = watch::Receiver<u64>;

    fn new() -> Self {
        Self::new(0)
    }

    fn ring(&self) {
        self.send_modify(|rings| *rings = rings.wrapping_add(1));
    }

    fn ear(&self) -> Self::Ear {
        self.subscribe()
    }
}

impl Ear for watch::Receiver<u64> {
    fn forget(&mut self) {
        self.mark_unchanged();
    }

    async fn rung(&mut self) -> bool {
        self.changed().await.is_ok()
    }
}
