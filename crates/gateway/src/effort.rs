//! How long the payloads of a type take in their steps. What would hold up a shard is worked on beside it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Work that is thought to take longer is done beside the shard: others wait for a shard that long at most.
const INLINE_MAX: Duration = Duration::from_micros(500);
/// What a byte is thought to cost at least, in picoseconds: a large payload is much work whatever small ones of its type cost.
const LEAST: u64 = 10_000;
/// The mean follows a new figure by one part in so many, and no figure counts as more than so many times the mean: a
/// thread that had to wait for its core has found out nothing.
const SMOOTHING: u64 = 8;
const GROWTH_MAX: u64 = 4;

/// The usual cost of a byte, in picoseconds. Threads that learn at once may lose what one of them has learnt.
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

    /// So many bytes took so long.
    pub(crate) fn learn(&self, bytes: usize, took: Duration) {
        let mean = self.0.load(Ordering::Relaxed);
        let cost = picoseconds(took) / (bytes as u64).max(1);
        let cost = cost.clamp(LEAST, mean.saturating_mul(GROWTH_MAX));
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

fn is_much(bytes: usize, picoseconds_each: u64) -> bool {
    (bytes as u64).saturating_mul(picoseconds_each) > picoseconds(INLINE_MAX)
}

fn picoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX / 1000).saturating_mul(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_slow_is_much_work_and_what_is_quick_no_more() {
        let effort = Effort::new();
        assert!(!effort.is_much(1000) && effort.is_much(100_000));
        effort.learn(1000, Duration::from_secs(1));
        assert!(!effort.is_much(1000), "once is an accident");
        (0..40).for_each(|_| effort.learn(1000, Duration::from_millis(2)));
        assert!(effort.is_much(1000));
        (0..80).for_each(|_| effort.learn(1000, Duration::from_micros(1)));
        assert!(!effort.is_much(1000) && effort.is_much(100_000));
    }
}
