//! The counters of a shard's commits.

use limits::PAGE_BYTES;
use metrics::{Counter, Histogram, SizeHistogram};

/// The counters of a shard, for metrics.
#[derive(Debug)]
pub struct ShardCounters {
    /// Time from the write of a block to the end of its fdatasync.
    pub commit_time: Histogram,
    /// Time of its fdatasync alone.
    pub sync_time: Histogram,
    /// Blocks committed.
    pub commits: Counter,
    /// Records committed.
    pub records: Counter,
    /// Bytes written by each commit, padding included.
    pub commit_bytes: SizeHistogram,
    /// Commits that were handed to the thread.
    pub commits_offloaded: Counter,
    /// Commits that the disk had no room for.
    pub commits_refused: Counter,
}

impl ShardCounters {
    pub(crate) fn new() -> Self {
        Self {
            commit_time: Histogram::new(),
            sync_time: Histogram::new(),
            commits: Counter::new(),
            records: Counter::new(),
            commit_bytes: SizeHistogram::new(PAGE_BYTES as u64),
            commits_offloaded: Counter::new(),
            commits_refused: Counter::new(),
        }
    }
}
