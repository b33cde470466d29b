//! Up to where aggregates need no segments: what a checkpoint's older generation has taken isn't read again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use event::TypeName;

/// By aggregate, for each shard the last sequence that it doesn't need.
#[derive(Debug, Default)]
pub struct AggregateRetention(Mutex<BTreeMap<TypeName, Vec<u64>>>);

impl AggregateRetention {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<TypeName, Vec<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, name: &TypeName, passed: Vec<u64>) {
        self.lock().insert(name.clone(), passed);
    }

    pub(crate) fn remove(&self, name: &TypeName) {
        self.lock().remove(name);
    }

    /// Lowers limits, one for each shard, to what no aggregate needs.
    pub fn lower(&self, limits: &mut [u64]) {
        for passed in self.lock().values() {
            for (shard, limit) in limits.iter_mut().enumerate() {
                *limit = (*limit).min(passed.get(shard).copied().unwrap_or(0));
            }
        }
    }
}
