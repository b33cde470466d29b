//! The positions up to which aggregates need no segments: what the older generation of a checkpoint contains is not
//! read again.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use event::TypeName;

/// For each aggregate, the last sequence of each shard that it does not need.
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
