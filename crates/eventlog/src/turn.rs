//! A turn: the requests that share one block, and what became of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Waker;

use event::EventId;

use crate::accepted::TypeCounts;
use crate::duplicates::Place;

/// What became of a turn's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Fate {
    /// It is open, or being committed.
    Pending = 0,
    /// It is durable.
    Durable = 1,
    /// There was no space for it, and nothing was written.
    NoSpace = 2,
    /// The journal failed; nobody knows what the disk holds.
    Failed = 3,
}

/// Shared by the requests of a turn.
#[derive(Debug, Default)]
pub(crate) struct TurnFate(AtomicU8);

impl TurnFate {
    pub(crate) fn get(&self) -> Fate {
        match self.0.load(Ordering::Acquire) {
            0 => Fate::Pending,
            1 => Fate::Durable,
            2 => Fate::NoSpace,
            _ => Fate::Failed,
        }
    }

    fn set(&self, fate: Fate) {
        self.0.store(fate as u8, Ordering::Release);
    }
}

/// The requests of one block.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    fate: Arc<TurnFate>,
    waiting: Vec<Waker>,
    pub(crate) counts: TypeCounts,
    pub(crate) records: u64,
    /// The ids that clients gave, and where they were remembered to stand.
    pub(crate) given: Vec<(EventId, Place)>,
}

impl Turn {
    /// A turn like the one before it: its requests will be about as many.
    pub(crate) fn after(before: &Self) -> Self {
        Self { waiting: Vec::with_capacity(before.waiting.len()), ..Self::default() }
    }

    pub(crate) fn fate(&self) -> Arc<TurnFate> {
        self.fate.clone()
    }

    /// Whether this is the turn with such a fate.
    pub(crate) fn has(&self, fate: &Arc<TurnFate>) -> bool {
        Arc::ptr_eq(&self.fate, fate)
    }

    pub(crate) fn wait(&mut self, waker: &Waker) {
        self.waiting.push(waker.clone());
    }

    /// Decides what became of the turn. Whoever asks from now on is told and needn't be woken, so this belongs under
    /// the lock under which wakers are added.
    pub(crate) fn decide(&self, fate: Fate) {
        self.fate.set(fate);
    }

    /// Wakes the turn's requests.
    pub(crate) fn wake(self) {
        debug_assert!(self.fate.get() != Fate::Pending, "a turn is decided before its requests are woken");
        self.waiting.into_iter().for_each(Waker::wake);
    }
}
