//! How much work the payloads of a type are for their steps. What would hold up a shard is worked on beside it.
//!
//! Operations are counted and not time: a thread that had to wait for its core has found out nothing.

use std::sync::atomic::{AtomicU64, Ordering};

/// Work that takes more is done beside the shard: others wait for a shard that long at most, half a millisecond about.
pub(crate) const INLINE_OPERATIONS: usize = 100_000;
/// Operations of a thousand bytes at least, the JSON check included: a large payload is much work whatever small ones of its
/// type cost.
const LEAST: u64 = 2_000;
/// The mean follows a new figure by one part in so many.
const SMOOTHING: u64 = 8;

/// The usual operations of a thousand bytes. Threads that learn at once may lose what one of them has learnt.
#[derive(Debug)]
pub(crate) struct Effort(AtomicU64);

impl Effort {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(LEAST))
    }

    /// Whether so many bytes are much work.
    pub(crate) fn is_much(&self, bytes: usize) -> bool {
        is_much(bytes, self.0.load(Ordering::Relaxed))
    }

    /// So many bytes took so many operations.
    pub(crate) fn learn(&self, bytes: usize, operations: usize) {
        let mean = self.0.load(Ordering::Relaxed);
        let cost = (operations as u64 * 1000 / (bytes as u64).max(1)).max(LEAST);
        // To learn the same again and again would have shards pass the cell to and fro.
        if cost.abs_diff(mean) > mean / 4 {
            self.0.store((mean * (SMOOTHING - 1) + cost) / SMOOTHING, Ordering::Relaxed);
        }
    }
}

/// Whether so many bytes are much work where only the least is known of their cost.
pub(crate) fn is_much_by_size(bytes: usize) -> bool {
    is_much(bytes, LEAST)
}

fn is_much(bytes: usize, operations_of_thousand: u64) -> bool {
    (bytes as u64).saturating_mul(operations_of_thousand) / 1000 > INLINE_OPERATIONS as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_much_work_is_so_again_and_what_is_little_no_more() {
        let effort = Effort::new();
        assert!(!effort.is_much(1000) && effort.is_much(100_000));
        effort.learn(1000, 10_000_000);
        assert!(effort.is_much(1000), "operations are no accident");
        (0..80).for_each(|_| effort.learn(1000, 500));
        assert!(!effort.is_much(1000) && effort.is_much(100_000));
    }
}
