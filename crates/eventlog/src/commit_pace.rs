//! Where a commit runs: inline if that is quick, else on the commit thread.

use std::time::Duration;

/// The average follows a new commit by one part in this many.
const SMOOTHING: u32 = 8;
/// However quick the disk is, a larger block takes too long to be sealed, written and synced inline: the commit thread
/// does it.
const INLINE_BYTES_MAX: usize = 1024 * 1024;

/// How long a shard's commits take.
#[derive(Debug, Default)]
pub(crate) struct CommitPace {
    /// Of blocks that aren't large.
    usual: Duration,
}

impl CommitPace {
    /// Whether other requests, which may wait for `longest`, would wait too long if a block of this size were committed
    /// inline.
    pub(crate) fn is_slow(&self, block_bytes: usize, longest: Duration) -> bool {
        is_large(block_bytes) || self.usual > longest
    }

    /// A commit took this long; `None` is a failed one.
    pub(crate) fn learn(&mut self, block_bytes: Option<usize>, elapsed: Duration) {
        // It says nothing of the others.
        if !block_bytes.is_some_and(is_large) {
            self.usual = (self.usual * (SMOOTHING - 1) + elapsed) / SMOOTHING;
        }
    }
}

const fn is_large(block_bytes: usize) -> bool {
    block_bytes > INLINE_BYTES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_or_recently_slow_blocks_are_slow() {
        let (longest, quick, slow) = (Duration::from_millis(1), Duration::from_micros(50), Duration::from_millis(40));
        let mut pace = CommitPace::default();
        pace.learn(Some(4096), quick);
        pace.learn(Some(INLINE_BYTES_MAX + 1), slow);
        assert!(!pace.is_slow(INLINE_BYTES_MAX, longest) && pace.is_slow(INLINE_BYTES_MAX + 1, longest));
        pace.learn(Some(4096), slow);
        assert!(pace.is_slow(4096, longest));
        (0..100).for_each(|_| pace.learn(Some(4096), quick));
        assert!(!pace.is_slow(4096, longest));
        pace.learn(None, slow);
        assert!(pace.is_slow(4096, longest));
    }
}
