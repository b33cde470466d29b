//! MemoryBudget for the bytes of objects that a store keeps in memory: so many for all its objects together.
//!
//! Whoever makes an object out of the journal waits for room. Lines that are made ahead, while events are gathered, take what there is
//! and never wait; and they leave enough for one object of the others. So whoever waits gets room in the end: what holds it either
//! needs no more to end, or is of those who leave some.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use event::limits::{OBJECT_KEPT_BYTES_MAX, OBJECTS_AHEAD_BYTES_MAX, OBJECTS_KEPT_BYTES_MAX};
use event::memory::Budgets;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// MemoryBudget for the bytes that a store keeps, of all its objects. Cheap to clone: the clones share it.
#[derive(Clone, Debug)]
pub struct MemoryBudget {
    all: Arc<Semaphore>,
    /// The part of it that lines may take which are made ahead.
    ahead: Arc<Semaphore>,
    /// Bytes that one object may keep.
    object_max: Arc<AtomicU32>,
}

impl MemoryBudget {
    /// The budget that a store has unless the memory of the whole process is small.
    #[must_use]
    pub fn new() -> Self {
        Self {
            all: Arc::new(Semaphore::new(OBJECTS_KEPT_BYTES_MAX)),
            ahead: Arc::new(Semaphore::new(OBJECTS_AHEAD_BYTES_MAX)),
            object_max: Arc::new(AtomicU32::new(OBJECT_KEPT_BYTES_MAX)),
        }
    }

    /// Makes it as small as the budgets say. To be called before it is used.
    pub(super) fn shrink_to(&self, memory: &Budgets) {
        self.all.forget_permits(OBJECTS_KEPT_BYTES_MAX.saturating_sub(memory.objects_kept_bytes));
        self.ahead.forget_permits(OBJECTS_AHEAD_BYTES_MAX.saturating_sub(memory.objects_ahead_bytes));
        let object_max = u32::try_from(memory.object_kept_bytes).unwrap_or(u32::MAX);
        self.object_max.store(object_max.min(OBJECT_KEPT_BYTES_MAX), Ordering::Relaxed);
    }

    /// Bytes that one object may keep.
    pub(super) fn object_max(&self) -> u32 {
        self.object_max.load(Ordering::Relaxed)
    }

    /// MemoryBudget for an object of so many bytes of lines, in the order in which it is asked for. What is larger than an object may keep has as
    /// much as that, since it may come to less when it is coded.
    pub(super) async fn take(&self, line_bytes: u64) -> Result<MemoryPermit, tokio::sync::AcquireError> {
        let bytes = u32::try_from(line_bytes).unwrap_or(u32::MAX).min(self.object_max());
        Ok(MemoryPermit { all: self.all.clone().acquire_many_owned(bytes).await?, ahead: None })
    }

    /// MemoryBudget for so many bytes of lines that are made ahead, if there is any now that nobody waits for.
    pub(super) fn take_ahead(&self, bytes: usize) -> Option<MemoryPermit> {
        let bytes = u32::try_from(bytes).ok()?;
        let ahead = self.ahead.clone().try_acquire_many_owned(bytes).ok()?;
        let all = self.all.clone().try_acquire_many_owned(bytes).ok()?;
        Some(MemoryPermit { all, ahead: Some(ahead) })
    }

    /// Whether lines of so many bytes could be made ahead now.
    pub(super) fn has_ahead(&self, bytes: usize) -> bool {
        self.ahead.available_permits() >= bytes && self.all.available_permits() >= bytes
    }
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::new()
    }
}

/// MemoryBudget that is taken, until this is dropped.
#[derive(Debug)]
pub struct MemoryPermit {
    all: OwnedSemaphorePermit,
    /// As much of the part for lines that are made ahead, if it is such room.
    ahead: Option<OwnedSemaphorePermit>,
}

impl MemoryPermit {
    /// For how many bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.all.num_permits()
    }

    /// Takes more, of the same room and kind.
    pub(super) fn join(&mut self, more: Self) {
        self.all.merge(more.all);
        if let (Some(ahead), Some(more)) = (&mut self.ahead, more.ahead) {
            ahead.merge(more);
        }
    }

    /// Gives back what is beyond so many bytes.
    pub(super) fn shrink_to(&mut self, bytes: usize) {
        let beyond = self.bytes().saturating_sub(bytes);
        drop(self.all.split(beyond));
        drop(self.ahead.as_mut().map(|ahead| ahead.split(beyond)));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const OBJECT: usize = OBJECT_KEPT_BYTES_MAX as usize;

    #[test]
    fn what_is_made_ahead_leaves_room_for_an_object_and_takes_none_from_those_who_wait() {
        let room = MemoryBudget::new();
        let mut ahead: Vec<MemoryPermit> = std::iter::from_fn(|| room.take_ahead(OBJECT)).collect();
        assert_eq!(ahead.len(), OBJECTS_AHEAD_BYTES_MAX / OBJECT);
        assert!(!room.has_ahead(1));
        let take = || room.take(u64::MAX).now_or_never().and_then(Result::ok);
        let made = take();
        assert_eq!(made.as_ref().map(MemoryPermit::bytes), Some(OBJECT));
        assert!(take().is_none(), "all is taken");
        let mut waiting = Box::pin(room.take(u64::MAX));
        assert!(waiting.as_mut().now_or_never().is_none());
        ahead.pop();
        assert!(room.take_ahead(OBJECT).is_none(), "somebody waited for it");
        assert!(waiting.now_or_never().is_some_and(|held| held.is_ok()));
        drop(made);
        ahead.clear();
        assert!(room.has_ahead(OBJECTS_AHEAD_BYTES_MAX));
    }

    #[test]
    fn with_little_memory_the_room_is_smaller_and_an_object_still_gets_it() {
        let room = MemoryBudget::new();
        room.shrink_to(&Budgets::LEAST);
        assert!(room.take_ahead(Budgets::LEAST.objects_ahead_bytes + 1).is_none());
        let ahead = room.take_ahead(Budgets::LEAST.objects_ahead_bytes);
        let made = room.take(u64::MAX).now_or_never().and_then(Result::ok);
        assert_eq!(made.as_ref().map(MemoryPermit::bytes), Some(Budgets::LEAST.object_kept_bytes));
        assert!(ahead.is_some());
    }

    #[test]
    fn what_is_given_back_can_be_taken() {
        let room = MemoryBudget::new();
        let mut held = room.take_ahead(OBJECTS_AHEAD_BYTES_MAX).unwrap();
        held.shrink_to(10);
        held.join(room.take_ahead(OBJECTS_AHEAD_BYTES_MAX - 10).unwrap());
        assert_eq!(held.bytes(), OBJECTS_AHEAD_BYTES_MAX);
        assert!(room.take_ahead(1).is_none());
    }
}
