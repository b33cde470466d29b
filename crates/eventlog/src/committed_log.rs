//! The committed part of a shard's log, as its readers see it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use journal::{OpenShard, Segments};

use crate::tail_cache::TailCache;

/// The part of a shard that consumers and the dedup index read.
pub(crate) struct CommittedLog {
    number: u16,
    tail_cache: TailCache,
    segments: Segments,
    /// The last sequence with which an id of a client was indexed, or a later one.
    last_keyed: AtomicU64,
    has_failed: AtomicBool,
}

impl CommittedLog {
    pub(crate) fn new(number: u16, opened: &OpenShard, tail_cache_bytes: usize) -> Self {
        Self {
            number,
            tail_cache: TailCache::new(opened.durable, tail_cache_bytes),
            segments: opened.segments.clone(),
            last_keyed: AtomicU64::new(opened.durable),
            has_failed: AtomicBool::new(false),
        }
    }

    pub(crate) const fn number(&self) -> u16 {
        self.number
    }

    /// The last durable sequence, 0 if there is none.
    pub(crate) fn durable(&self) -> u64 {
        self.tail_cache.durable()
    }

    pub(crate) const fn tail_cache(&self) -> &TailCache {
        &self.tail_cache
    }

    pub(crate) const fn segments(&self) -> &Segments {
        &self.segments
    }

    /// Notes that an id of a client is indexed with `sequence`.
    pub(crate) fn note_keyed(&self, sequence: u64) {
        self.last_keyed.store(sequence, Ordering::Relaxed);
    }

    /// Whether an event after `sequence` may have an id of a client.
    pub(crate) fn has_keyed_after(&self, sequence: u64) -> bool {
        self.last_keyed.load(Ordering::Relaxed) > sequence
    }

    /// Whether the journal has failed: events that aren't durable yet won't be.
    pub(crate) fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    pub(crate) fn set_failed(&self) {
        self.has_failed.store(true, Ordering::Relaxed);
    }
}
