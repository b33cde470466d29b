//! The options of a shard's journal.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use event::Origin;
use limits::{SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};

use crate::committer::Seeds;
use crate::disk::SharedDisk;
use crate::disk_quota::DiskQuota;

/// The options of a shard's journal.
pub struct ShardOptions {
    /// The disk.
    pub disk: SharedDisk,
    /// The shard's directory; created if missing.
    pub directory: PathBuf,
    /// The data directory's gateway id.
    pub origin: Origin,
    /// The shard's number.
    pub shard: u16,
    /// Counts the blocks of all shards of the process.
    pub block_numbers: Arc<AtomicU64>,
    /// New events get sequences from here on, at least: no cursor may be at or after it.
    pub next_at_least: u64,
    /// Bytes of the first segment; tests use small ones.
    pub first_segment_bytes: u64,
    /// Bytes that segments grow to, by doubling; one that must hold a larger block is longer. Files of this length are
    /// reused.
    pub segment_bytes_max: u64,
    /// Whether a thread creates segments ahead of need. Without it, they are created when needed.
    pub segments_ahead: bool,
    /// The source of segments' seeds.
    pub seeds: Seeds,
    /// How much of the disk the segments may use; `None` means all of it.
    pub quota: Option<Arc<DiskQuota>>,
}

impl ShardOptions {
    /// Options as a server uses them.
    #[must_use]
    pub fn new(disk: SharedDisk, directory: PathBuf, origin: Origin, shard: u16) -> Self {
        let block_numbers = Arc::default();
        let first_segment_bytes = SEGMENT_BYTES_MIN;
        Self {
            disk,
            directory,
            origin,
            shard,
            block_numbers,
            next_at_least: 1,
            first_segment_bytes,
            segment_bytes_max: SEGMENT_BYTES_MAX,
            segments_ahead: true,
            seeds: Seeds::Random,
            quota: None,
        }
    }
}
