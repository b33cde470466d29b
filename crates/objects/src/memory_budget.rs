//! The memory in which a store keeps the bytes of its objects until they are stored. An object waits once until there
//! is room for it: so every waiting object gets room eventually.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use limits::memory::Budgets;
use limits::{OBJECT_KEPT_BYTES_MAX, OBJECTS_KEPT_BYTES_MAX};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

/// The bytes that a store may keep of all its objects together.
#[derive(Debug)]
pub struct MemoryBudget {
    free: Arc<Semaphore>,
    /// Bytes that one object may keep.
    object_max: AtomicU32,
}

impl MemoryBudget {
    /// The budget that a store has unless the memory of the whole process is small.
    #[must_use]
    pub fn new() -> Self {
        Self {
            free: Arc::new(Semaphore::new(OBJECTS_KEPT_BYTES_MAX)),
            object_max: AtomicU32::new(OBJECT_KEPT_BYTES_MAX),
        }
    }

    /// Shrinks it to the budgets. Call it before the first use.
    pub(super) fn shrink_to(&self, memory: &Budgets) {
        self.free.forget_permits(OBJECTS_KEPT_BYTES_MAX.saturating_sub(memory.objects_kept_bytes));
        let object_max = u32::try_from(memory.object_kept_bytes).unwrap_or(u32::MAX);
        self.object_max.store(object_max.min(OBJECT_KEPT_BYTES_MAX), Ordering::Relaxed);
    }

    /// Waits for room for an object of at most `line_bytes` before they are encoded. A larger object gets as much as one may keep, since its
    /// encoded bytes may be fewer.
    pub(super) async fn take(&self, line_bytes: u64) -> Result<OwnedSemaphorePermit, AcquireError> {
        let bytes = u32::try_from(line_bytes).unwrap_or(u32::MAX).min(self.object_max.load(Ordering::Relaxed));
        self.free.clone().acquire_many_owned(bytes).await
    }
}

impl Default for MemoryBudget {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn taken(budget: &MemoryBudget) -> Option<usize> {
        let permit = budget.take(u64::MAX).now_or_never()?.ok()?;
        let bytes = permit.num_permits();
        permit.forget();
        Some(bytes)
    }

    #[test]
    fn two_largest_objects_fit_and_others_wait() {
        let budget = MemoryBudget::new();
        let object = Some(OBJECT_KEPT_BYTES_MAX as usize);
        assert_eq!([taken(&budget), taken(&budget), taken(&budget)], [object, object, None]);
    }

    #[test]
    fn small_budget_has_room_for_two_objects() {
        let budget = MemoryBudget::new();
        budget.shrink_to(&Budgets::LEAST);
        let object = Some(Budgets::LEAST.object_kept_bytes);
        assert_eq!([taken(&budget), taken(&budget), taken(&budget)], [object, object, None]);
    }
}
